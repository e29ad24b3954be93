"""What idle interpreters take: ours in their worker process, and Pythons that are processes of their own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from bench._errors import UnmeasuredError
from bench._lines import environment

SETTLE_SECONDS = 1.0
"""After this long the pool is filled again, and nothing works."""
_OURS = """
import sys
import time
from carrel import create_session_sandbox

def sandbox(stateful):
    return create_session_sandbox(workspace_root=sys.argv[1], stateful=stateful)[1]

assert sandbox(stateful=False).execute("print(1)").success
kept = []
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        time.sleep(0.1)  # so that each one comes from the pool
        kept.append(sandbox(stateful=True))
        assert kept[-1].execute("x = 0").success
    print("kept", flush=True)
"""
_NATIVE = "import sys; print('ready', flush=True); sys.stdin.read()"


@dataclass(frozen=True, slots=True)
class Memory:
    """Private bytes."""

    worker: float
    """A worker process of ours that has run a script and holds no interpreter."""
    kept: float
    """Each interpreter of ours that is kept for its session."""
    native: float
    """A Python process."""


def measure(root: Path, count: int) -> Memory:
    """Keep *count* interpreters of each kind and see what they take.

    Raises:
        UnmeasuredError: A process ended, or the kernel does not tell.
    """
    return Memory(worker=_worker(root), kept=_kept(root, count), native=_native(count))


def _worker(root: Path) -> float:
    settings = {"CARREL_PYTHON_WORKERS": "1", "CARREL_PYTHON_READY": "0"}
    with _Talker([sys.executable, "-P", "-c", _OURS, str(root)], settings) as ours:
        return ours.children_bytes()


def _kept(root: Path, count: int) -> float:
    """What is added by so many, besides the first one and those that the pool keeps ready."""
    settings = {"CARREL_PYTHON_WORKERS": "1", "CARREL_PYTHON_STATEFUL": str(count + 1)}
    with _Talker([sys.executable, "-P", "-c", _OURS, str(root)], settings) as ours:
        ours.ask("1")
        before = ours.children_bytes()
        ours.ask(str(count))
        return (ours.children_bytes() - before) / count


def _native(count: int) -> float:
    with ExitStack() as stack:
        command = [sys.executable, "-I", "-c", _NATIVE]
        processes = [stack.enter_context(_Talker(command, {})) for _ in range(count)]
        return sum(private_bytes(each.pid) for each in processes) / count


class _Talker:
    """A process that prints a line when it is ready, and after each line that it received."""

    def __init__(self, command: list[str], env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(env),
            text=True,
        )
        self.pid = self._process.pid
        self._hear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def ask(self, line: str) -> None:
        """Tell it a line, and wait until it has done what that says."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        self._hear()

    def children_bytes(self) -> int:
        """What its children take when they have come to rest."""
        time.sleep(SETTLE_SECONDS)
        return sum(map(private_bytes, _children(self.pid)))

    def _hear(self) -> None:
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            self._process.communicate()
            raise UnmeasuredError("a process that was to be measured ended")


def private_bytes(pid: int) -> int:
    """Memory that this process alone has.

    Raises:
        UnmeasuredError: The kernel does not tell.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    except OSError as error:
        raise UnmeasuredError(f"the kernel does not tell: {error.strerror}") from None
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


def _children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text("utf-8", "replace").rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == pid:
            found.append(int(path.parent.name))
    return found

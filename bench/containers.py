"""Operations on files in a container, compared with `docker exec`, `docker cp` and the engine itself.

    CARREL_TEST_ENGINE=ADDRESS .venv/bin/python -m bench.containers [--quick] [--dir DIRECTORY] [--json]

Ours is a workspace whose files live only in a container: rules, quota, journal and limits on. The others have
none of that: `docker exec` and `docker cp` are the program of that name, started for every operation, and
`one exec a call` asks the engine itself for an `exec`, without a process on this side. Commands run in the
container of a session, beside the same ways and a container of their own for each. The engine is that of
`CARREL_TEST_ENGINE` (`scripts/engine start DIRECTORY` starts one) or of the machine; it needs the images of
the tests. Nothing is asserted: the exit status is 0 unless something is broken. README.md says how to read
the result.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing

from bench import _machine, _trees
from bench._aims import Aim, Ceiling
from bench._errors import BrokenError, UnmeasuredError
from bench._measure import Effort, Way, race
from bench._program import Given
from bench._program import run as program
from bench._rows import OURS, Row
from carrel.config.settings import ContainerSettings
from carrel.containers.container import Container
from carrel.containers.engine import Engine
from carrel.errors import EngineError
from carrel.runtimes.container.runtime import ContainerRuntime
from carrel.runtimes.result import SandboxResult
from carrel.sandbox.container import ContainerSandbox
from carrel.sandbox.workspace_source import SessionSource
from carrel.sessions.manager import WorkspaceManager
from carrel.values import Limits
from carrel.workspace.container_workspaces import ContainerWorkspaces

IMAGE = "carrel-test-busybox"
EXEC = "docker exec, a process"
BARE = "one exec a call"
COPY = "docker cp, a process"
RUN = "docker run --rm, a process"
READ, WRITE, STAT, LIST, COMMAND = "read", "write", "stat", "list", "command"
TEXT = _trees.TEXT.encode()
MEGABYTES = bytes(range(256)) * 4096 * 10
LONG_SECONDS = 60.0


class Bench:
    """A workspace in a container, and its alternatives."""

    def __init__(self, given: Given) -> None:
        base, quick = given.base, given.quick
        self.engine = _engine()
        self.workspaces = ContainerWorkspaces(self.engine, base / "files", image=IMAGE)
        limits = Limits(disk_bytes=None, entries=None)
        self.workspace = self.workspaces.open("bench", limits=limits)
        self.container = self.workspaces.container("bench")
        self.base = base
        self.few = Effort(rounds=5 if quick else 25, seconds=5 if quick else 30)
        self.large = Effort(rounds=2 if quick else 6, seconds=10 if quick else 40)

    def versions(self) -> Mapping[str, str]:
        server = self._docker("version", "--format", "{{.Server.Version}}").decode().strip()
        return _machine.programs(docker="docker") | {"docker engine": server}

    def run(self) -> Iterator[Row]:
        """Measure everything, one row after the other."""
        try:
            yield self.read()
            yield self.write()
            yield self.stat()
            yield self.list(100)
            yield self.list(1000)
            yield self.read_large()
            yield self.write_large()
            yield self.command()
        finally:
            self.workspaces.delete("bench")
            self.workspaces.close()
            self.engine.close()

    def aims(self, rows: Sequence[Row]) -> list[Aim]:
        """The aims, and their results."""
        return [
            Ceiling(
                f"{operation} of a small file at most 1/5 of one docker exec", operation, EXEC, 0.2
            ).judge([row for row in rows if "MB" not in row.detail])
            for operation in (READ, WRITE, STAT)
        ]

    def read(self) -> Row:
        self.workspace.write("small.txt", TEXT)
        return self._race(
            READ,
            "4 KiB",
            {
                OURS: lambda: _same(self.workspace.read("small.txt"), TEXT),
                EXEC: lambda: _same(self._docker("exec", self.container.id, "cat", _path("small.txt")), TEXT),
                BARE: lambda: _same(self._exec("cat", _path("small.txt")), TEXT),
                COPY: lambda: self._docker("cp", f"{self.container.id}:{_path('small.txt')}", "-"),
            },
        )

    def write(self) -> Row:
        source = self.base / "small.txt"
        source.write_bytes(TEXT)
        script = f"cat >{_path('w.txt')}"
        return self._race(
            WRITE,
            "4 KiB",
            {
                OURS: lambda: self.workspace.write("w.txt", TEXT),
                EXEC: lambda: self._docker("exec", "-i", self.container.id, "sh", "-c", script, stdin=TEXT),
                BARE: lambda: self._exec("sh", "-c", script, stdin=TEXT),
                COPY: lambda: self._docker(
                    "cp", os.fspath(source), f"{self.container.id}:{_path('copied.txt')}"
                ),
            },
        )

    def stat(self) -> Row:
        return self._race(
            STAT,
            "a file",
            {
                OURS: lambda: self.workspace.stat("small.txt"),
                EXEC: lambda: self._docker("exec", self.container.id, "stat", _path("small.txt")),
                BARE: lambda: self._exec("stat", _path("small.txt")),
            },
        )

    def list(self, count: int) -> Row:
        directory = f"listed-{count}"
        self._exec("sh", "-c", f"mkdir {_path(directory)}; cd {_path(directory)}; touch $(seq {count})")
        self.workspace.gate.ledger.recount()
        if len(self.workspace.list(directory)) != count:
            raise BrokenError(f"{count} files were not listed")
        return self._race(
            LIST,
            f"{count:,} files",
            {
                OURS: lambda: self.workspace.list(directory),
                EXEC: lambda: self._docker("exec", self.container.id, "ls", "-la", _path(directory)),
                BARE: lambda: self._exec("ls", "-la", _path(directory)),
            },
        )

    def read_large(self) -> Row:
        self.workspace.write("large", MEGABYTES)
        return self._race(
            READ,
            "10 MB",
            {
                OURS: lambda: _same(self.workspace.read("large"), MEGABYTES),
                EXEC: lambda: _same(
                    self._docker("exec", self.container.id, "cat", _path("large")), MEGABYTES
                ),
                BARE: lambda: _same(self._exec("cat", _path("large")), MEGABYTES),
                COPY: lambda: self._docker("cp", f"{self.container.id}:{_path('large')}", "-"),
            },
            self.large,
        )

    def write_large(self) -> Row:
        source = self.base / "large"
        source.write_bytes(MEGABYTES)
        script = f"cat >{_path('w')}"
        return self._race(
            WRITE,
            "10 MB",
            {
                OURS: lambda: self.workspace.write("w", MEGABYTES),
                EXEC: lambda: self._docker(
                    "exec", "-i", self.container.id, "sh", "-c", script, stdin=MEGABYTES
                ),
                BARE: lambda: self._exec("sh", "-c", script, stdin=MEGABYTES),
                COPY: lambda: self._docker("cp", os.fspath(source), f"{self.container.id}:{_path('copied')}"),
            },
            self.large,
        )

    def command(self) -> Row:
        """Run a program that does nothing, on the files of a session."""
        settings = ContainerSettings(image=IMAGE, address=self.engine.address)
        manager = WorkspaceManager(self.base / "sessions")
        manager.create("bench").close()
        with closing(ContainerRuntime(settings, state=lambda: self.base / "state")) as runtime:
            sandbox = ContainerSandbox(SessionSource(manager, "bench"), engine=runtime)
            return self._race(
                COMMAND,
                "true",
                {
                    OURS: lambda: _done(sandbox.run(["true"])),
                    EXEC: lambda: self._docker("exec", self.container.id, "true"),
                    BARE: lambda: self._exec("true"),
                    RUN: lambda: self._docker("run", "--rm", "--network", "none", IMAGE, "true"),
                },
            )

    def _docker(self, *arguments: str, stdin: bytes = b"") -> bytes:
        argv = ["docker", "-H", self.engine.address, *arguments]
        return subprocess.run(argv, input=stdin, capture_output=True, check=True).stdout

    def _exec(self, *argv: str, stdin: bytes = b"") -> bytes:
        return _run(self.container, argv, stdin)

    def _race(
        self,
        operation: str,
        detail: str,
        calls: Mapping[str, Callable[[], object]],
        effort: Effort | None = None,
    ) -> Row:
        ways = {name: Way(call) for name, call in calls.items()}
        return race(operation, detail, ways, count=1, effort=effort or self.few)


def _path(name: str) -> str:
    return f"/workspace/{name}"


def _same(found: bytes, wanted: bytes) -> None:
    if found != wanted:
        raise BrokenError(f"read {len(found)} bytes that differ from the {len(wanted)} stored ones")


def _done(result: SandboxResult) -> None:
    if not result.success:
        raise BrokenError(f"a command failed: {result.stderr}")


def _run(container: Container, argv: Sequence[str], stdin: bytes) -> bytes:
    """What a program prints that is run by an `exec` of its own."""
    stream = container.exec(argv)
    deadline = time.monotonic() + LONG_SECONDS
    found = []
    try:
        stream.send(stdin, deadline=deadline)
        stream.close_input()
        while (piece := stream.receive(deadline)) is not None:
            found.append(piece[1])
    except EOFError:
        if stream.wait(deadline) != 0:
            raise BrokenError(f"{argv[0]} failed") from None
        return b"".join(found)
    finally:
        stream.close()
    raise BrokenError(f"{argv[0]} did not end")


def _engine() -> Engine:
    """The engine with the image of the tests.

    Raises:
        UnmeasuredError: There is none.
    """
    if shutil.which("docker") is None:
        raise UnmeasuredError("the program docker is not here")
    try:
        engine = Engine.connect(os.environ.get("CARREL_TEST_ENGINE"))
        if engine.has_image(IMAGE):
            return engine
    except EngineError as error:
        raise UnmeasuredError(str(error)) from None
    engine.close()
    raise UnmeasuredError(f"the engine has no {IMAGE}; scripts/engine makes it")


if __name__ == "__main__":
    program("Measure what files and commands in containers cost, side by side with docker itself.", Bench)

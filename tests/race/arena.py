"""A workspace under attack, the place outside that must not change, and the attacker."""

from __future__ import annotations

import logging
import mmap
import os
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from carrel.audit.logger import SandboxLogger
from carrel.sessions.manager import WorkspaceManager
from carrel.values import FileInfo
from carrel.workspace.workspace import Workspace
from tests.race import swapper
from tests.race.swapper import Trap

MARKER = b"OUTSIDE"
"""In every name and every content outside, and nowhere inside."""

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def quiet() -> SandboxLogger:
    """A logger that drops everything; a race refuses tens of thousands of paths."""
    logger = logging.Logger("quiet")
    logger.setLevel(logging.CRITICAL + 1)
    return SandboxLogger(logger)


class Arena:
    """Where the rounds are fought.

    Some names of the workspace are traps: `d`, a directory at the top (`d/f`, `d/sub/g`), `m/n`, one in the
    middle of paths, `l`, a file at the end of a path, and `t/x`, a directory in a tree that is removed whole.
    The same names are outside, so that an operation that is led astray finds there what it looks for.
    """

    def __init__(self, top: Path, confinement: str, *, session: bool = False) -> None:
        self.top = top
        self.out = top / "out"
        self.workspace = self._open(confinement, session=session)
        self.inside = self._inside()
        self._fds: list[int] = []
        self.turns: dict[str, bool] = {}
        """Which way the next edit of a path goes."""
        self._build()
        self.ws_fd = self._hold(self.inside)
        self.real = {"d": self._hold(self.inside / "d"), "m/n": self._hold(self.inside / "m/n")}
        """The honest directories, held open: whatever their name is just now."""
        self._before = snapshot(self.out)
        self._inodes = {found[1] for found in self._before.values()}

    def _open(self, confinement: str, *, session: bool) -> Workspace:
        if session:
            return WorkspaceManager(self.top / "sessions", logger=quiet(), confinement=confinement).create(
                "raced"
            )
        (self.top / "ws").mkdir()
        return Workspace.open(self.top / "ws", confinement=confinement, logger=quiet())

    def _inside(self) -> Path:
        return self.workspace.host_path(".")

    def _build(self) -> None:
        for directory, text in (
            (self.inside / "d", "inside"),
            (self.inside / "m" / "n", "inside"),
            (self.out, MARKER.decode()),
        ):
            (directory / "sub").mkdir(parents=True)
            for name in ("f", "sub/g"):
                (directory / name).write_text(f"{text} turn A\n")
        for name in ("only", "sub/only"):
            (self.out / name).with_name(f"only-{MARKER.decode()}").write_text(MARKER.decode())
        (self.inside / "l").write_text("inside turn A\n")
        (self.inside / "src").write_text("inside turn A\n")
        (self.inside / "tree").mkdir()
        (self.inside / "tree" / "g").write_text("inside\n")
        (self.inside / "t" / "x").mkdir(parents=True)
        (self.inside / "traps").mkdir()
        for trap in self.traps().values():
            os.symlink(trap.link, trap.spare)

    def _hold(self, path: Path) -> int:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._fds.append(fd)
        return fd

    def traps(self) -> dict[str, Trap]:
        """One trap of each kind: relative links and absolute ones, to directories and to a file."""
        spare = os.fsencode(self.inside / "traps")
        ws, out = os.fsencode(self.inside), os.fsencode(self.out)
        relative = os.fsencode(os.path.relpath(self.out, self.inside))
        return {
            "d": Trap(ws + b"/d", spare + b"/d", relative, honest_file=False),
            "m/n": Trap(ws + b"/m/n", spare + b"/n", out, honest_file=False),
            "l": Trap(ws + b"/l", spare + b"/l", relative + b"/f", honest_file=True),
            "t/x": Trap(ws + b"/t/x", spare + b"/x", out + b"/sub", honest_file=False),
        }

    def close(self) -> None:
        """Let go of everything."""
        self.workspace.close()
        for fd in self._fds:
            os.close(fd)

    # What a round needs

    def make_file(self, directory: int, name: str, text: bytes = b"inside turn A\n") -> None:
        """Make a file in a held directory, if it is missing."""
        with suppress(FileExistsError):
            fd = os.open(name, _CREATE, 0o644, dir_fd=directory)
            os.write(fd, text)
            os.close(fd)

    def make_directory(self, directory: int, name: str) -> None:
        """Make a directory in a held directory, if it is missing."""
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=directory)

    def content(self, name: str) -> bytes:
        """What a file beneath the workspace holds that is no trap; nothing if it is missing or a link."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.ws_fd)
        except OSError:
            return b""
        try:
            return os.read(fd, 2**16)
        finally:
            os.close(fd)

    # What must hold

    def require_inside(self, learned: object) -> None:
        """Fail if *learned* tells anything about the outside."""
        for item in learned if isinstance(learned, list | tuple) else (learned,):
            if isinstance(item, FileInfo):
                # Not its target: the text of a link is the workspace's own.
                assert item.inode not in self._inodes, item
                assert MARKER.decode() not in item.path, item
            else:
                assert MARKER not in (item if isinstance(item, bytes) else repr(item).encode()), item

    def require_untouched(self) -> None:
        """Fail if anything outside was changed, made or removed."""
        assert snapshot(self.out) == self._before


def snapshot(top: Path) -> dict[str, tuple[int, int, int, int, bytes]]:
    """Everything at and beneath *top*; a name that came and went shows in the time of its directory."""
    found: dict[str, tuple[int, int, int, int, bytes]] = {}
    for path in (top, *sorted(top.rglob("*"))):
        about = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(about.st_mode) else b""
        found[str(path)] = (about.st_mode, about.st_ino, about.st_nlink, about.st_mtime_ns, content)
    return found


class Attack:
    """A running swapper."""

    def __init__(self, process: subprocess.Popen[bytes], counter: mmap.mmap) -> None:
        self.process = process
        self._counter = counter

    @property
    def swaps(self) -> int:
        """How many exchanges it has made."""
        return int.from_bytes(self._counter[:8], "little")


@contextmanager
def attack(place: Path, traps: Iterable[Trap]) -> Iterator[Attack]:
    """Let a process swap the names of *traps* for the time of the block; it never outlives the block."""
    path = place / "counter"
    path.write_bytes(bytes(8))
    with path.open("r+b") as file:
        counter = mmap.mmap(file.fileno(), 8)
    arguments = [trap.render() for trap in traps]
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", swapper.__file__, str(path), *arguments], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        with _side_by_side(process.pid):
            yield Attack(process, counter)
        assert process.poll() is None, "the attacker gave up"
    finally:
        process.kill()
        process.communicate()
        counter.close()


@contextmanager
def _side_by_side(other: int) -> Iterator[None]:
    """Run this process and *other* on two processors, if there are two; on one they only take turns."""
    before = os.sched_getaffinity(0)
    processors = sorted(before)
    if len(processors) == 1:
        yield
        return
    start = os.getpid() % len(processors)
    os.sched_setaffinity(0, {processors[start]})
    os.sched_setaffinity(other, {processors[start - 1]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)

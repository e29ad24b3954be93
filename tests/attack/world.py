"""A workspace, and around it everything that an attack must not reach.

    base/                     what `../..` leads to
      outside/
      parent/                 the sessions directory, where the door is a session
        ROOT/                 the workspace
        ROOT-evil/secret      its name begins like the workspace's
        outside/              `$OUT`
        secret

Every file outside holds `MARKER`, which must never come back.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import pytest
import re2  # noqa: F401  # the workspace imports it late, perhaps as a user who may not read it

from carrel.errors import NotRegularError, PathError
from carrel.sessions.manager import WorkspaceManager
from carrel.testing import tree
from carrel.values import FileInfo, Limits
from carrel.workspace.workspace import Workspace
from tests.attack.guards import (
    TooSlow,
    forget_frames,
    in_time,
    open_descriptors,
    require_no_leak,
    require_silence,
)
from tests.attack.privilege import IS_ROOT, NOBODY, USERS, User, acting_as
from tests.attack.special import NEEDS_ROOT, SPECIAL, discard, unbind

MARKER = "what-only-the-outside-holds"
HOST_TEXTS = (MARKER.encode(), b"root:x:0:", b"Linux version")
"""What tells that a value came from outside."""
DEFAULT = Limits(disk_bytes=2**42)
"""Room for the sparse files of the table."""
LEVELS = 64
"""How deep this looks into a workspace to compare it."""

AROUND = (
    "outside/secret",
    "outside/dir/secret",
    "parent/secret",
    "parent/ROOT-evil/secret",
    "parent/outside/secret",
    "parent/outside/dir/secret",
    "parent/outside/dir/" + MARKER,
    "parent/outside/" + MARKER,
)


class Door(StrEnum):
    """How the workspace is opened."""

    DIRECTORY = "directory"
    SESSION = "session"
    """With scratch directories beside it."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run an attack."""

    resolver: str
    user: User
    door: Door

    def __str__(self) -> str:
        return f"{self.resolver}-{self.user}-{self.door}"


VARIANTS = [
    Variant(resolver, user, door) for resolver in ("kernel", "walk") for user in USERS for door in Door
]
PAIRS = [
    variant
    for variant in VARIANTS
    if (variant.resolver == "kernel") ^ (variant.user is User.NOBODY) ^ (variant.door is Door.SESSION)
]
"""Every two of resolver, user and door together, in half the runs."""
DOORS = [variant for variant in VARIANTS if variant.user is User.NOBODY]
"""Both ways to resolve and both doors, where the user does not matter."""
RESOLVERS = [variant for variant in DOORS if variant.door is Door.SESSION]
"""Both ways to resolve, where the door does not matter either."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended."""

    names: frozenset[str]
    """`ok`, `ok:` and the text that came back, or every name that the table has for the error."""
    value: object = None
    error: Exception | None = None

    @property
    def ok(self) -> bool:
        return self.error is None

    def __str__(self) -> str:
        return repr(self.error) if self.error else f"ok: {self.value!r}"


@dataclass(slots=True)
class World:
    """A context in which the workspace is open; leaving it checks that nothing stays behind."""

    base: Path
    layout: str
    variant: Variant
    limits: Limits = DEFAULT
    mounts: tuple[str, ...] = ("proc", "mnt")
    """Names in the workspace that may be mounts."""
    parent: Path = field(init=False)
    root: Path = field(init=False)
    out: Path = field(init=False)
    _skipped: frozenset[str] = field(init=False)
    _workspace: Workspace | None = field(default=None, init=False)
    _before: dict[int, str] = field(default_factory=dict, init=False)
    _held: dict[int, str] = field(default_factory=dict, init=False)
    _around: dict[str, tuple[object, ...]] = field(default_factory=dict, init=False)
    _inodes: frozenset[int] = field(default=frozenset(), init=False)

    def __post_init__(self) -> None:
        self.parent = self.base / "parent"
        self.root = self.parent / "ROOT"
        self.out = self.parent / "outside"
        self._skipped = frozenset({str(self.root), str(self.parent / ".carrel")})

    @property
    def workspace(self) -> Workspace:
        assert self._workspace is not None
        return self._workspace

    def __enter__(self) -> Self:
        self.base.mkdir()
        if IS_ROOT and self.variant.user is User.NOBODY:
            os.chown(self.base, NOBODY, NOBODY)
        self._before = open_descriptors()
        with acting_as(self.variant.user):
            tree(self.base, *(f"{name} = {MARKER} of {name}" for name in AROUND), "parent/outside/linked")
            self.parent.chmod(0o700)
            self._workspace = self._open()
        self.lay_out()
        self.settle()
        return self

    def _open(self) -> Workspace:
        if self.variant.door is Door.SESSION:
            sessions = WorkspaceManager(self.parent, confinement=self.variant.resolver)
            return sessions.create("ROOT", limits=self.limits)
        self.root.mkdir()
        return Workspace.open(self.root, confinement=self.variant.resolver, limits=self.limits)

    def fill(self, text: str) -> str:
        """Put the real places into *text*."""
        return text.replace("$OUT", str(self.out)).replace("$WS", str(self.root))

    def lay_out(self) -> None:
        """Build the layout in the workspace, which is empty."""
        with acting_as(User.ROOT if self.layout in NEEDS_ROOT else self.variant.user):
            build(self.root, self.out, self.fill(self.layout))

    def settle(self) -> None:
        """Take what is there now as what has to stay."""
        with acting_as(self.variant.user):
            self.workspace.explain("..")
            self.workspace.gate.ledger.usage()  # opens the ledger
            try:
                self.workspace.read("..")  # the first refusal opens the journal
            except PathError as error:
                forget_frames(error)
        self._around = self._look_around()
        self._inodes = _inodes_around(self.base, self.root)
        self._held = open_descriptors()

    def start_over(self) -> None:
        """Empty the workspace and build the layout again."""
        self._unmount()
        for entry in list(os.scandir(self.root)):
            if entry.is_dir(follow_symlinks=False):
                discard(Path(entry.path))
            else:
                os.unlink(entry.path)
        self.lay_out()

    def attempt(self, call: Callable[[Workspace], object], *asked: str) -> Outcome:
        """Make the *call* for the paths that were *asked*, and check all that must always hold."""
        with acting_as(self.variant.user):
            outcome = _run(call, self.workspace)
        self.require_calm(outcome, asked)
        return outcome

    def try_path(
        self, operation: Callable[[Workspace, Any], object], path: object, *asked: str
    ) -> Outcome:  # Any: paths of every kind, and what is none
        """Attempt the *operation* on *path*."""
        return self.attempt(lambda workspace: operation(workspace, path), *asked)

    def require_calm(self, outcome: Outcome, asked: tuple[str, ...]) -> None:
        """Fail if the attempt touched or told anything outside."""
        self.require_untouched()
        require_no_leak(self._held)
        if outcome.error is not None:
            require_silence(outcome.error, (str(self.base), "/proc/self", MARKER), asked)
        assert not self._tells(outcome.value), f"told of the outside: {outcome}"

    def require_untouched(self) -> None:
        """Fail if anything outside was changed, or came in."""
        assert self._look_around() == self._around, "the outside was changed"
        assert not self._leftovers(), "something unfinished was left"
        assert MARKER not in repr(self.contents().values()), "the outside was copied in"

    def contents(self) -> dict[str, str]:
        """What the workspace holds, down to `LEVELS`."""
        return contents(self.root, frozenset(self.mounts))

    def expected(self, lines: str) -> dict[str, str]:
        """What `contents` says of the layout *lines*."""
        place = self.base / "expected"
        tree(place, *split(self.fill(lines)))
        try:
            return contents(place)
        finally:
            shutil.rmtree(place)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._workspace is not None:
                self._workspace.close()
                self._workspace = None
            if error is None:
                require_no_leak(self._before)
        finally:
            self._unmount()
            discard(self.base)

    def _unmount(self) -> None:
        for name in self.mounts:
            if IS_ROOT and (self.root / name).is_dir():
                unbind(self.root / name)

    def _look_around(self) -> dict[str, tuple[object, ...]]:
        return look(self.base, self._skipped)

    def _leftovers(self) -> list[str]:
        if self.variant.door is Door.DIRECTORY:
            return []
        state = f"{self.parent}/.carrel/sessions/ROOT"
        drafts = [name for name in os.listdir(state) if name.startswith(".carrel-draft-")]
        return drafts + os.listdir(f"{self.parent}/.carrel/trash")

    def _tells(self, value: object) -> bool:
        if isinstance(value, list | tuple):
            return any(self._tells(item) for item in value)
        # What the host mounts inside shows itself in a listing, as SECURITY.md says.
        if isinstance(value, FileInfo) and value.inode in self._inodes and value.name != "mnt":
            return True
        text = repr(value).encode("utf-8", "backslashreplace")
        return any(told in text for told in HOST_TEXTS)


class MakeWorld(Protocol):
    """Makes a world in a place of its own, to be entered by `with`."""

    def __call__(self, layout: str, variant: Variant, limits: Limits = DEFAULT) -> World: ...


def split(layout: str) -> tuple[str, ...]:
    """The lines of a layout as the table writes it."""
    return () if layout == "—" else tuple(layout.split("; "))


def build(root: Path, out: Path, layout: str) -> None:
    """Make the *layout* in the directory *root*."""
    if layout in SPECIAL:
        SPECIAL[layout](root, out)
    else:
        tree(root, *split(layout))


def _run(call: Callable[[Workspace], object], workspace: Workspace) -> Outcome:
    try:
        with in_time():
            value = call(workspace)
    except TooSlow as error:
        problem = str(error)
    except Exception as error:
        forget_frames(error)
        return Outcome(names_of(error), error=error)
    else:
        return Outcome(_names_of_value(value), value)
    pytest.fail(problem)


def names_of(error: Exception) -> frozenset[str]:
    """What the table calls *error*."""
    names = {type(error).__name__}
    if isinstance(error, PathError):
        names.add("ValueError")
    if isinstance(error, NotRegularError):
        names.add("notreg")
    if isinstance(error, OSError) and error.errno is not None:
        names.add(errno.errorcode[error.errno])
    return frozenset(names)


def _names_of_value(value: object) -> frozenset[str]:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return frozenset({"ok", f"ok:{text}"} if isinstance(text, str) else {"ok"})


def look(directory: Path, skip: frozenset[str] = frozenset()) -> dict[str, tuple[object, ...]]:
    """Kind, mode, time and content of everything beneath *directory*; of *skip* only that it is there."""
    found: dict[str, tuple[object, ...]] = {}
    todo = [str(directory)]
    while todo:
        for entry in os.scandir(todo.pop()):
            if entry.path in skip:
                found[entry.path] = ("skipped",)
                continue
            status = entry.stat(follow_symlinks=False)
            known: tuple[object, ...] = (status.st_mode, status.st_uid, status.st_mtime_ns)
            if stat.S_ISDIR(status.st_mode):
                todo.append(entry.path)
            found[entry.path] = (*known, _content(entry.path, status.st_mode))
    status = directory.stat()
    found[str(directory)] = (status.st_mode, status.st_uid, status.st_mtime_ns)
    return found


def _content(path: str, mode: int) -> object:
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    if not stat.S_ISREG(mode):
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except BlockingIOError:
        return "leased"
    try:
        return os.read(fd, 2**16)
    finally:
        os.close(fd)


def _inodes_around(base: Path, root: Path) -> frozenset[int]:
    """The inodes outside that have no other name inside."""
    found = [base.stat()]
    for place, names, files in os.walk(base):
        names[:] = [name for name in names if place != str(root.parent) or name != root.name]
        found += (os.lstat(os.path.join(place, name)) for name in (*names, *files))
    return frozenset(one.st_ino for one in found if stat.S_ISDIR(one.st_mode) or one.st_nlink == 1)


def contents(directory: Path, opaque: frozenset[str] = frozenset()) -> dict[str, str]:
    """What everything in *directory* is, by its relative path; *opaque* names at the top are not entered."""
    found: dict[str, str] = {}
    todo = [("", 0)]
    while todo:
        prefix, level = todo.pop()
        try:
            entries = list(os.scandir(f"{directory}/{prefix}"))
        except PermissionError:
            found[prefix] = "shut"
            continue
        for entry in entries:
            path = prefix + entry.name
            if entry.is_symlink():
                found[path] = "=> " + os.readlink(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                found[path] = "/"
                if level < LEVELS and not (level == 0 and entry.name in opaque):
                    todo.append((path + "/", level + 1))
            else:
                found[path] = _shown(entry)
    return found


def _shown(entry: os.DirEntry[str]) -> str:
    status = entry.stat(follow_symlinks=False)
    content = _content(entry.path, status.st_mode)
    if isinstance(content, bytes):
        return f"= {content.decode('utf-8', 'backslashreplace')} ({status.st_size} bytes)"
    return str(content or f"kind {stat.S_IFMT(status.st_mode):o}")

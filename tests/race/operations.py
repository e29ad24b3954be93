"""Every operation of the gate, as one round of a race.

`act` does the operation on a path that is a trap and returns all that a caller learns from it. `again` puts
back what a round that succeeded used up, through directories that are held open, so that it cannot be led
astray itself.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from carrel.errors import (
    BusyError,
    CarrelError,
    ChangedError,
    EditError,
    EscapeError,
    ExistsError,
    IsDirectoryError,
    MissingError,
    NotDirectoryError,
    NotEmptyError,
)
from carrel.runtimes.wasm.file_server import FileServer
from carrel.values import FileInfo
from tests.race.arena import Arena
from tests.workspace.archives import file, tar

Act = Callable[[Arena, str], object]
Again = Callable[[Arena, str], None]

ARCHIVE = tar(file("g", b"inside turn A\n"), file("made/f"))
_HONEST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Spots:
    """Where an operation is tried: beneath a trap, through one, and at one."""

    beneath: str = "d/f"
    through: str = "m/n/sub/g"
    at: str | None = "l"
    """None where a file at the end of a path makes no sense for the operation."""

    def rounds(self, beneath: int, others: int) -> Iterator[str]:
        """The spots in turn, the first one so often and the others so often."""
        rest = [self.through] + ([] if self.at is None else [self.at])
        every = beneath // others
        for number in range(beneath):
            yield self.beneath
            if number % every == 0:
                yield from rest


FILE = Spots()
NEW = Spots(beneath="d/new", through="m/n/sub/new")
DIRECTORY = Spots(beneath="d/sub", through="m/n/sub", at=None)
TOP = Spots(beneath="d", through="m/n/sub", at=None)
TREE = Spots(beneath="d/sub", through="m", at=None)
CHAIN = Spots(beneath="d/new/a/b", through="m/n/sub/new/a/b", at=None)


def _nothing(arena: Arena, path: str) -> None:
    return


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the table."""

    name: str
    act: Act
    spots: Spots = FILE
    again: Again = _nothing
    traps: tuple[str, ...] = ("d", "m/n", "l")
    """The names that are swapped meanwhile."""
    is_refused: bool = True
    """Whether it is refused when it meets the link; removing one is fine."""


# Reading


def read(arena: Arena, path: str) -> bytes:
    return arena.workspace.read(path)


def read_with_info(arena: Arena, path: str) -> tuple[FileInfo, bytes]:
    return arena.workspace.read_with_info(path)


def read_chunks(arena: Arena, path: str) -> bytes:
    return b"".join(arena.workspace.read_chunks(path))


def read_lines(arena: Arena, path: str) -> str:
    return arena.workspace.read_lines(path).text


def archive(arena: Arena, path: str) -> bytes:
    return b"".join(arena.workspace.archive(path))


def list_entries(arena: Arena, path: str) -> list[FileInfo]:
    return arena.workspace.list(path)


def list_names(arena: Arena, path: str) -> list[str]:
    return [name for name, _ in arena.workspace.list_names(path)]


def walk(arena: Arena, path: str) -> list[FileInfo]:
    return list(arena.workspace.walk(path))


def stat(arena: Arena, path: str) -> FileInfo:
    return arena.workspace.stat(path)


def stat_link(arena: Arena, path: str) -> FileInfo:
    return arena.workspace.stat(path, follow_symlinks=False)


def exists(arena: Arena, path: str) -> object:
    """Ask for a name that is there only outside: a yes would be told by its marker."""
    only = "only-OUTSIDE"
    found = arena.workspace.exists(path.rpartition("/")[0] + "/" + only if "/" in path else path)
    return only if found and "/" in path else found


def glob(arena: Arena, path: str) -> list[str]:
    return arena.workspace.glob(path + "/**")


def search(arena: Arena, path: str) -> tuple[str, ...]:
    return tuple(match.path + match.text for match in arena.workspace.search("turn", path).matches)


# Writing


def write(arena: Arena, path: str) -> FileInfo:
    return arena.workspace.write(path, b"inside turn A\n")


def write_new(arena: Arena, path: str) -> FileInfo:
    return arena.workspace.write(path, b"inside", overwrite=False)


def append(arena: Arena, path: str) -> FileInfo:
    return arena.workspace.append(path, b".")


def edit(arena: Arena, path: str) -> str:
    """Turn A into B and, the next time, back."""
    back = arena.turns.get(path, False)
    old, new = ("turn B", "turn A") if back else ("turn A", "turn B")
    try:
        diff = arena.workspace.edit(path, old, new).diff
    except EditError:
        arena.turns[path] = not back
        raise
    arena.turns[path] = not back
    return diff


def mkdir(arena: Arena, path: str) -> None:
    arena.workspace.mkdir(path)


def extract(arena: Arena, path: str) -> None:
    arena.workspace.extract(ARCHIVE, path, overwrite=True)


# Removing, moving, copying


def remove(arena: Arena, path: str) -> None:
    arena.workspace.remove(path)


def remove_tree(arena: Arena, path: str) -> None:
    arena.workspace.remove(path, recursive=True)


def move_from(arena: Arena, path: str) -> bytes:
    arena.workspace.move(path, "moved", overwrite=True)
    return arena.content("moved")


def move_to(arena: Arena, path: str) -> None:
    arena.workspace.move("src", path, overwrite=True)


def copy_from(arena: Arena, path: str) -> bytes:
    arena.workspace.copy(path, "copied", overwrite=True)
    return arena.content("copied")


def copy_to(arena: Arena, path: str) -> None:
    arena.workspace.copy("src", path, overwrite=True)


def copy_tree_from(arena: Arena, path: str) -> bytes:
    try:
        arena.workspace.copy(path, "tree-copied", overwrite=True, recursive=True)
    finally:
        told = b"".join(
            arena.content(f"tree-copied/{name}") for name in ("g", "n/f", "n/sub/g", "only-OUTSIDE", "f")
        )
        arena.require_inside(told)
    return told


def copy_tree_to(arena: Arena, path: str) -> None:
    arena.workspace.copy("tree", path, overwrite=True, recursive=True)


# The same for a guest

_TOLD: dict[object, type[CarrelError]] = {
    "EACCES": EscapeError,
    "EBUSY": BusyError,
    "EEXIST": ExistsError,
    "EISDIR": IsDirectoryError,
    "ENOENT": MissingError,
    "ENOTDIR": NotDirectoryError,
    "ENOTEMPTY": NotEmptyError,
    "ESTALE": ChangedError,
}


def by_guest(operation: str) -> Act:
    """What a guest does, with a source of its own where the operation has one."""

    def act(arena: Arena, path: str) -> object:
        ends = (
            {"path": "/app/src", "target": f"/app/{path}"}
            if operation == "rename"
            else {"path": f"/app/{path}"}
        )
        mount = FileServer(arena.workspace, mount_path="/app")
        head, body = mount.answer({"operation": operation, **ends}, b"inside turn A\n")
        if "error" in head:
            raise _TOLD[head["error"]](str(head))
        return [repr(head), body]

    return act


# Putting back


def _held(arena: Arena, path: str) -> tuple[int, str] | None:
    """The honest directory that *path* goes through, and the way from there."""
    for name, fd in arena.real.items():
        if path.startswith(name + "/"):
            return fd, path[len(name) + 1 :]
    return None


def file_again(arena: Arena, path: str) -> None:
    """Make a file that was removed or moved away again; traps see to themselves."""
    if held := _held(arena, path):
        arena.make_file(*held)


def source_again(arena: Arena, path: str) -> None:
    """Make the file again that was moved into a trap."""
    arena.make_file(arena.ws_fd, "src")


def tree_again(arena: Arena, path: str) -> None:
    """Make the directory again that was removed."""
    if held := _held(arena, path + "/"):
        fd, _ = held
        arena.make_directory(fd, "sub")
        arena.make_file(fd, "sub/g")


def copy_gone(arena: Arena, path: str) -> None:
    """Remove the copy of a tree, which holds no trap."""
    shutil.rmtree(arena.inside / "tree-copied", ignore_errors=True)


def file_gone(arena: Arena, path: str) -> None:
    """Remove a file that was made."""
    if held := _held(arena, path):
        fd, name = held
        with suppress(OSError):
            os.unlink(name, dir_fd=fd)


def trapped_tree_again(arena: Arena, path: str) -> None:
    """Make the tree again that was removed with the trap in it, wherever the trap's directory is just now."""
    arena.make_directory(arena.ws_fd, "t")
    for place in ("t/x", "traps/x"):
        try:
            fd = os.open(place, _HONEST, dir_fd=arena.ws_fd)
        except OSError:
            continue
        arena.make_file(fd, "g")
        os.close(fd)
        return
    for place in ("t/x", "traps/x"):
        arena.make_directory(arena.ws_fd, place)


def chain_gone(arena: Arena, path: str) -> None:
    """Remove the directories that were made."""
    if held := _held(arena, path):
        fd, name = held
        while name not in ("", "sub"):
            with suppress(OSError):
                os.rmdir(name, dir_fd=fd)
            name = name.rpartition("/")[0]


OPERATIONS = [
    Operation("read", read),
    Operation("read_with_info", read_with_info),
    Operation("read_chunks", read_chunks),
    Operation("read_lines", read_lines),
    Operation("archive", archive, Spots("d", "m", "l")),
    Operation("list", list_entries, TOP),
    Operation("list_names", list_names, TOP),
    Operation("walk", walk, Spots("d", "m", None)),
    Operation("stat", stat),
    Operation("stat_without_following", stat_link),
    Operation("exists", exists),
    Operation("glob", glob, Spots("d", "m", None)),
    Operation("search", search, Spots("d", "m", "l")),
    Operation("write", write),
    Operation("write_without_overwriting", write_new, NEW, file_gone),
    Operation("append", append),
    Operation("edit", edit),
    Operation("mkdir", mkdir, CHAIN, chain_gone),
    Operation("extract", extract, DIRECTORY),
    Operation("remove", remove, FILE, file_again),
    Operation("remove_recursive", remove_tree, DIRECTORY, tree_again),
    Operation(
        "remove_recursive_around",
        remove_tree,
        Spots("t", "t", None),
        trapped_tree_again,
        traps=("t/x",),
        is_refused=False,
    ),
    Operation("move_from", move_from, FILE, file_again),
    Operation("move_to", move_to, FILE, source_again),
    Operation("copy_from", copy_from),
    Operation("copy_to", copy_to),
    Operation("copy_recursive_from", copy_tree_from, TREE, copy_gone),
    Operation("copy_recursive_to", copy_tree_to, Spots("d/made", "m/n/sub/made", None)),
    Operation("replace_by_guest", by_guest("replace")),
    Operation("rename_by_guest", by_guest("rename"), FILE, source_again),
]

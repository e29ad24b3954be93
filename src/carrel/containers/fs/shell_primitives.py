"""`ShellPrimitives`: primitives by a `FileAgent`, for images that have a shell and some tools."""

from __future__ import annotations

import builtins
import errno
import os
from collections import deque
from contextlib import suppress

from carrel.containers.fs.file_agent import AgentReply, FileAgent, field, fields, number
from carrel.containers.fs.primitives import (
    ConcurrentChangeError,
    Copied,
    FileContent,
    FoundEntry,
    HeldFile,
    LinkInPath,
    MissingNameError,
    Parts,
    PlainNameError,
    new_draft,
)
from carrel.errors import ContainerError
from carrel.fs.api import Existing, Links
from carrel.fs.errors import os_error

PIECE_BYTES = 2**20
"""Maximum content bytes in one request or reply."""
_REPLY_BYTES = PIECE_BYTES + 2**16
_LISTING_BYTES = 2**28
"""Maximum bytes of a listing, so that no program in the container can fill our memory with a reply."""
_RECORD_BYTES = 512
"""Upper bound for the bytes of one entry in a listing."""
_LARGEST = 2**62
_REPEATED = (b"lstat", b"follow", b"read", b"list", b"hold", b"discard")
"""Requests that are safe to repeat."""
_STOPPED = {"missing": MissingNameError, "plain": PlainNameError}
_WALK = {"denied": errno.EACCES, "out": errno.EXDEV}
_TEXTS = {os.strerror(each).encode(): each for each in errno.errorcode} | {
    b"is a directory": errno.EISDIR,
    b"with non-directory": errno.EISDIR,
    b"Directory nonexistent": errno.ENOENT,
    b"nonexistent directory": errno.ENOENT,
}
"""Ends of error messages, of the C library and of the programs themselves, and their errno."""


class ShellPrimitives:
    """Each primitive is a request to the agent."""

    confinement = "container"

    def __init__(self, agent: FileAgent) -> None:
        """Send the requests to *agent*."""
        self._agent = agent
        self._to_drop: deque[bytes] = deque()
        """Appended to without a lock, because the garbage collector drops readers in any thread."""

    def close(self) -> None:
        """Stop the agent."""
        self._agent.close()

    # Looking up

    def stat(self, parts: Parts, links: Links) -> FoundEntry | LinkInPath | None:
        """Return the entry; `None` if only the last name is missing."""
        reply = self._request(b"lstat" if links is Links.KEEP else b"follow", *fields(parts))
        if reply.code in ("ok", "writable"):
            return _parse_entry(reply)
        if reply.code == "link":
            return _parse_link(reply)
        if reply.code == "missing" and reply.at == len(parts):
            return None
        raise _lookup_error(reply)

    def read(self, parts: Parts, offset: int, count: int) -> FileContent | FoundEntry | LinkInPath:
        """Read part of a file."""
        window = (number(min(offset, _LARGEST)), number(min(count, PIECE_BYTES)))
        reply = self._request(b"read", *window, *fields(parts))
        if reply.code == "link":
            return _parse_link(reply)
        if reply.code == "other":
            return _parse_entry(reply)
        _require(reply)
        head, _, data = reply.payload.partition(b"\n")
        return FileContent(parse_record(head), data)

    def list(
        self, parts: Parts, limit: int | None
    ) -> builtins.list[tuple[bytes, os.stat_result]] | LinkInPath:
        """List the entries of a directory in no order."""
        max_bytes = _LISTING_BYTES if limit is None else (limit + 2) * _RECORD_BYTES + PIECE_BYTES
        reply = self._request(b"list", *fields(parts), max_bytes=max_bytes)
        if reply.code == "link":
            return _parse_link(reply)
        _require(reply)
        return [_parse_listed(record) for record in reply.payload.split(b"//\n")[:-1]]

    # Files kept open

    def hold(self, parts: Parts) -> HeldFile | FoundEntry | LinkInPath:
        """Open a regular file and keep it open."""
        reply = self._request(b"hold", *fields(parts))
        if reply.code == "link":
            return _parse_link(reply)
        if reply.code == "other":
            return _parse_entry(reply)
        _require(reply)
        head, _, holder = reply.payload.partition(b"\n")
        return HeldFile(parse_record(head), holder.strip())

    def read_held(self, held: HeldFile, offset: int, count: int) -> bytes:
        """Read part of a file that is kept open."""
        reply = self._request(
            b"held",
            held.handle,
            identity(held.stat),
            number(min(offset, _LARGEST)),
            number(min(count, PIECE_BYTES)),
        )
        if reply.code == "gone":
            raise os_error(errno.ESTALE)
        _require(reply)
        return reply.payload.partition(b"\n")[2]

    def drop(self, held: HeldFile) -> None:
        """Close a file with the next request, so that dropping a reader never waits."""
        self._to_drop.append(held.handle)

    # Content

    def store(self, parts: Parts, data: bytes, mode: int | None, existing: Existing) -> os.stat_result:
        """Create or replace a file in one step."""
        reply = self._request(
            b"store",
            _mode(mode),
            existing.value.encode(),
            new_draft(),
            number(len(data)),
            *fields(parts),
            content=data,
        )
        return _require_changed(reply)

    def begin(self, draft: bytes) -> os.stat_result:
        """Create an empty draft."""
        return _require_changed(self._request(b"begin", draft))

    def add(self, draft: bytes, created: os.stat_result, data: bytes) -> os.stat_result:
        """Append to a draft."""
        for piece in _pieces(data):
            created = _require_changed(
                self._request(b"more", draft, identity(created), number(len(piece)), content=piece)
            )
        return created

    def copy(self, parts: Parts, draft: bytes, max_bytes: int | None) -> Copied | FoundEntry | LinkInPath:
        """Create a draft with the content of a file."""
        reply = self._request(
            b"copy", draft, number(_LARGEST if max_bytes is None else max_bytes), *fields(parts)
        )
        if reply.code == "link":
            return _parse_link(reply)
        if reply.code == "other":
            return _parse_entry(reply)
        _require(reply)
        source, _, created = reply.payload.partition(b"\n")
        return Copied(parse_record(source), parse_record(created.rstrip(b"\n")))

    def publish(
        self, draft: bytes, created: os.stat_result, parts: Parts, mode: int | None, existing: Existing
    ) -> os.stat_result:
        """Move a draft to its target."""
        reply = self._request(
            b"publish", draft, identity(created), _mode(mode), existing.value.encode(), *fields(parts)
        )
        return _require_changed(reply)

    def discard(self, draft: bytes) -> None:
        """Remove a draft, if it exists."""
        self._request(b"discard", draft)

    def append(self, parts: Parts, before: os.stat_result, data: bytes) -> os.stat_result:
        """Append to the file, which must still be the one in *before*."""
        now = before
        for piece in _pieces(data):
            reply = self._request(
                b"append",
                identity(before),
                number(before.st_size),
                number(len(piece)),
                *fields(parts),
                content=piece,
            )
            now = _require_changed(reply)
        return now

    # Other changes

    def touch(self, parts: Parts, before: os.stat_result, modified_ns: int) -> os.stat_result:
        """Set the times of the entry; busybox supports whole seconds only."""
        seconds, nanoseconds = divmod(modified_ns, 10**9)
        when = (number(seconds), b"%09d" % nanoseconds)
        reply = self._request(b"touch", identity(before), *when, *fields(parts))
        if reply.code == "ok":
            return parse_record(reply.payload.rstrip(b"\n").rpartition(b"\n")[2])
        return _require_changed(reply)

    def mkdirs(self, near: Parts, missing: Parts) -> None:
        """Create nested directories."""
        reply = self._request(b"mkdirs", number(len(near)), *fields(near), *fields(missing))
        if reply.code != "ok":
            created = missing[: reply.at] if reply.code == "fail" else missing
            self._remove_created(near, created)
        _require_done(reply)

    def _remove_created(self, near: Parts, created: Parts) -> None:
        for count in range(len(created), 0, -1):
            if self._request(b"rmdir", *fields((*near, *created[:count]))).code != "ok":
                return

    def link(self, parts: Parts, text: bytes, existing: Existing) -> None:
        """Create a link."""
        mode = existing.value.encode()
        _require_done(self._request(b"link", new_draft(), mode, field(text), *fields(parts)))

    def unlink(self, parts: Parts) -> None:
        """Remove anything but a directory."""
        _require_done(self._request(b"unlink", *fields(parts)))

    def rmdir(self, parts: Parts) -> None:
        """Remove an empty directory."""
        _require_done(self._request(b"rmdir", *fields(parts)))

    def purge(self, parts: Parts) -> None:
        """Remove a directory without subdirectories, and everything in it."""
        _require_done(self._request(b"purge", *fields(parts)))

    def move(self, source: Parts, target: Parts, existing: Existing) -> None:
        """Rename."""
        options = (existing.value.encode(), number(len(source)))
        _require_done(self._request(b"move", *options, *fields(source), *fields(target)))

    def _request(self, *request: bytes, content: bytes = b"", max_bytes: int = _REPLY_BYTES) -> AgentReply:
        while self._to_drop:
            with suppress(IndexError):
                self._agent.request(b"drop", self._to_drop.popleft())
        return self._agent.request(
            *request, content=content, max_bytes=max_bytes, repeat=request[0] in _REPEATED
        )


def identity(found: os.stat_result) -> bytes:
    """Return the identity of an entry as the script compares it."""
    return b"%d:%d:%x" % (found.st_dev, found.st_ino, found.st_mode)


def parse_record(text: bytes) -> os.stat_result:
    """Parse a record of the script's `stat`: identity, size, links, blocks, times in seconds and in full.

    Raises:
        ContainerError: It is malformed, because a program in the container replied instead.
    """
    try:
        return _record(text)
    except (ValueError, IndexError, OverflowError):
        pass
    raise _garbled_error()


def _record(text: bytes) -> os.stat_result:
    values = text.split(b" ")
    device, inode, mode = values[0].split(b":")
    size, names, blocks, accessed, modified = map(int, values[1:6])
    if not (0 <= size < 2**63 and names >= 0 and blocks >= 0):
        raise ValueError
    seen = (int(mode, 16), int(inode), int(device), names, 0, 0, size, accessed, modified, 0)
    return os.stat_result(
        seen,
        {
            "st_atime_ns": accessed * 10**9 + _fraction(values[7]),
            "st_mtime_ns": modified * 10**9 + _fraction(values[10]),
            "st_blocks": blocks,
        },
    )


def _fraction(time: bytes) -> int:
    """Return the nanoseconds of a time like `12:34:56.123456789`."""
    return int(time.partition(b".")[2][:9].ljust(9, b"0"))


def _parse_listed(record: bytes) -> tuple[bytes, os.stat_result]:
    head, _, name = record.partition(b" ./")
    if name in (b"", b".", b"..") or b"/" in name or b"\0" in name:
        raise _garbled_error()
    return name, parse_record(head)


def _garbled_error() -> ContainerError:
    return ContainerError("garbled", "the file agent in the container sent a malformed reply")


def _parse_entry(reply: AgentReply) -> FoundEntry:
    head, _, rest = reply.payload.partition(b"\n")
    found = parse_record(head)
    is_link = found.st_mode & 0o170000 == 0o120000
    if is_link != bool(rest):
        raise ConcurrentChangeError
    return FoundEntry(found, rest[:-1] if is_link else None, reply.code == "writable")


def _parse_link(reply: AgentReply) -> LinkInPath:
    if reply.at < 1 or not reply.payload.endswith(b"\n") or b"\0" in reply.payload:
        raise _garbled_error()
    return LinkInPath(reply.at, reply.payload[:-1])


def _require(reply: AgentReply) -> None:
    if reply.code != "ok":
        raise _lookup_error(reply)


def _require_done(reply: AgentReply) -> None:
    """Raise for a change that failed; an entry that differs from the last look was swapped."""
    if reply.code == "ok":
        return
    if reply.code == "fail":
        raise _parse_complaint(reply.payload)
    if reply.code in ("exists", "denied"):
        raise os_error(errno.EEXIST if reply.code == "exists" else errno.EACCES)
    raise ConcurrentChangeError


def _require_changed(reply: AgentReply) -> os.stat_result:
    _require_done(reply)
    return parse_record(reply.payload.rstrip(b"\n").rpartition(b"\n")[2])


def _lookup_error(reply: AgentReply) -> Exception:
    """Return the error for a reply that is not `ok`."""
    if reply.code == "fail":
        return _parse_complaint(reply.payload)
    if reply.code in _STOPPED:
        return _STOPPED[reply.code](max(0, reply.at))
    if reply.code not in _WALK:
        return ConcurrentChangeError()
    return os_error(_WALK[reply.code])


def _parse_complaint(payload: bytes) -> OSError:
    """Parse the error message of a program, in the C locale, into an `OSError`."""
    for line in reversed(payload.splitlines()):
        for text, reason in _TEXTS.items():
            if line.endswith(text):
                return os_error(reason)
        if b"cannot overwrite non-directory" in line:
            return os_error(errno.ENOTDIR)
    return os_error(errno.EIO)


def _mode(mode: int | None) -> bytes:
    return b"-" if mode is None else b"%o" % (mode & 0o777)


def _pieces(data: bytes) -> builtins.list[bytes]:
    if len(data) <= PIECE_BYTES:
        return [data] if data else []
    return [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]

"""`ShellPrimitives`: the primitives by a `FileAgent`, in images that have a shell and some tools."""

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
    os_error,
)
from carrel.errors import ContainerError
from carrel.fs.api import Existing, Links

PIECE_BYTES = 2**20
"""Most content in one request or answer."""
_ANSWER_BYTES = PIECE_BYTES + 2**16
_LISTING_BYTES = 2**28
"""Most of what an answer may be, so that nobody in the container can fill our memory with one."""
_RECORD_BYTES = 512
"""More than an entry takes in a listing."""
_LARGEST = 2**62
_REPEATED = (b"lstat", b"follow", b"read", b"list", b"hold", b"discard")
"""What can be asked again without harm."""
_STOPPED = {"missing": MissingNameError, "plain": PlainNameError}
_WALK = {"denied": errno.EACCES, "out": errno.EXDEV}
_TEXTS = {os.strerror(each).encode(): each for each in errno.errorcode} | {
    b"is a directory": errno.EISDIR,
    b"with non-directory": errno.EISDIR,
    b"Directory nonexistent": errno.ENOENT,
    b"nonexistent directory": errno.ENOENT,
}
"""How programs end their complaints; what they say themselves, and what a C library says."""


class ShellPrimitives:
    """Each step is a request to the attendant."""

    confinement = "container"

    def __init__(self, attendant: FileAgent) -> None:
        """Work through *attendant*."""
        self._attendant = attendant
        self._to_drop: deque[bytes] = deque()
        """Without a lock: readers are forgotten whenever garbage is collected, in any thread."""

    def close(self) -> None:
        """Let the attendant end."""
        self._attendant.close()

    # Looking

    def look(self, parts: Parts, links: Links) -> FoundEntry | LinkInPath | None:
        """What is there; `None` if only the last name is missing."""
        answer = self._ask(b"lstat" if links is Links.KEEP else b"follow", *fields(parts))
        if answer.code in ("ok", "writable"):
            return _found(answer)
        if answer.code == "link":
            return _met(answer)
        if answer.code == "missing" and answer.at == len(parts):
            return None
        raise _stopped(answer)

    def read(self, parts: Parts, offset: int, count: int) -> FileContent | FoundEntry | LinkInPath:
        """A file and some of its content."""
        window = (number(min(offset, _LARGEST)), number(min(count, PIECE_BYTES)))
        answer = self._ask(b"read", *window, *fields(parts))
        if answer.code == "link":
            return _met(answer)
        if answer.code == "other":
            return _found(answer)
        _require(answer)
        head, _, data = answer.payload.partition(b"\n")
        return FileContent(parse_record(head), data)

    def list(
        self, parts: Parts, limit: int | None
    ) -> builtins.list[tuple[bytes, os.stat_result]] | LinkInPath:
        """The entries of a directory in no order."""
        most = _LISTING_BYTES if limit is None else (limit + 2) * _RECORD_BYTES + PIECE_BYTES
        answer = self._ask(b"list", *fields(parts), most=most)
        if answer.code == "link":
            return _met(answer)
        _require(answer)
        return [_listed(record) for record in answer.payload.split(b"//\n")[:-1]]

    # Files kept open

    def hold(self, parts: Parts) -> HeldFile | FoundEntry | LinkInPath:
        """Keep a regular file open."""
        answer = self._ask(b"hold", *fields(parts))
        if answer.code == "link":
            return _met(answer)
        if answer.code == "other":
            return _found(answer)
        _require(answer)
        head, _, holder = answer.payload.partition(b"\n")
        return HeldFile(parse_record(head), holder.strip())

    def read_held(self, held: HeldFile, offset: int, count: int) -> bytes:
        """Some content of a file that is kept open."""
        answer = self._ask(
            b"held",
            held.handle,
            identity(held.stat),
            number(min(offset, _LARGEST)),
            number(min(count, PIECE_BYTES)),
        )
        if answer.code == "gone":
            raise os_error(errno.ESTALE)
        _require(answer)
        return answer.payload.partition(b"\n")[2]

    def drop(self, held: HeldFile) -> None:
        """Let go of a file with the next request; whoever forgets a reader must not have to wait."""
        self._to_drop.append(held.handle)

    # Content

    def store(self, parts: Parts, data: bytes, mode: int | None, existing: Existing) -> os.stat_result:
        """Make a file at once."""
        answer = self._ask(
            b"store",
            _mode(mode),
            existing.value.encode(),
            new_draft(),
            number(len(data)),
            *fields(parts),
            content=data,
        )
        return _changed(answer)

    def begin(self, draft: bytes) -> os.stat_result:
        """Make an empty draft."""
        return _changed(self._ask(b"begin", draft))

    def add(self, draft: bytes, made: os.stat_result, data: bytes) -> os.stat_result:
        """Add to a draft."""
        for piece in _pieces(data):
            made = _changed(self._ask(b"more", draft, identity(made), number(len(piece)), content=piece))
        return made

    def copy(self, parts: Parts, draft: bytes, most: int | None) -> Copied | FoundEntry | LinkInPath:
        """Make a draft with the content of a file."""
        answer = self._ask(b"copy", draft, number(_LARGEST if most is None else most), *fields(parts))
        if answer.code == "link":
            return _met(answer)
        if answer.code == "other":
            return _found(answer)
        _require(answer)
        source, _, made = answer.payload.partition(b"\n")
        return Copied(parse_record(source), parse_record(made.rstrip(b"\n")))

    def publish(
        self, draft: bytes, made: os.stat_result, parts: Parts, mode: int | None, existing: Existing
    ) -> os.stat_result:
        """Put a draft in its place."""
        answer = self._ask(
            b"publish", draft, identity(made), _mode(mode), existing.value.encode(), *fields(parts)
        )
        return _changed(answer)

    def discard(self, draft: bytes) -> None:
        """Remove a draft, if it is there."""
        self._ask(b"discard", draft)

    def append(self, parts: Parts, before: os.stat_result, data: bytes) -> os.stat_result:
        """Add to the file that was seen there."""
        now = before
        for piece in _pieces(data):
            answer = self._ask(
                b"append",
                identity(before),
                number(before.st_size),
                number(len(piece)),
                *fields(parts),
                content=piece,
            )
            now = _changed(answer)
        return now

    # Other changes

    def touch(self, parts: Parts, before: os.stat_result, modified_ns: int) -> os.stat_result:
        """Set the times of what was seen there; busybox knows whole seconds only."""
        seconds, nanoseconds = divmod(modified_ns, 10**9)
        when = (number(seconds), b"%09d" % nanoseconds)
        answer = self._ask(b"touch", identity(before), *when, *fields(parts))
        if answer.code == "ok":
            return parse_record(answer.payload.rstrip(b"\n").rpartition(b"\n")[2])
        return _changed(answer)

    def mkdirs(self, near: Parts, missing: Parts) -> None:
        """Make directories, one in the other."""
        answer = self._ask(b"mkdirs", number(len(near)), *fields(near), *fields(missing))
        if answer.code != "ok":
            made = missing[: answer.at] if answer.code == "fail" else missing
            self._unmake(near, made)
        _require_done(answer)

    def _unmake(self, near: Parts, made: Parts) -> None:
        for count in range(len(made), 0, -1):
            if self._ask(b"rmdir", *fields((*near, *made[:count]))).code != "ok":
                return

    def link(self, parts: Parts, text: bytes, existing: Existing) -> None:
        """Create a link."""
        told = existing.value.encode()
        _require_done(self._ask(b"link", new_draft(), told, field(text), *fields(parts)))

    def unlink(self, parts: Parts) -> None:
        """Remove anything but a directory."""
        _require_done(self._ask(b"unlink", *fields(parts)))

    def rmdir(self, parts: Parts) -> None:
        """Remove an empty directory."""
        _require_done(self._ask(b"rmdir", *fields(parts)))

    def purge(self, parts: Parts) -> None:
        """Remove a directory that holds no others, and what is in it."""
        _require_done(self._ask(b"purge", *fields(parts)))

    def move(self, source: Parts, target: Parts, existing: Existing) -> None:
        """Rename."""
        told = (existing.value.encode(), number(len(source)))
        _require_done(self._ask(b"move", *told, *fields(source), *fields(target)))

    def _ask(self, *told: bytes, content: bytes = b"", most: int = _ANSWER_BYTES) -> AgentReply:
        while self._to_drop:
            with suppress(IndexError):
                self._attendant.ask(b"drop", self._to_drop.popleft())
        return self._attendant.ask(*told, content=content, most=most, repeat=told[0] in _REPEATED)


def identity(found: os.stat_result) -> bytes:
    """What tells a file from every other, as the script compares it."""
    return b"%d:%d:%x" % (found.st_dev, found.st_ino, found.st_mode)


def parse_record(text: bytes) -> os.stat_result:
    """What the script's `stat` says: identity, size, names, blocks, times by seconds and in full.

    Raises:
        ContainerError: It is none of that, because somebody in the container answers instead.
    """
    try:
        return _record(text)
    except (ValueError, IndexError, OverflowError):
        pass
    raise _garbled()


def _record(text: bytes) -> os.stat_result:
    told = text.split(b" ")
    device, inode, mode = told[0].split(b":")
    size, names, blocks, accessed, modified = map(int, told[1:6])
    if not (0 <= size < 2**63 and names >= 0 and blocks >= 0):
        raise ValueError
    seen = (int(mode, 16), int(inode), int(device), names, 0, 0, size, accessed, modified, 0)
    return os.stat_result(
        seen,
        {
            "st_atime_ns": accessed * 10**9 + _fraction(told[7]),
            "st_mtime_ns": modified * 10**9 + _fraction(told[10]),
            "st_blocks": blocks,
        },
    )


def _fraction(time: bytes) -> int:
    """The nanoseconds of `12:34:56.123456789`."""
    return int(time.partition(b".")[2][:9].ljust(9, b"0"))


def _listed(record: bytes) -> tuple[bytes, os.stat_result]:
    head, _, name = record.partition(b" ./")
    if name in (b"", b".", b"..") or b"/" in name or b"\0" in name:
        raise _garbled()
    return name, parse_record(head)


def _garbled() -> ContainerError:
    return ContainerError("garbled", "what works on the files in the container answers nonsense")


def _found(answer: AgentReply) -> FoundEntry:
    head, _, rest = answer.payload.partition(b"\n")
    found = parse_record(head)
    is_link = found.st_mode & 0o170000 == 0o120000
    if is_link != bool(rest):
        raise ConcurrentChangeError
    return FoundEntry(found, rest[:-1] if is_link else None, answer.code == "writable")


def _met(answer: AgentReply) -> LinkInPath:
    if answer.at < 1 or not answer.payload.endswith(b"\n") or b"\0" in answer.payload:
        raise _garbled()
    return LinkInPath(answer.at, answer.payload[:-1])


def _require(answer: AgentReply) -> None:
    if answer.code != "ok":
        raise _stopped(answer)


def _require_done(answer: AgentReply) -> None:
    """Refuse an answer to a change; what was looked at just before and is not so now was swapped."""
    if answer.code == "ok":
        return
    if answer.code == "fail":
        raise _complaint(answer.payload)
    if answer.code in ("exists", "denied"):
        raise os_error(errno.EEXIST if answer.code == "exists" else errno.EACCES)
    raise ConcurrentChangeError


def _changed(answer: AgentReply) -> os.stat_result:
    _require_done(answer)
    return parse_record(answer.payload.rstrip(b"\n").rpartition(b"\n")[2])


def _stopped(answer: AgentReply) -> Exception:
    """Why it did not get there."""
    if answer.code == "fail":
        return _complaint(answer.payload)
    if answer.code in _STOPPED:
        return _STOPPED[answer.code](max(0, answer.at))
    if answer.code not in _WALK:
        return ConcurrentChangeError()
    return os_error(_WALK[answer.code])


def _complaint(payload: bytes) -> OSError:
    """The error that a program complained about, read from how it said so in the C locale."""
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

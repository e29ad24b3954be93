"""Read a tar archive member by member, strictly: ustar, pax and GNU names, no sparse members.

The standard library only parses single header blocks here: it would read extended headers of any size into
memory, and seek backwards at a negative size.
"""

from __future__ import annotations

import tarfile
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from carrel.errors import ArchiveError, NotRegularError
from carrel.values import MIB, FileKind
from carrel.workspace.archive.members import Member
from carrel.workspace.extract_limits import ExtractMeter

BLOCK = tarfile.BLOCKSIZE
TRAILER_BYTES = MIB
"""Maximum number of zero bytes after the end of the archive; tapes were written in large records."""
DIGITS = 20

_SPECIAL = {tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE}
_FILES = {tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE}
_LABEL = b"V"
_USED_KEYS = ("path", "linkpath", "size")
"""Keys of extended headers that are used here."""
_SPARSE = "GNU.sparse."


class Blocks:
    """Reads exact numbers of bytes from a stream of pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = b""
        self._next = 0

    def some(self, max_bytes: int) -> bytes:
        """Return at least one and at most *max_bytes* bytes; none at the end."""
        while self._next == len(self._piece):
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._piece, self._next = piece, 0
        found = self._piece[self._next : self._next + max_bytes]
        self._next += len(found)
        return found

    def exactly(self, count: int) -> Iterator[bytes]:
        """Yield the next *count* bytes in pieces.

        Raises:
            ArchiveError: The archive ends before.
        """
        while count:
            piece = self.some(count)
            if not piece:
                raise ArchiveError("the archive ends too early")
            count -= len(piece)
            yield piece


@dataclass(slots=True)
class _Extended:
    """The content of extended headers for the member that follows."""

    types: set[bytes]
    pax: dict[str, str]
    name: str | None = None
    target: str | None = None


def tar_members(pieces: Iterator[bytes], meter: ExtractMeter) -> Iterator[tuple[Member, Iterator[bytes]]]:
    """Yield each member with its content, which must be read before the next member.

    Raises:
        ArchiveError: The archive is corrupt, contradicts itself, or uses an unsupported feature.
        NotRegularError: It contains a FIFO or a device.
        LimitError: It exceeds a limit of the meter.
    """
    blocks = Blocks(pieces)
    extended = _Extended(set(), {})
    while header := _header(blocks):
        if header.type in _EXTENDED_TYPES:
            _read_extended(header, blocks, meter, extended)
            continue
        member = _member(header, extended)
        extended = _Extended(set(), {})
        content = blocks.exactly(member.size_bytes)
        yield member, content
        deque(content, maxlen=0)
        _skip_padding(blocks, member.size_bytes)
    if extended.types:
        raise ArchiveError("the archive ends after an extended header, before its member")
    _require_end(blocks)


def _header(blocks: Blocks) -> tarfile.TarInfo | None:
    """Return the next header, or `None` at the end of the archive."""
    block = b"".join(blocks.exactly(BLOCK))
    if not any(block):
        return None
    try:
        header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError):
        header = None
    if header is None:
        raise ArchiveError("not a supported archive, or a header is corrupt")
    if header.size < 0:
        raise ArchiveError(f"member {header.name!r} has a negative size", path=header.name)
    return header


def _require_end(blocks: Blocks) -> None:
    """Refuse data after the end of the archive."""
    left = TRAILER_BYTES
    while left > 0:
        piece = blocks.some(left)
        if not piece:
            return
        if any(piece):
            raise ArchiveError("data follows the end of the archive")
        left -= len(piece)
    if blocks.some(1):
        raise ArchiveError("too much padding follows the end of the archive")


def _skip_padding(blocks: Blocks, size: int) -> None:
    deque(blocks.exactly(-size % BLOCK), maxlen=0)


# Members


def _member(header: tarfile.TarInfo, extended: _Extended) -> Member:
    name = extended.pax.get("path") or extended.name or header.name
    target = extended.pax.get("linkpath") or extended.target or header.linkname
    size = _number(extended.pax["size"], name) if "size" in extended.pax else header.size
    if header.type in _FILES:
        return Member(name=name, kind=FileKind.FILE, size_bytes=size)
    if header.type in _SPECIAL:
        raise NotRegularError(f"member {name!r} is a FIFO or a device", path=name)
    if size:
        raise ArchiveError(f"member {name!r} has content but is not a file", path=name)
    if header.type == tarfile.DIRTYPE:
        return Member(name=name, kind=FileKind.DIRECTORY)
    if header.type == tarfile.SYMTYPE:
        return Member(name=name, kind=FileKind.LINK, target=target)
    if header.type == tarfile.LNKTYPE:
        return Member(name=name, kind=FileKind.FILE, same_as=target)
    if header.type == _LABEL:
        return Member(name=name, kind=FileKind.OTHER)
    raise ArchiveError(f"member {name!r} has an unsupported type", path=name)


def _number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS):
        raise ArchiveError(f"the size of member {name!r} is not a number", path=name)
    return int(text)


# Extended headers


def _read_extended(header: tarfile.TarInfo, blocks: Blocks, meter: ExtractMeter, extended: _Extended) -> None:
    """Read an extended header for the next member, or a global one."""
    if header.type in extended.types:
        raise ArchiveError("a member has two extended headers of the same type")
    meter.add_header(header.size)
    data = b"".join(blocks.exactly(header.size))
    _skip_padding(blocks, header.size)
    if header.type == tarfile.XGLTYPE:
        meter.add_member()
        if any(key in _USED_KEYS or key.startswith(_SPARSE) for key, _ in _records(data)):
            raise ArchiveError("a global header sets names or sizes")
        return
    extended.types.add(header.type)
    if header.type == tarfile.XHDTYPE:
        extended.pax = dict(_records(data))
        if any(key.startswith(_SPARSE) for key in extended.pax):
            raise ArchiveError("sparse members are not supported")
    elif header.type == tarfile.GNUTYPE_LONGNAME:
        extended.name = _text(data)
    else:
        extended.target = _text(data)


_EXTENDED_TYPES = {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _records(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the records `length key=value` of a pax header."""
    start = 0
    while start < len(data):
        space = data.find(b" ", start, start + DIGITS)
        digits = data[start:space] if space >= 0 else b""
        end = start + int(digits) if digits.isdigit() else 0
        if not space < end <= len(data) or data[end - 1 : end] != b"\n":
            raise ArchiveError("an extended header of the archive is corrupt")
        key, equals, value = data[space + 1 : end - 1].partition(b"=")
        if not equals:
            raise ArchiveError("an extended header of the archive is corrupt")
        yield key.decode("utf-8", "replace"), value.decode("utf-8", "surrogateescape")
        start = end

"""Read a zip archive by its central directory, and require that the local headers agree with it.

The standard library is not used here: it would read a central directory of any size into memory, and accept
members that overlap.
"""

from __future__ import annotations

import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from carrel.errors import ArchiveError, NotRegularError
from carrel.paths.parsed_path import PATH_BYTES
from carrel.values import FileKind
from carrel.workspace.archive.decompress import RAW, Decompressor, Inflater, decompressed
from carrel.workspace.archive.members import Member
from carrel.workspace.archive.spool import Spool
from carrel.workspace.extract_limits import ExtractMeter

END = Struct("<4s4H2LH")
END_MARK = b"PK\5\6"
ZIP64_LOCATOR = Struct("<4sLQL")
ZIP64_LOCATOR_MARK = b"PK\6\7"
ZIP64_END = Struct("<4sQ2H2L4Q")
ZIP64_END_MARK = b"PK\6\6"
CENTRAL = Struct("<4s4B4H3L5H2L")
CENTRAL_MARK = b"PK\1\2"
LOCAL = Struct("<4s2B4H3L2H")
LOCAL_MARK = b"PK\3\4"
FIELD = Struct("<2H")

STORED, DEFLATED = 0, 8
DESCRIPTOR, UTF8 = 0x8, 0x800
ENCRYPTED = 0x1 | 0x40 | 0x2000
PATCHED = 0x20
ZIP64_EXTRA = 1
MAX_UINT32, MAX_UINT16 = 0xFFFFFFFF, 0xFFFF
"""Values that stand for a number in a zip64 record or field."""
COMMENT_BYTES = 2**16
_ORDINARY = {0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK}


class _Directory(NamedTuple):
    """Location of the central directory."""

    offset: int
    end: int
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One row of the central directory, with the location of its content."""

    name: str
    kind: FileKind
    method: int
    checksum: int
    size_bytes: int
    header: int
    """Offset of its local header."""
    start: int
    end: int


def zip_members(spool: Spool, meter: ExtractMeter) -> Iterator[tuple[Member, Iterator[bytes]]]:
    """Yield each member with its content.

    Raises:
        ArchiveError: The archive is corrupt, contradicts itself, or uses an unsupported feature.
        NotRegularError: It contains a FIFO or a device.
        LimitError: It exceeds a limit of the meter.
    """
    directory = _find_directory(spool)
    meter.require_members(directory.members)
    entries = list(_entries(spool, directory, meter))
    _require_apart(entries, directory)
    for entry in entries:
        if entry.kind is FileKind.LINK:
            yield Member(name=entry.name, kind=entry.kind, target=_link_text(spool, entry)), iter(())
            continue
        yield Member(name=entry.name, kind=entry.kind, size_bytes=entry.size_bytes), _content(spool, entry)


# The central directory


def _find_directory(spool: Spool) -> _Directory:
    """Find the end record that reaches exactly to the end of the archive."""
    start = max(0, spool.size_bytes - END.size - COMMENT_BYTES)
    tail = spool.read(start, spool.size_bytes - start)
    at = len(tail)
    while (at := tail.rfind(END_MARK, 0, at)) >= 0:
        if at + END.size <= len(tail):
            fields = END.unpack_from(tail, at)
            if at + END.size + fields[7] == len(tail):
                return _directory(spool, start + at, fields)
    raise ArchiveError("the archive ends too early, or is not a zip archive")


def _directory(spool: Spool, at: int, fields: tuple[int, ...]) -> _Directory:
    short = fields[1:7]
    at, *full = _zip64_end(spool, at) or (at, *short)
    if any(one not in (other, MAX_UINT16, MAX_UINT32) for one, other in zip(short, full, strict=True)):
        raise ArchiveError("the archive has two end records that differ")
    disk, first, here, count, size, offset = full
    if disk or first or here != count:
        raise ArchiveError("multi-part zip archives are not supported")
    if offset + size != at:
        raise ArchiveError("the central directory of the archive is not at its declared offset")
    return _Directory(offset, at, count)


def _zip64_end(spool: Spool, at: int) -> tuple[int, ...] | None:
    """Return the offset and the fields of the zip64 end record, if the archive has one."""
    found = spool.read(at - ZIP64_LOCATOR.size, ZIP64_LOCATOR.size) if at >= ZIP64_LOCATOR.size else b""
    if not found.startswith(ZIP64_LOCATOR_MARK):
        return None
    _, _, offset, disks = ZIP64_LOCATOR.unpack(found)
    data = spool.read(offset, ZIP64_END.size) if offset < at else b""
    if disks > 1 or len(data) < ZIP64_END.size or not data.startswith(ZIP64_END_MARK):
        raise ArchiveError("the end record of the archive is corrupt")
    _, length, _, _, disk, first, here, count, size, start = ZIP64_END.unpack(data)
    if offset + 12 + length != at - ZIP64_LOCATOR.size:
        raise ArchiveError("the end record of the archive is corrupt")
    return offset, disk, first, here, count, size, start


def _entries(spool: Spool, directory: _Directory, meter: ExtractMeter) -> Iterator[_Entry]:
    at = directory.offset
    for _ in range(directory.members):
        data = spool.read(at, CENTRAL.size)
        if len(data) < CENTRAL.size or not data.startswith(CENTRAL_MARK) or at >= directory.end:
            raise ArchiveError("the central directory of the archive is corrupt")
        fields = CENTRAL.unpack(data)
        lengths = fields[12:15]
        meter.add_header(CENTRAL.size + sum(lengths))
        rest = spool.read(at + CENTRAL.size, sum(lengths))
        at += CENTRAL.size + sum(lengths)
        yield _entry(spool, meter, fields, rest[: lengths[0]], rest[lengths[0] : sum(lengths[:2])])
    if at != directory.end:
        raise ArchiveError("the central directory of the archive is corrupt")


def _entry(spool: Spool, meter: ExtractMeter, fields: tuple[int, ...], raw: bytes, extra: bytes) -> _Entry:
    flags, method = fields[5], fields[6]
    checksum, packed, size = fields[9:12]
    attributes, header = fields[17:19]
    name = _name(raw, flags)
    if flags & (ENCRYPTED | PATCHED):
        raise ArchiveError(f"member {name!r} is encrypted or patched", path=name)
    if method not in (STORED, DEFLATED):
        raise ArchiveError(f"member {name!r} has an unsupported compression method", path=name)
    size, packed, header = _with_zip64(extra, (size, packed, header), name)
    if method == STORED and size != packed:
        raise ArchiveError(f"the sizes of member {name!r} differ", path=name)
    start = _require_local(spool, header, fields, raw, (checksum, packed, size))
    meter.add_header(start - header)
    return _Entry(
        name=name,
        kind=_kind(name, attributes >> 16, size),
        method=method,
        checksum=checksum,
        size_bytes=size,
        header=header,
        start=start,
        end=start + packed,
    )


def _name(raw: bytes, flags: int) -> str:
    """Decode a name; many writers use UTF-8 without setting the flag."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("cp437")
    if flags & UTF8:
        raise ArchiveError(f"the name of member {text!r} is not UTF-8, although its flag is set", path=text)
    return text


def _kind(name: str, mode: int, size: int) -> FileKind:
    kind = stat.S_IFMT(mode)
    if kind not in _ORDINARY:
        raise NotRegularError(f"member {name!r} is a FIFO or a device", path=name)
    if kind == stat.S_IFLNK:
        return FileKind.LINK
    if kind != stat.S_IFDIR and not name.endswith("/"):
        return FileKind.FILE
    if size:
        raise ArchiveError(f"member {name!r} has content but is not a file", path=name)
    return FileKind.DIRECTORY


def _with_zip64(extra: bytes, values: tuple[int, ...], name: str) -> list[int]:
    """Return *values* with those replaced that are in the zip64 extra field, in its order."""
    if MAX_UINT32 not in values:
        return list(values)
    numbers = _zip64_field(extra, name)
    found = []
    for value in values:
        if value == MAX_UINT32:
            if len(numbers) < 8:
                raise ArchiveError(f"the zip64 field of member {name!r} is incomplete", path=name)
            value, numbers = int.from_bytes(numbers[:8], "little"), numbers[8:]  # noqa: PLW2901  # its zip64 form
        found.append(value)
    return found


def _zip64_field(extra: bytes, name: str) -> bytes:
    at = 0
    while at + FIELD.size <= len(extra):
        kind, length = FIELD.unpack_from(extra, at)
        at += FIELD.size + length
        if kind == ZIP64_EXTRA and at <= len(extra):
            return extra[at - length : at]
    raise ArchiveError(f"the zip64 field of member {name!r} is incomplete", path=name)


# Local headers


def _require_local(
    spool: Spool, at: int, fields: tuple[int, ...], raw: bytes, sizes: tuple[int, int, int]
) -> int:
    """Return the offset of the content, if the local header agrees with the central directory."""
    name = _name(raw, fields[5])
    data = spool.read(at, LOCAL.size) if at <= spool.size_bytes else b""
    if len(data) < LOCAL.size or not data.startswith(LOCAL_MARK):
        raise ArchiveError(f"the local header of member {name!r} is not at its declared offset", path=name)
    flags, method, _, _, checksum, packed, size, name_length, extra_length = LOCAL.unpack(data)[3:]
    rest = spool.read(at + LOCAL.size, name_length + extra_length)
    if rest[:name_length] != raw or method != fields[6] or flags & (ENCRYPTED | PATCHED):
        raise ArchiveError(f"member {name!r} has two different headers", path=name)
    size, packed = _with_zip64(rest[name_length:], (size, packed), name)
    for local, central in zip((checksum, packed, size), sizes, strict=True):
        if local != central and (local or not flags & DESCRIPTOR):
            raise ArchiveError(f"member {name!r} has two different headers", path=name)
    return at + LOCAL.size + len(rest)


def _require_apart(entries: list[_Entry], directory: _Directory) -> None:
    """Refuse members that share bytes with each other or with the central directory."""
    ends = 0
    for entry in sorted(entries, key=lambda entry: entry.header):
        if entry.header < ends:
            raise ArchiveError(f"member {entry.name!r} overlaps another", path=entry.name)
        ends = entry.end
    if ends > directory.offset:
        raise ArchiveError("a member reaches into the central directory")


# Content


def _link_text(spool: Spool, entry: _Entry) -> str:
    if entry.size_bytes >= PATH_BYTES:
        raise ArchiveError(f"the target of the link {entry.name!r} is too long", path=entry.name)
    return b"".join(_content(spool, entry)).decode("utf-8", "surrogateescape")


def _content(spool: Spool, entry: _Entry) -> Iterator[bytes]:
    """Yield the content, and verify its declared size and checksum."""
    pieces = spool.pieces(entry.start, entry.end)
    checksum = 0
    left = entry.size_bytes
    for piece in decompressed(pieces, _Once(entry.name)) if entry.method == DEFLATED else pieces:
        left -= len(piece)
        if left < 0:
            break
        checksum = zlib.crc32(piece, checksum)
        yield piece
    if left or checksum != entry.checksum:
        raise ArchiveError(f"the size or checksum of member {entry.name!r} is wrong", path=entry.name)


class _Once:
    """Creates one decompressor; a member is one stream."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._used = False

    def __call__(self) -> Decompressor:
        if self._used:
            raise ArchiveError(f"member {self._name!r} continues after its end", path=self._name)
        self._used = True
        return Inflater(RAW)

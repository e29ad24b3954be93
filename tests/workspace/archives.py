"""Archives made by hand, honest and hostile."""

from __future__ import annotations

import bz2
import io
import lzma
import stat
import struct
import tarfile
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

TAR_FORMATS = ("tar", "tar.gz", "tar.bz2", "tar.xz")
FORMATS = (*TAR_FORMATS, "zip")
END = bytes(2 * tarfile.BLOCKSIZE)


@dataclass(frozen=True, slots=True)
class Member:
    """What an archive claims."""

    name: str
    content: bytes = b""
    kind: int = stat.S_IFREG
    target: str = ""
    mode: int = 0o644


def file(name: str, content: bytes = b"in", *, mode: int = 0o644) -> Member:
    return Member(name, content, mode=mode)


def directory(name: str) -> Member:
    return Member(name, kind=stat.S_IFDIR, mode=0o755)


def link(name: str, target: str) -> Member:
    return Member(name, kind=stat.S_IFLNK, target=target, mode=0o777)


_TAR_TYPES = {
    stat.S_IFREG: tarfile.REGTYPE,
    stat.S_IFDIR: tarfile.DIRTYPE,
    stat.S_IFLNK: tarfile.SYMTYPE,
    stat.S_IFIFO: tarfile.FIFOTYPE,
    stat.S_IFCHR: tarfile.CHRTYPE,
    stat.S_IFBLK: tarfile.BLKTYPE,
}


def block(name: str, content: bytes = b"", *, pax: dict[str, str] | None = None, **fields: Any) -> bytes:
    """One tar member with any *fields* of `TarInfo`; the header may lie about the content."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    info.pax_headers = pax or {}
    for field, value in fields.items():
        setattr(info, field, value)
    if pax:
        header = info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
    else:
        header = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    return header + content + bytes(-len(content) % tarfile.BLOCKSIZE)


def hard_link(name: str, target: str) -> bytes:
    return block(name, type=tarfile.LNKTYPE, linkname=target)


def pax_block(records: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    """An extended header with any *records*."""
    return block("././@PaxHeader", records, type=kind)


def reseal(header: bytes) -> bytes:
    """The same header block with a checksum that is right."""
    header = header[:148] + b" " * 8 + header[156:]
    return header[:148] + b"%06o\0 " % sum(header[:512]) + header[156:]


def tar(*members: Member | bytes) -> bytes:
    """A tar archive."""
    return b"".join(_tar_member(member) for member in members) + END


def _tar_member(member: Member | bytes) -> bytes:
    if isinstance(member, bytes):
        return member
    return block(
        member.name,
        member.content,
        type=_TAR_TYPES[member.kind],
        linkname=member.target,
        mode=member.mode,
    )


def zipped(*members: Member, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive; names are taken as they are."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # names that are there twice
        for member in members:
            info = zipfile.ZipInfo()
            info.filename = member.name
            info.create_system = 3
            info.external_attr = (member.kind | member.mode) << 16
            info.compress_type = method
            content = member.target.encode("utf-8", "surrogateescape") or member.content
            with made.open(info, "w") as target:
                target.write(content)
    return out.getvalue()


def compress(data: bytes, form: str) -> bytes:
    """A tar archive as *form* has it."""
    if form == "tar.gz":
        engine = zlib.compressobj(wbits=31)
        return engine.compress(data) + engine.flush()
    if form == "tar.bz2":
        return bz2.compress(data)
    if form == "tar.xz":
        return lzma.compress(data)
    return data


def build(form: str, *members: Member) -> bytes:
    """An archive of the format *form*."""
    return zipped(*members) if form == "zip" else compress(tar(*members), form)


def patched(data: bytes, offset: int, form: str, *values: object) -> bytes:
    """*data* with *values* packed in at *offset*."""
    new = struct.pack(form, *values)
    return data[:offset] + new + data[offset + len(new) :]


def central(data: bytes) -> int:
    """Where the central directory of a zip archive begins."""
    return data.index(b"PK\1\2")


def end_record(data: bytes) -> int:
    """Where its end record begins."""
    return data.rindex(b"PK\5\6")


def raw_zip(
    name: bytes,
    packed: bytes,
    *,
    size: int,
    checksum: int,
    method: int = zipfile.ZIP_DEFLATED,
    flags: int = 0,
    extra: bytes = b"",
    comment: bytes = b"",
    local_extra: bytes = b"",
    claimed: int | None = None,
) -> bytes:
    """A zip archive of one member with any numbers; *claimed* is the packed size that it tells."""
    told = len(packed) if claimed is None else claimed
    numbers = (flags, method, 0, 33, checksum, told, size, len(name))
    local = struct.pack("<4s2B4H3L2H", b"PK\3\4", 20, 0, *numbers, len(local_extra)) + name
    local += local_extra + packed
    row = struct.pack(
        "<4s4B4H3L5H2L", b"PK\1\2", 20, 3, 20, 0, *numbers, len(extra), len(comment), 0, 0, 0, 0
    )
    row += name + extra + comment
    return local + row + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(row), len(local), 0)


def deflated(data: bytes) -> bytes:
    """*data* as one raw deflate stream."""
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


def deflated_zeros(mebibytes: int) -> bytes:
    """Many zeros as one raw deflate stream, made at once: the same block again and again."""
    engine = zlib.compressobj(9, wbits=-15)
    first = engine.compress(bytes(2**20)) + engine.flush(zlib.Z_FULL_FLUSH)
    return first * mebibytes + deflated(b"")

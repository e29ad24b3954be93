"""Images to read: a whole one of each type that models can see."""

from __future__ import annotations

import struct
import zlib


def png(width: int = 2, height: int = 1, *, more_bytes: int = 0) -> bytes:
    """A PNG that is one color, with *more_bytes* in a chunk that viewers ignore."""
    rows = zlib.compress((b"\0" + bytes(width)) * height)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    extra = [(b"teXt", bytes(more_bytes))] if more_bytes else []
    chunks = [(b"IHDR", header), *extra, (b"IDAT", rows), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


JPEG = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffc0000b080001000201011100ffd9")
GIF = bytes.fromhex("47494638396102000100800000000000ffffff2c00000000020001000002020c0a003b")
WEBP = bytes.fromhex("524946461a000000574542505650384c0d0000002f01000010071011118888fe0700")
WHOLE = {"image/png": png(), "image/jpeg": JPEG, "image/gif": GIF, "image/webp": WEBP}
"""Each is two pixels wide and one pixel high."""

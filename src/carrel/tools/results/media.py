"""The media type of a file, from its content and name, and the size of an image."""

from __future__ import annotations

from base64 import b64encode
from typing import NamedTuple

from carrel.values import MIB, ToolImage

_BY_SUFFIX = {
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".bz2": "application/x-bzip2",
    ".c": "text/x-c",
    ".css": "text/css",
    ".csv": "text/csv",
    ".doc": "application/msword",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".flac": "audio/flac",
    ".gif": "image/gif",
    ".go": "text/x-go",
    ".gz": "application/gzip",
    ".h": "text/x-c",
    ".htm": "text/html",
    ".html": "text/html",
    ".ico": "image/vnd.microsoft.icon",
    ".ini": "text/plain",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".js": "text/javascript",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".log": "text/plain",
    ".md": "text/markdown",
    ".mjs": "text/javascript",
    ".mp3": "audio/mpeg",
    ".mp4": "video/mp4",
    ".npy": "application/octet-stream",
    ".ogg": "audio/ogg",
    ".parquet": "application/vnd.apache.parquet",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".py": "text/x-python",
    ".rs": "text/x-rust",
    ".sh": "application/x-sh",
    ".sql": "application/sql",
    ".sqlite": "application/vnd.sqlite3",
    ".svg": "image/svg+xml",
    ".tar": "application/x-tar",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".toml": "application/toml",
    ".ts": "text/typescript",
    ".tsv": "text/tab-separated-values",
    ".txt": "text/plain",
    ".wav": "audio/wav",
    ".webm": "video/webm",
    ".webp": "image/webp",
    ".xls": "application/vnd.ms-excel",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".xml": "application/xml",
    ".xz": "application/x-xz",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".zip": "application/zip",
}
_BY_SIGNATURE = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\0asm", "application/wasm"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
)
_BITMAP_HEADERS = tuple(size.to_bytes(4, "little") for size in (40, 52, 56, 108, 124))
"""Known sizes of the header of a bitmap, in bytes; the old header of 12 bytes is not supported."""
_MEDIA_SUFFIXES = {
    suffix
    for suffix, kind in _BY_SUFFIX.items()
    if kind.startswith(("image/", "audio/", "video/")) and suffix != ".svg"
}


class ImageSize(NamedTuple):
    """Size of an image, in pixels."""

    width: int
    height: int


def file_suffix(path: str) -> str:
    """Return the suffix of a file name in lower case, with its dot; empty for `.profile` and the like."""
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    return f".{suffix.lower()}" if stem and dot else ""


def media_type_by_name(path: str) -> str | None:
    """Return the media type for the suffix of the name; `None` if it is not known."""
    return _BY_SUFFIX.get(file_suffix(path))


def media_type(path: str, content: bytes, *, is_text: bool) -> str:
    """Return the media type from the first bytes of the content, or else from the name."""
    if not is_text:
        for signature, kind in _BY_SIGNATURE:
            # Many formats are zip archives; the name tells which.
            if content.startswith(signature) and kind != "application/zip":
                return kind
        if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
            return "image/webp"
        if _is_bitmap(content):
            return "image/bmp"
    known = media_type_by_name(path)
    if known is not None and (known.startswith("text/") <= is_text):
        return known
    return "text/plain" if is_text else "application/octet-stream"


def has_media_name(path: str) -> bool:
    """Whether the name is that of an image, audio or video file, which text searches skip."""
    return file_suffix(path) in _MEDIA_SUFFIXES


def image_size(content: bytes) -> ImageSize | None:
    """Return the size of an image; `None` if the content is not an image of a known format."""
    if content.startswith(b"\x89PNG\r\n\x1a\n") and len(content) >= 24:
        return ImageSize(_number(content[16:20], "big"), _number(content[20:24], "big"))
    if content[:6] in (b"GIF87a", b"GIF89a") and len(content) >= 10:
        return ImageSize(_number(content[6:8], "little"), _number(content[8:10], "little"))
    if _is_bitmap(content):
        height = int.from_bytes(content[22:26], "little", signed=True)
        return ImageSize(_number(content[18:22], "little"), abs(height))
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return _webp_size(content)
    return _jpeg_size(content) if content.startswith(b"\xff\xd8") else None


def _is_bitmap(content: bytes) -> bool:
    """Whether it is a bitmap, and not other content that begins with the letters `BM`."""
    return content.startswith(b"BM") and len(content) >= 26 and content[14:18] in _BITMAP_HEADERS


def _number(data: bytes, order: str) -> int:
    return int.from_bytes(data, "big" if order == "big" else "little")


def _webp_size(content: bytes) -> ImageSize | None:
    kind, body = content[12:16], content[20:]
    if kind == b"VP8X" and len(body) >= 10:
        return ImageSize(_number(body[4:7], "little") + 1, _number(body[7:10], "little") + 1)
    if kind == b"VP8L" and len(body) >= 5:
        bits = _number(body[1:5], "little")
        return ImageSize((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8 " and len(body) >= 10:
        return ImageSize(_number(body[6:8], "little") & 0x3FFF, _number(body[8:10], "little") & 0x3FFF)
    return None


def _jpeg_size(content: bytes) -> ImageSize | None:
    at = 2
    while at + 9 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker == 0xFF:
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return ImageSize(
                _number(content[at + 7 : at + 9], "big"), _number(content[at + 5 : at + 7], "big")
            )
        else:
            at += 2 + max(2, _number(content[at + 2 : at + 4], "big"))
    return None


SHOWN_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Images that models can see."""
MAX_IMAGE_BYTES = 2 * MIB
"""Larger images are only described: as base64, they exceed what providers accept in one message."""
MAX_IMAGE_SIDE = 8000
"""Images with more pixels in a row or a column are only described: providers refuse them."""
_TOO_LARGE = (
    f"It is too large to be shown: make a copy of at most {MAX_IMAGE_BYTES} bytes and {MAX_IMAGE_SIDE} pixels"
    " a side, such as with thumbnail() of Pillow or a lower dpi in matplotlib, and read that"
)


def tool_image(path: str, content: bytes, kind: str) -> ToolImage | None:
    """Return the image at *path* with the media type *kind*; `None` if a model cannot see it.

    A provider refuses the whole conversation if an image in it is incomplete.
    """
    size = image_size(content)
    if kind not in SHOWN_TYPES or size is None or not _is_complete(content):
        return None
    if len(content) > MAX_IMAGE_BYTES or not 0 < min(size) <= max(size) <= MAX_IMAGE_SIDE:
        return None
    return ToolImage(
        path=path,
        media_type=kind,
        size_bytes=len(content),
        width=size.width,
        height=size.height,
        data=b64encode(content).decode("ascii"),
    )


def _is_complete(content: bytes) -> bool:
    """Whether an image of a shown type has its end."""
    if content.startswith(b"\x89PNG"):
        return b"IEND" in content[-64:]
    if content.startswith(b"GIF8"):
        return b";" in content[-64:]
    if content.startswith(b"RIFF"):
        return _number(content[4:8], "little") <= len(content) - 8
    return b"\xff\xd9" in content[-1024:]


def describe_file(path: str, size_bytes: int, kind: str, image: ImageSize | None, advice: str = "") -> str:
    """Return the line that a model reads of a file that is not text."""
    noun = "Image" if kind in SHOWN_TYPES else "File"
    facts = f"{kind}, {size_bytes} byte{'' if size_bytes == 1 else 's'}"
    if image is not None:
        facts = f"{facts}, {image.width} x {image.height} pixels"
        if kind in SHOWN_TYPES and (size_bytes > MAX_IMAGE_BYTES or max(image) > MAX_IMAGE_SIDE):
            advice = _TOO_LARGE
    return f"[{noun} {path}: {facts}{advice and f'. {advice}'}]"

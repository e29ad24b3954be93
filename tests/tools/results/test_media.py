"""Media types by content and by name, and the size of images."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.tools.results.media import ImageSize, file_suffix, has_media_name, image_size, media_type

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", 640, 480, 8, 6, 0, 0, 0)
GIF = b"GIF89a" + struct.pack("<HH", 320, 200) + b"\0\0\0"
BITMAP = b"BM" + struct.pack("<IHHIIii", 70, 0, 0, 54, 40, 64, -32) + b"\0" * 16
JPEG = (
    b"\xff\xd8"
    b"\xff\xe0\x00\x10JFIF\0\1\1\0\0\1\0\1\0\0"
    b"\xff\xff\xff\xc4\x00\x04\0\0"
    b"\xff\xc2\x00\x11\x08" + struct.pack(">HH", 768, 1024) + b"\3" * 10
)
WEBP = {
    "extended": b"VP8X" + struct.pack("<I", 10) + b"\0" * 4 + b"\x8f\x01\0" + b"\x2b\x01\0",
    "lossless": b"VP8L" + struct.pack("<IBI", 5, 0x2F, (299 << 14) | 399),
    "lossy": b"VP8 " + struct.pack("<I", 10) + b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 400, 300),
}


def webp(kind: str) -> bytes:
    body = WEBP[kind]
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


@pytest.mark.parametrize(
    ("content", "size"),
    [
        (PNG, (640, 480)),
        (GIF, (320, 200)),
        (BITMAP, (64, 32)),
        (JPEG, (1024, 768)),
        *((webp(kind), (400, 300)) for kind in WEBP),
    ],
    ids=["png", "gif", "bitmap", "jpeg", *WEBP],
)
def test_the_size_of_an_image_is_read_from_its_head(content: bytes, size: tuple[int, int]) -> None:
    assert image_size(content) == ImageSize(*size)
    for end in range(len(content)):
        assert image_size(content[:end]) in (None, ImageSize(*size)), "half a head tells nothing else"


@pytest.mark.parametrize("content", [b"", b"text", b"BM is how this text begins, and it goes on for a while"])
def test_only_an_image_has_a_size(content: bytes) -> None:
    assert image_size(content) is None


@given(
    start=st.sampled_from([b"", PNG[:8], b"GIF89a", b"BM", b"\xff\xd8", b"RIFF0000WEBP"]), rest=st.binary()
)
def test_any_bytes_have_a_size_or_none(start: bytes, rest: bytes) -> None:
    size = image_size(start + rest)
    assert size is None or min(size) >= 0


@pytest.mark.parametrize(
    ("path", "content", "kind"),
    [
        ("a.bin", PNG, "image/png"),
        ("a.png", JPEG, "image/jpeg"),
        ("a", GIF, "image/gif"),
        ("a", BITMAP, "image/bmp"),
        ("a", webp("lossy"), "image/webp"),
        ("a", b"BM is how this text begins, and it goes on for a while", "application/octet-stream"),
        ("a.pdf", b"%PDF-1.7\n\0", "application/pdf"),
        ("a.docx", b"PK\x03\x04", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("a.zip", b"PK\x03\x04", "application/zip"),
        ("a.mp3", b"\0", "audio/mpeg"),
        ("a.txt", b"\0", "application/octet-stream"),
        ("a.json", b"\0", "application/json"),
        ("a", b"\0", "application/octet-stream"),
    ],
)
def test_binary_content_is_known_by_how_it_begins_and_else_by_its_name(
    path: str, content: bytes, kind: str
) -> None:
    assert media_type(path, content, is_text=False) == kind


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a.csv", "text/csv"),
        ("d.csv/a.PY", "text/x-python"),
        ("a.svg", "image/svg+xml"),
        ("a.unknown", "text/plain"),
        ("Makefile", "text/plain"),
    ],
)
def test_text_is_known_by_its_name(path: str, kind: str) -> None:
    assert media_type(path, b"", is_text=True) == kind


@pytest.mark.parametrize(
    ("path", "end"),
    [
        ("a.TXT", ".txt"),
        ("a.tar.gz", ".gz"),
        ("d.x/a", ""),
        (".profile", ""),
        ("d/.profile", ""),
        ("a.", "."),
    ],
)
def test_the_suffix_is_what_follows_the_last_dot(path: str, end: str) -> None:
    assert file_suffix(path) == end


def test_images_sounds_and_films_are_not_searched_for_text() -> None:
    assert all(has_media_name(path) for path in ("a.png", "a.MP3", "a.webm"))
    assert not any(has_media_name(path) for path in ("a.svg", "a.txt", "png", ".png"))

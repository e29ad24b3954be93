"""What kind of content a file has, by its name."""

from __future__ import annotations

from functools import lru_cache

from carrel.tools.media import named_type

_UNKNOWN = "application/octet-stream"
_TEXTS = frozenset(
    {
        "application/json",
        "application/sql",
        "application/toml",
        "application/x-ndjson",
        "application/x-sh",
        "application/xml",
        "application/yaml",
        "image/svg+xml",
    }
)
"""Besides those that say so."""


def media_type(name: str) -> str:
    """The media type of a file called *name*."""
    return named_type(name) or _UNKNOWN


def is_text(kind: str) -> bool:
    """Whether content of that media type is text."""
    return kind.startswith("text/") or kind in _TEXTS


@lru_cache(maxsize=1024)
def content_type(name: str) -> bytes:
    """The same for a header, with the encoding of text."""
    kind = media_type(name)
    return f"{kind}; charset=utf-8".encode("ascii") if is_text(kind) else kind.encode("ascii")

"""Encodings of file content: decode bytes for a result, encode the text of an argument."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from carrel.errors import TextError
from carrel.tools.core.advice import AdvisedError
from carrel.workspace import text as texts

Encoding = Literal["utf-8", "ascii", "latin-1", "base64"]
"""Encodings that a caller may choose; base64 represents any bytes."""
ENCODINGS: tuple[str, ...] = get_args(Encoding)

BINARY_BYTES = 8192
"""A file with a NUL among its first bytes, as many as this, is binary."""
_NEXT_STEPS = {
    "utf-8": "Use encoding base64.",
    "base64": "Give base64, or use another encoding.",
}
"""What to do if a text cannot be encoded, by encoding; for the others, use utf-8."""


class DecodedContent(NamedTuple):
    """Content as the result shows it."""

    encoding: str
    text: str | None
    """`None` for base64: the caller encodes only the part that it returns."""


def is_binary(beginning: bytes) -> bool:
    """Whether a file that starts with *beginning* is binary."""
    return b"\0" in beginning[:BINARY_BYTES]


def decode_content(data: bytes, requested: str | None, default: str, path: str) -> DecodedContent:
    """Decode *data* in the *requested* encoding; without one, in the *default*, or as base64 if not text.

    Raises:
        TextError: The data are not text in the requested encoding.
    """
    encoding = requested or default
    if encoding == "base64" or (requested is None and is_binary(data)):
        return DecodedContent("base64", None)
    try:
        return DecodedContent(encoding, texts.decode(data, encoding, path))
    except TextError:
        if requested is not None:
            raise
    return DecodedContent("base64", None)


def encode_content(text: str, encoding: str, path: str) -> bytes:
    """Encode *text* as file content.

    Raises:
        AdvisedError: The text cannot be encoded.
    """
    try:
        return texts.encode(text, encoding, path)
    except TextError as error:
        code, message = error.code, error.message
    raise AdvisedError(code, message, next=_NEXT_STEPS.get(encoding, "Use encoding utf-8."), path=path)

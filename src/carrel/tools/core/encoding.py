"""Encodings of file content: decode bytes for an answer, encode the text of an argument."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from carrel.errors import TextError
from carrel.tools.core.advice import AdvisedError
from carrel.workspace import text as texts

Encoding = Literal["utf-8", "ascii", "latin-1", "base64"]
"""What a caller may ask for; base64 stands for any bytes."""
ENCODINGS: tuple[str, ...] = get_args(Encoding)

BINARY_BYTES = 8192
"""A NUL among the first bytes makes a file binary."""
_OTHERWISE = {
    "utf-8": "Use encoding base64.",
    "base64": "Give base64, or use another encoding.",
}
"""What helps where a text cannot be written in an encoding; utf-8, if nothing stands here."""


class DecodedContent(NamedTuple):
    """Content as it is to be told."""

    encoding: str
    text: str | None
    """None for base64, which the caller makes of as much as it tells."""


def is_binary(beginning: bytes) -> bool:
    """Whether a file that begins like this is no text."""
    return b"\0" in beginning[:BINARY_BYTES]


def decode_content(data: bytes, asked: str | None, default: str, path: str) -> DecodedContent:
    """The text of *data* as it is *asked* for; if it is not, base64 for what is no text in the *default* one.

    Raises:
        TextError: It is no text in the encoding that was asked for.
    """
    encoding = asked or default
    if encoding == "base64" or (asked is None and is_binary(data)):
        return DecodedContent("base64", None)
    try:
        return DecodedContent(encoding, texts.decode(data, encoding, path))
    except TextError:
        if asked is not None:
            raise
    return DecodedContent("base64", None)


def encode_content(text: str, encoding: str, path: str) -> bytes:
    """The content that *text* stands for.

    Raises:
        ToldError: It cannot be written in this encoding.
    """
    try:
        return texts.encode(text, encoding, path)
    except TextError as error:
        code, message = error.code, error.message
    raise AdvisedError(code, message, then=_OTHERWISE.get(encoding, "Use encoding utf-8."), path=path)

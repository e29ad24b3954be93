"""Content as the text of an answer."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.config.table import DEFAULT_ENCODING
from carrel.errors import TextError
from carrel.tools.core.encoding import ENCODINGS, DecodedContent, Encoding, decode_content


def test_text_comes_as_it_is() -> None:
    assert decode_content("grün".encode(), None, "utf-8", "f") == DecodedContent("utf-8", "grün")
    assert decode_content(b"gr\xfcn", None, "latin-1", "f") == DecodedContent("latin-1", "grün")
    assert decode_content(b"", None, "utf-8", "f") == DecodedContent("utf-8", "")


@pytest.mark.parametrize("content", [b"gr\xfcn", b"a\0b", b"\x89PNG\r\n\x1a\n\0"])
def test_what_is_not_text_comes_as_base64(content: bytes) -> None:
    assert decode_content(content, None, "utf-8", "f") == DecodedContent("base64", None)
    assert decode_content(content, None, "base64", "f") == DecodedContent("base64", None)


def test_zeros_are_text_where_text_is_requested() -> None:
    assert decode_content(b"a\0b", "utf-8", "utf-8", "f") == DecodedContent("utf-8", "a\0b")


def test_a_requested_encoding_is_used_or_refused() -> None:
    assert decode_content(b"abc", "base64", "utf-8", "f") == DecodedContent("base64", None)
    with pytest.raises(TextError, match="unable to decode 'f' with encoding 'ascii'"):
        decode_content("ü".encode(), "ascii", "utf-8", "f")


@given(content=st.binary(max_size=200), default=st.sampled_from(get_args(Encoding)))
def test_a_text_stands_for_just_its_content(content: bytes, default: str) -> None:
    found = decode_content(content, None, default, "f")
    assert (found.text is None) == (found.encoding == "base64")
    if found.text is not None:
        assert found.text.encode(found.encoding) == content


def test_just_these_can_be_configured() -> None:
    assert DEFAULT_ENCODING.kind.says == "one of " + ", ".join(f'"{name}"' for name in ENCODINGS)

"""What a file is called as a resource."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carrel.errors import RequestError, SessionIdError
from carrel.fronts.mcp.resource_uri import ResourceUri, parse_uri, render_uri

NAMES = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1)


@settings(max_examples=50)
@given(NAMES)
def test_every_path_can_be_said_and_understood(path: str) -> None:
    said = render_uri("s1", path)
    assert said.isascii()
    assert parse_uri(said, None) == ResourceUri("s1", path)
    assert parse_uri(render_uri(None, path), "s1") == ResourceUri("s1", path)


def test_a_name_that_is_no_text_can_be_said_too() -> None:
    assert render_uri(None, "a\udcff") == "carrel:///a%FF"
    assert parse_uri("carrel:///a%FF", "s1").path == "a\udcff"


@pytest.mark.parametrize("uri", ["carrel://s1", "carrel://s1/", "CARREL://s1/"])
def test_without_a_path_the_whole_session_is_meant(uri: str) -> None:
    assert parse_uri(uri, None) == ResourceUri("s1", ".")


def test_an_address_is_decoded_once() -> None:
    assert parse_uri("carrel://s1/%252e%252e/a", None).path == "%2e%2e/a"


@pytest.mark.parametrize(
    "uri",
    ["", "a.txt", "file:///etc/passwd", "carrel:a", "carrel:///a", "carrel://s1/a?b", "carrel://s1/a#b"],
)
def test_anything_else_is_no_address(uri: str) -> None:
    with pytest.raises(RequestError):
        parse_uri(uri, None)


@pytest.mark.parametrize("session", ["..", "a%2fb", ".carrel", "s1@s2", "s1:80", "s 1"])
def test_what_cannot_be_a_session_is_none(session: str) -> None:
    with pytest.raises(SessionIdError):
        parse_uri(f"carrel://{session}/a", None)

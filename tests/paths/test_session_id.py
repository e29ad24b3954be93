"""The one rule for session ids."""

from __future__ import annotations

import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.errors import SessionIdError
from carrel.paths.session_id import require_session_id
from tests.paths.settings import repeatable
from tests.requirements import requirement


@requirement("ID-08", "ID-09")
@pytest.mark.parametrize(
    "session_id",
    [
        "session-123",
        "user_abc",
        "session.1",
        "a",
        "0",
        "_",
        "A.b-c_d",
        "default",
        "a.b.c",
        "a" * 128,
        str(uuid.UUID(int=7, version=4)),
        "console",
        "com0",
        "nullable",
    ],
)
def test_a_good_id_comes_back_as_it_is(session_id: str) -> None:
    assert require_session_id(session_id) == session_id


@requirement("ID-04", "ID-05")
@pytest.mark.parametrize(
    "session_id", ["../etc", "..\\etc", "foo/bar", "foo\\bar", "/", "\\", "../escape", "session/../etc"]
)
def test_an_id_with_a_separator_says_so(session_id: str) -> None:
    with pytest.raises(SessionIdError, match="must not contain path separators"):
        require_session_id(session_id)


@requirement("ID-06", "ID-07", "ID-09", "ID-14")
@pytest.mark.parametrize(
    "session_id",
    [
        "",
        "session;rm -rf",
        ".hidden",
        ".hidden-session",
        ".",
        "..",
        "session..test",
        "a..b",
        "a.",
        "we ird\n",
        "abc\n",
        "a\0b",
        "a b",
        "\t",
        "\x1b[2J",
        "é",
        "ａ",
        "١",
        "\ud800",
        "a:b",
        "~",
        "$HOME",
        "con",
        "NUL",
        "Com1.txt",
        "lpt9",
    ],
)
def test_a_bad_id_is_refused(session_id: str) -> None:
    with pytest.raises(SessionIdError) as caught:
        require_session_id(session_id)
    assert caught.value.code == "session.invalid_id"
    assert isinstance(caught.value, ValueError)


@requirement("ID-08")
def test_an_id_of_129_characters_is_too_long_and_the_message_is_not() -> None:
    with pytest.raises(SessionIdError, match=re.escape("too long (max 128 chars)")):
        require_session_id("a" * 129)
    with pytest.raises(SessionIdError) as caught:
        require_session_id("/" * 10**6)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("session_id", [None, 1, b"abc", ["abc"], uuid.UUID(int=7)])
def test_what_is_no_text_is_no_id(session_id: object) -> None:
    with pytest.raises(SessionIdError, match="must be str"):
        require_session_id(session_id)


class Shifty(str):
    """Text that shows another face to whoever prints it."""

    def __str__(self) -> str:
        return "../evil"


def test_an_id_comes_back_as_the_plain_text_that_was_checked() -> None:
    checked = require_session_id(Shifty("abc"))
    assert type(checked) is str
    assert checked == "abc"


@repeatable
@given(st.text(max_size=140) | st.text("abcXYZ019._-", max_size=140))
def test_an_accepted_id_can_only_be_one_plain_name(text: str) -> None:
    try:
        checked = require_session_id(text)
    except SessionIdError:
        return
    assert checked == text
    assert 1 <= len(text) <= 128
    assert text.isascii()
    assert all(character.isalnum() or character in "._-" for character in text)
    assert not text.startswith(".")
    assert ".." not in text


@repeatable
@given(st.uuids(version=4))
def test_every_uuid_is_an_id(made: uuid.UUID) -> None:
    assert require_session_id(str(made)) == str(made)

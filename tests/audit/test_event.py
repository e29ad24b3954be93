"""One record, as a value and as a line."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.audit.event import Event

ODD = [
    "new\nline",
    "\x1b[31mred",
    "\u202eevil",
    "caf\udce9",
    "quo\"te'",
    "\0",
    "back\\slash",
    "世界",
    "\u2028",
    "",
]

texts = st.text(st.characters(exclude_categories=["Cs"]))
short_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
sizes = st.none() | st.integers(0, 2**63)
events = st.builds(
    Event,
    time_ns=st.integers(0, 2**63),
    session_id=st.none() | texts,
    actor=texts,
    operation=texts,
    path=short_texts,
    other_path=st.none() | short_texts,
    before_bytes=sizes,
    after_bytes=sizes,
    error=st.none() | texts,
)


def make(path: str) -> Event:
    return Event(time_ns=1, session_id="s", actor="host", operation="write", path=path, after_bytes=5)


@given(events)
def test_an_event_survives_its_line(event: Event) -> None:
    line = event.render(9)
    assert Event.parse(line.strip(b"\n"), 7) == dataclasses.replace(event, sequence=9)


@given(events)
def test_an_event_is_one_line_of_plain_characters(event: Event) -> None:
    line = event.render().strip(b"\n")
    assert all(0x20 <= byte < 0x7F for byte in line)


@pytest.mark.parametrize("path", ODD)
def test_a_path_with_anything_in_it_survives(path: str) -> None:
    event = make(path)
    assert Event.parse(event.render(), 0) == event
    assert event.render().strip(b"\n").count(b"\n") == 0


def test_every_torn_line_is_no_event() -> None:
    line = make("some/path").render().rstrip(b"\n")
    for length in range(len(line)):
        assert Event.parse(line[:length], 0) is None
    assert Event.parse(line, 0) is not None


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"{}", b"[]", b"null", b"1", b"[1,2]", b"\xff", b'[99,1,"s","a","w","p",null,1,1,null]'],
)
def test_what_is_not_ours_is_no_event(line: bytes) -> None:
    assert Event.parse(line, 0) is None


@given(st.binary(max_size=50))
def test_any_bytes_are_an_event_or_none(line: bytes) -> None:
    assert Event.parse(line, 0) is None

"""What a step says is told apart from what it prints, however it comes."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.adapters.smolagents import conversation
from carrel.adapters.smolagents.conversation import Conversation

MARK = b"\x1emark "


def line(message: object) -> bytes:
    return MARK + json.dumps(message).encode() + b"\n"


def heard(*pieces: bytes, max_bytes: int = 1000, **tools: Any) -> Conversation:
    talk = Conversation(MARK, tools, lambda is_all: {"all": is_all}, max_bytes=max_bytes)
    for piece in pieces:
        talk.receive("stdout", piece)
    return talk


def answers(talk: Conversation) -> list[Any]:
    found = []
    while size := talk.input.read(8):
        found.append(json.loads(talk.input.read(int.from_bytes(size, "big"))))
    return found


CALL = {"ask": "tool", "name": "double", "args": [4], "kwargs": {}}
SAID = b"a" + line(CALL) + b"b\x1e\x1emar\n" + line({"tell": "value", "value": 8}) + b"c"


@given(cuts=st.lists(st.integers(0, len(SAID)), max_size=8))
def test_it_does_not_matter_in_which_pieces_it_comes(cuts: list[int]) -> None:
    ends = sorted({0, len(SAID), *cuts})
    pieces = [SAID[begin:end] for begin, end in pairwise(ends)]
    talk = heard(*pieces, double=lambda number: 2 * number)
    assert talk.printed == "ab\x1e\x1emar\nc"
    assert answers(talk) == [{"value": 8}]
    assert (talk.value, talk.error, talk.final, talk.has_outcome) == (8, None, None, True)


def test_what_is_printed_is_kept_up_to_a_limit_in_the_order_in_which_it_came() -> None:
    talk = heard(b"one ", max_bytes=10)
    talk.receive("stderr", b"two ")
    talk.receive("stdout", b"three")
    assert talk.printed == "one two th\n(the rest of the output was dropped)"


def test_only_the_tools_that_were_given_are_called() -> None:
    for name in ("system", "__import__", "__class__", "", None, ["double"]):
        talk = heard(line({**CALL, "name": name}), double=abs)
        (answer,) = answers(talk)
        assert answer["error"] in ("NameError", "TypeError")


def test_what_a_tool_raises_is_told_to_the_code_that_called_it() -> None:
    def fails(*args: object) -> None:
        raise KeyError("not there")

    assert answers(heard(line(CALL), double=fails)) == [{"error": "KeyError", "message": "not there"}]
    (answer,) = answers(heard(line(CALL), double=lambda number: object()))
    assert answer == {"error": "TypeError", "message": "a value of type object cannot be passed"}


def test_the_first_final_answer_is_the_one() -> None:
    first = {"ask": "tool", "name": "final_answer", "args": [1], "kwargs": {}}
    talk = heard(line(first), line({**first, "args": [2]}), final_answer=lambda value: value)
    assert talk.final == (1,)
    assert answers(talk) == [{"ends": True}] * 2


def test_variables_are_given_as_they_are_asked_for() -> None:
    assert answers(heard(line({"ask": "variables", "all": True}))) == [{"value": {"all": True}}]


@pytest.mark.attack
@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"{",
        b"3",
        b"[]",
        b'{"ask": "nothing"}',
        b'{"ask": "tool"}',
        b'{"ask": "tool", "name": "double", "args": 3, "kwargs": {}}',
        b'{"ask": "tool", "name": "double", "args": [], "kwargs": {"$": "set", "of": []}}',
        b"\xff",
        b"[" * 100_000,
    ],
    ids=lambda message: message[:40].decode("latin-1"),
)
def test_a_message_that_makes_no_sense_is_answered_with_an_error(message: bytes) -> None:
    talk = heard(MARK + message + b"\n", double=abs)
    (answer,) = answers(talk)
    assert set(answer) == {"error", "message"}
    assert not talk.has_outcome


def test_an_end_that_cannot_be_read_is_an_error_of_the_step() -> None:
    talk = heard(line({"tell": "value", "value": {"$": "module"}}))
    assert talk.error == "the result of the code cannot be decoded: a value of an unknown kind"
    assert answers(talk) == []


@pytest.mark.attack
def test_a_message_that_does_not_end_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "MESSAGE_BYTES", 1000)
    talk = heard(MARK, *[b"x" * 600] * 10, b"\n", line(CALL), double=abs)
    refused, called = answers(talk)
    assert refused["message"] == "more than 1000 bytes cannot be passed"
    assert called == {"value": 4}
    assert talk.printed == ""

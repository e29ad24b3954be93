"""Brace expansion beyond the recorded cases of bash."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.errors import ShellSyntaxError
from carrel.shell.language.ast import LiteralText, Word
from carrel.shell.language.braces import MAX_WORDS, expand_braces
from carrel.shell.runtime.shell import BareShell
from carrel.workspace.workspace import Workspace


def texts(text: str) -> list[str]:
    """Return the expansion of an unquoted word."""
    words = expand_braces(Word((LiteralText(text, False),), 1))
    return ["".join(piece.text for piece in word.parts if isinstance(piece, LiteralText)) for word in words]


@pytest.mark.parametrize("text", ["{1..999999999}", "{a,b}" * 20, "{1..9999}{1,2}"])
def test_braces_that_stand_for_too_many_words_are_refused(text: str) -> None:
    with pytest.raises(ShellSyntaxError, match=f"more than {MAX_WORDS} words"):
        texts(text)


def test_braces_nested_too_deeply_are_refused() -> None:
    with pytest.raises(ShellSyntaxError, match="nested"):
        texts("{a," * 5000 + "b" + "}" * 5000)


@pytest.mark.parametrize("text", ["{" * 100_000, "}" * 100_000, "{a," * 50_000, "{}" * 50_000, "," * 100_000])
def test_braces_that_do_not_close_stand_for_themselves_at_once(text: str) -> None:
    assert texts(text) == [text]


@given(st.text("{},.a1'", max_size=30))
def test_no_braces_raise_anything_else_or_hang(text: str) -> None:
    try:
        found = texts(text)
    except ShellSyntaxError:
        return
    assert len(found) <= MAX_WORDS
    if "," not in text and ".." not in text:
        assert found == [text]


def test_a_line_with_too_many_braces_runs_nothing_and_says_why(tmp_path: Path) -> None:
    with Workspace.open(tmp_path) as workspace:
        result = BareShell(workspace).run("touch {1..100000}")
    assert result.exit_code != 0
    assert b"braces expand to more than" in result.stderr
    assert list(tmp_path.iterdir()) == []

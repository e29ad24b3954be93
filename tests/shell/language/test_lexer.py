"""Splitting of a command line into words and operators."""

from __future__ import annotations

import shlex
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carrel.errors import MetacharacterError, ShellSyntaxError
from carrel.shell.language.ast import LiteralText, OperatorToken, ParameterExpansion, Token, Word
from carrel.shell.language.lexer import MAX_COMMAND_CHARACTERS, lex

ANY_LINE = st.text(
    st.one_of(st.sampled_from("ab0 \t\n\r\\'\"$`|&;<>(){}#=~*?[]!-/"), st.characters()), max_size=40
)


def words(text: str) -> list[str]:
    """Return the words of a line without operators and variables."""
    found = []
    for token in lex(text):
        assert isinstance(token, Word)
        parts = [piece for piece in token.parts if isinstance(piece, LiteralText)]
        assert len(parts) == len(token.parts)
        found.append("".join(piece.text for piece in parts))
    return found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('"hello"" world"', ["hello world"]),
        (r"hello\ world", ["hello world"]),
        (r'"hello \"world\""', ['hello "world"']),
        (r"'a\nb'", [r"a\nb"]),
        (r'"a\nb"', [r"a\nb"]),
        (r'"\$ \` \\"', ["$ ` \\"]),
        ('echo ""', ["echo", ""]),
        ("echo ''", ["echo", ""]),
        ("a \t \t b  ", ["a", "b"]),
        ("a # b 'c", ["a"]),
        ("# nothing", []),
        ("a#b", ["a#b"]),
        ("a\\\nb", ["ab"]),
        ("a \\\n b", ["a", "b"]),
        ('"a\\\nb"', ["ab"]),
        ("a\\", ["a\\"]),
        ("a\\ ", ["a "]),
        ("$'a\\tb\\x41\\101\\u00e9\\'\\q'", ["a\tbAAé'\\q"]),
        ("$'\\xff'", ["\udcff"]),
        ("$'\udc80'", ["\udc80"]),
        ("a$ $ '$x' \\$y", ["a$", "$", "$x", "$y"]),
        ('"it\'s"', ["it's"]),
        ("a\x0bb c\u00a0d", ["a\x0bb", "c\u00a0d"]),
        ("'a\rb' \"c\nd\"", ["a\rb", "c\nd"]),
    ],
)
def test_quotes_and_escapes_are_read_as_in_sh(line: str, expected: list[str]) -> None:
    assert words(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("$a", [ParameterExpansion("a", False)]),
        ("${a}b", [ParameterExpansion("a", False), LiteralText("b", False)]),
        ("$?", [ParameterExpansion("?", False)]),
        ("${?}", [ParameterExpansion("?", False)]),
        ('"$a_1-"', [LiteralText("", True), ParameterExpansion("a_1", True), LiteralText("-", True)]),
        ('"$\'"', [LiteralText("", True), LiteralText("$", True), LiteralText("'", True)]),
    ],
)
def test_variables_are_distinguished_from_text(line: str, expected: list[object]) -> None:
    (word,) = lex(line)
    assert isinstance(word, Word)
    assert list(word.parts) == expected


@pytest.mark.parametrize(
    "line", ["$$", "$!", "$#", "$*", "$@", "$-", "$1", '"$0"', "${a:-b}", "${}", "${#a}"]
)
def test_what_a_variable_cannot_be_is_refused(line: str) -> None:
    with pytest.raises(ShellSyntaxError, match="supported"):
        lex(line)


@pytest.mark.parametrize("line", ["$(a)", '"$(a)"', "a$(", "$((1+1))", '"a `b`"', "`a`", '"`"'])
def test_the_output_of_a_command_is_refused_in_double_quotes_too(line: str) -> None:
    with pytest.raises(MetacharacterError) as caught:
        lex(line)
    assert caught.value.character == ("`" if "`" in line else "$(")
    assert caught.value.position == line.index("`" if "`" in line else "$(") + 1


@pytest.mark.parametrize("line", ["'$(a) `b`'", "\\`a", "'a\rb'", "a # $(b) `c`\r"])
def test_in_single_quotes_or_behind_a_backslash_they_are_plain(line: str) -> None:
    assert words(line)


@pytest.mark.parametrize(("line", "at"), [("a\rb", 2), ("\r", 1), ("a \\\r", 3)])
def test_a_carriage_return_is_refused_where_it_is_not_quoted(line: str, at: int) -> None:
    with pytest.raises(MetacharacterError) as caught:
        lex(line)
    assert caught.value.character == "\\r"
    assert caught.value.position == at


@pytest.mark.parametrize(
    ("line", "at"),
    [("a 'b", 3), ('a "b', 3), ('"a\\"', 1), ("$'a", 1), ("a ${b", 3), ("'", 1), ("\"a'b'", 1)],
)
def test_a_quote_that_is_not_closed_is_named_with_its_place(line: str, at: int) -> None:
    with pytest.raises(ShellSyntaxError, match="quoting") as caught:
        lex(line)
    assert caught.value.position == at


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a|b", ["|"]),
        ("a||b&&c;d", ["||", "&&", ";"]),
        ("a>b>>c<d", [">", ">>", "<"]),
        ("a 2>&1 2>b 1>>c", ["2>&", "2>", "1>>"]),
        ("a2>b", [">"]),
        ("a &>b &>>c", ["&>", "&>>"]),
        ("a\nb", ["\n"]),
        ("a&", ["&"]),
        ("(a)", ["(", ")"]),
        ("a <<b <<<c <>d", ["<<", "<<<", "<>"]),
    ],
)
def test_operators_need_no_space_around_them(line: str, expected: list[str]) -> None:
    assert [token.text for token in lex(line) if isinstance(token, OperatorToken)] == expected


def test_tokens_know_where_they_stand() -> None:
    assert [token.position for token in lex("ab  'c' |d")] == [1, 5, 9, 10]


def test_a_nul_and_half_a_character_are_refused_with_their_place() -> None:
    for line in ("ab\0", "ab\ud800", "ab\udfff"):
        with pytest.raises(ShellSyntaxError) as caught:
            lex(line)
        assert caught.value.position == 3


def test_nul_and_characters_that_are_none_are_refused_in_c_strings() -> None:
    for line in ("$'\\0'", "$'\\x00'", "$'\\ud800'", "$'\\U00110000'"):
        with pytest.raises(ShellSyntaxError):
            lex(line)


def test_a_line_that_is_too_long_is_refused() -> None:
    assert lex("a" * MAX_COMMAND_CHARACTERS)
    with pytest.raises(ShellSyntaxError, match="too long"):
        lex("a" * (MAX_COMMAND_CHARACTERS + 1))


@given(ANY_LINE)
@example("$'\\")
@example("${")
@example("\\")
def test_the_lexer_returns_tokens_or_a_syntax_error(line: str) -> None:
    tokens: list[Token] = []
    places: list[int | None] = []
    try:
        tokens = lex(line)
    except ShellSyntaxError as error:
        places = [error.position]
    places += [token.position for token in tokens]
    assert all(place is not None and 1 <= place <= len(line) for place in places)
    assert all(token.parts for token in tokens if isinstance(token, Word))


@given(st.text("ab \t'\"\\é-=.", max_size=30), st.sampled_from(["", "  # it's"]))
def test_the_lexer_agrees_with_shlex_where_both_are_defined(line: str, comment: str) -> None:
    line += comment
    try:
        expected = shlex.split(line, comments=True)
    except ValueError:
        return
    assert words(line) == expected


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=5))
def test_what_shlex_quotes_is_read_back(arguments: list[str]) -> None:
    assert words(shlex.join(arguments)) == arguments


@pytest.mark.parametrize(
    "piece",
    ['"', "'", "\\", "\\\\", '""', "$'", "$", "${a}", '"\\', "#", " ", "\\\n", "a'b'", "$'\\", "2>", "`"],
)
def test_reading_takes_a_number_of_steps_that_is_linear_in_the_length(piece: str) -> None:
    short, long = steps(piece * 200), steps(piece * 2000)
    assert long <= 10 * short + 500


def steps(line: str) -> int:
    """Count the lines of the lexer that run to read *line*."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:  # as `sys.settrace` wants it
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        lex(line)
    except ShellSyntaxError:
        pass
    finally:
        sys.settrace(before)
    return count

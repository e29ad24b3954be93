"""Parsing of command lines, and the syntax that is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.errors import MetacharacterError, ShellSyntaxError
from carrel.shell.language.ast import Connector, LiteralText, Pipeline, SimpleCommand, Word
from carrel.shell.language.parser import MAX_PIPELINE_COMMANDS, parse


def text(word: Word) -> str:
    return "".join(
        piece.text if isinstance(piece, LiteralText) else f"<{piece.name}>" for piece in word.parts
    )


def shape(line: str) -> list[str]:
    """Render each pipeline as a line of text."""
    return [
        f"{pipeline.connector}{'!' if pipeline.negated else ''} " + " | ".join(map(simple, pipeline.commands))
        for pipeline in parse(line, pipelines=True)
    ]


def simple(command: SimpleCommand) -> str:
    parts = [f"{name}={text(word)}" for name, word in command.assignments]
    parts += [text(word) for word in command.words]
    parts += [f"{each.stream}{each.operator}{text(each.target)}" for each in command.redirects]
    return " ".join(parts)


@pytest.mark.parametrize(
    ("line", "character", "position"),
    [
        ("cat a | head", "|", 7),
        ("cat a; pwd", ";", 6),
        ("cat a && pwd", "&&", 7),
        ("cat a || pwd", "||", 7),
        ("cat a > b", ">", 7),
        ("cat 2>b", ">", 5),
        ("cat < a", "<", 5),
        ("cat a >> b", ">>", 7),
        ("cat $(pwd)", "$(", 5),
        ("cat `pwd`", "`", 5),
        ("cat a\npwd", "\\n", 6),
        ("cat a\rpwd", "\\r", 6),
        ("cat a\r\n", "\\r", 6),
        ("cat a &", "&", 7),
        ("cat a &> b", "&>", 7),
        ("  cat a | head", "|", 9),
        ("\n cat a | head", "|", 9),
    ],
)
def test_without_pipelines_a_metacharacter_is_refused_by_name_and_place(
    line: str, character: str, position: int
) -> None:
    with pytest.raises(MetacharacterError) as caught:
        parse(line, pipelines=False)
    assert caught.value.character == character
    assert caught.value.position == position
    assert f"not allowed: {character} (at character {position}" in caught.value.message


@pytest.mark.parametrize("sign", ["|", ";", "&&", "||", ">", "<", ">>", "\n", "\r", "&", "$(", "`"])
def test_quoted_metacharacters_are_plain_text(sign: str) -> None:
    (pipeline,) = parse(f"cat 'a{sign}b'", pipelines=False)
    assert text(pipeline.commands[0].words[1]) == f"a{sign}b"


@pytest.mark.parametrize("sign", ["|", ";", "&&", "||", ">", "<", ">>", "\n", "\r", "&"])
def test_in_double_quotes_they_are_too(sign: str) -> None:
    (pipeline,) = parse(f'cat "a{sign}b"', pipelines=False)
    assert text(pipeline.commands[0].words[1]) == f"a{sign}b"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a b", ["; a b"]),
        ("a|b | c", ["; a | b | c"]),
        ("a && b || c; d", ["; a", "&& b", "|| c", "; d"]),
        ("! a | b", [";! a | b"]),
        ("! ! a", ["; a"]),
        ("a;", ["; a"]),
        ("a\n\nb\n", ["; a", "; b"]),
        ("\n \n a", ["; a"]),
        ("a &&\n b", ["; a", "&& b"]),
        ("a |\n b", ["; a | b"]),
        ("x=1 y= a z=2", ["; x=1 y= a z=2"]),
        ("x=1", ["; x=1"]),
        ("1x=1", ["; 1x=1"]),
        ("'x'=1", ["; x=1"]),
        ('x="a b"$y', ["; x=a b<y>"]),
        ("a > b < c 2>> d", ["; a 1>b 0<c 2>>d"]),
        ("> b", ["; 1>b"]),
        (">b a", ["; a 1>b"]),
        ("a >| b", ["; a 1>b"]),
        ("a 2>&1 >&2", ["; a 2>&1 1>&2"]),
        ("a &> b", ["; a 1>b 2>&1"]),
        ("a &>> b", ["; a 1>>b 2>&1"]),
        ("a if", ["; a if"]),
        ("# only", []),
        ("a # | b", ["; a"]),
        ("a\\ ", ["; a "]),
    ],
)
def test_a_line_is_read_as_in_sh(line: str, expected: list[str]) -> None:
    assert shape(line) == expected


def test_a_quoted_name_is_not_an_assignment() -> None:
    (pipeline,) = parse("'x'=1", pipelines=True)
    assert not pipeline.commands[0].assignments


def test_what_joins_two_pipelines_is_known_by_the_second() -> None:
    assert [each.connector for each in parse("a; b && c || d", pipelines=True)] == [
        Connector.ALWAYS, Connector.ALWAYS, Connector.AND, Connector.OR,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "position", "problem"),
    [
        ("|", 1, "unexpected '|'"),
        ("a | | b", 5, "unexpected '|'"),
        ("; a", 1, "unexpected ';'"),
        ("a ; ; b", 5, "unexpected ';'"),
        ("a |", 3, r"nothing follows '\|'"),
        ("a |\n", 3, r"nothing follows '\|'"),
        ("a &&", 3, "nothing follows '&&'"),
        ("a ||\n", 3, r"nothing follows '\|\|'"),
        ("!", 1, "nothing follows '!'"),
        ("a >", 3, "nothing follows '>'"),
        ("a > | b", 3, "nothing follows '>'"),
        ("a >& f", 6, "only streams 1 and 2"),
        ("a 2>&-", 6, "only streams 1 and 2"),
        ("a 3> f", 3, "only <, >, 1> and 2>"),
        ("a 0> f", 3, "only <, >, 1> and 2>"),
        ("a 1< f", 3, "only <, >, 1> and 2>"),
        ("if a", 1, "'if' is not supported"),
        ("a; while b", 4, "'while' is not supported"),
        ("{ a", 1, "'{' is not supported"),
    ],
)
def test_a_line_that_makes_no_sense_is_refused_with_its_place(line: str, position: int, problem: str) -> None:
    with pytest.raises(ShellSyntaxError, match=problem) as caught:
        parse(line, pipelines=True)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("line", "character"),
    [
        ("a &", "&"),
        ("a & b", "&"),
        ("(a)", "("),
        ("a )", ")"),
        ("a <<b", "<<"),
        ("a 2<<b", "<<"),
        ("a <<<b", "<<<"),
        ("a 0<<<b", "<<<"),
        ("a <>b", "<>"),
        ("a 3<>b", "<>"),
        ("a <&1", "<&"),
        ("a 0<&1", "<&"),
        ("a;;", ";;"),
        ("a |& b", "|&"),
        ("a\rb", "\\r"),
    ],
)
def test_signs_that_are_not_offered_are_refused_with_pipelines_too(line: str, character: str) -> None:
    with pytest.raises(MetacharacterError) as caught:
        parse(line, pipelines=True)
    assert caught.value.character == character


def test_a_pipeline_of_too_many_commands_is_refused() -> None:
    assert parse("|".join("a" * MAX_PIPELINE_COMMANDS), pipelines=True)
    with pytest.raises(ShellSyntaxError, match="commands in one pipeline"):
        parse("|".join("a" * (MAX_PIPELINE_COMMANDS + 1)), pipelines=True)


@given(st.text(st.sampled_from("ab0123 \n\\'\"$|&;<>(){}#=!"), max_size=20))
def test_the_parser_returns_commands_or_a_syntax_error(line: str) -> None:
    found: list[Pipeline] = []
    places: list[int | None] = []
    try:
        found = parse(line, pipelines=True)
    except ShellSyntaxError as error:
        places = [error.position]
    assert all(place is not None and 1 <= place <= len(line) for place in places)
    assert all(pipeline.commands for pipeline in found)


@given(st.text(st.sampled_from("ab |&;<>\n'\"\\$("), max_size=12))
def test_without_pipelines_at_most_one_command_is_ever_read(line: str) -> None:
    try:
        found = parse(line, pipelines=False)
    except ShellSyntaxError:
        return
    assert len(found) <= 1
    assert all(len(pipeline.commands) == 1 and not pipeline.commands[0].redirects for pipeline in found)

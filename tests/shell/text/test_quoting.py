"""Quoting of names in messages."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.shell.language.ast import LiteralText, Word
from carrel.shell.language.lexer import lex
from carrel.shell.text.quoting import decode, encode, quote, quote_if_needed

NAMES = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]) | st.sampled_from("'\"\\ \n$~#!\udcff"),
    max_size=12,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", "a"),
        ("a/b.c-d_e", "a/b.c-d_e"),
        ("", "''"),
        ("a b", "'a b'"),
        ("it's", '"it\'s"'),
        ("it's $x", "'it'\\''s $x'"),
        ("a\nb", "'a'$'\\n''b'"),
        ("\udcff", "''$'\\377'"),
        ("~a", "'~a'"),
        ("a~", "a~"),
        ("#a", "'#a'"),
        ("a#", "a#"),
        ("{", "'{'"),
        ("{a}", "{a}"),
        ("*", "'*'"),
        ("é", "é"),
    ],
)
def test_a_name_is_in_quotes_only_if_it_needs_them(name: str, expected: str) -> None:
    assert quote_if_needed(name) == expected


@given(NAMES)
def test_a_shown_name_can_be_pasted_back(name: str) -> None:
    for text in (quote_if_needed(name), quote(name)):
        (word,) = lex(text)
        assert isinstance(word, Word)
        assert "".join(piece.text for piece in word.parts if isinstance(piece, LiteralText)) == name


@given(st.binary(max_size=20))
def test_any_bytes_come_back_as_they_were(data: bytes) -> None:
    assert encode(decode(data)) == data


@pytest.mark.parametrize("name", ["a b", "it's", "a\nb", "-x\t", "~x", "a'\"b", "=", "a=b", "x]"])
def test_gnu_shows_names_in_the_same_way(name: str) -> None:
    tool = "/usr/bin/ls"
    if not os.path.exists(tool):
        pytest.skip("there is no GNU tool to compare with")
    argv = [tool, "--", f"/nowhere/{name}"]
    found = subprocess.run(argv, capture_output=True, check=False, env={"LC_ALL": "C"})
    line = decode(found.stderr)
    if "cannot access" not in line:
        pytest.skip("this is not GNU ls")
    assert line == f"{tool}: cannot access {quote(f'/nowhere/{name}')}: No such file or directory\n"

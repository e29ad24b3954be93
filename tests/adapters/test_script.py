"""Commands that come as words or as a call of `sh -c` mean in our shell what they mean elsewhere."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.adapters.script import ShellScript
from carrel.shell.runtime.shell import BareShell
from carrel.workspace.workspace import Workspace

CALLS = (
    ['printf "%s|" "$1" "$2"', "sh", "a b", "c"],
    ['printf "%s|" $1 $2', "sh", "a b", "*"],
    ["printf '%s|' '$1' \"\\$1\" \\$1", "sh", "a"],
    ['printf "%s|" "${1}2" "$0" "$#"', "name", "a", "b"],
    ['printf "%s|" "$@"', "sh", "a b", "", "$(id)"],
    ['printf "%s|" $@', "sh", "a b", "c"],
    ['printf "%s|" "$@"', "sh"],
    ['printf "%s|" "it\'s $1" \'$1\' # don\'t "$1"\nprintf "%s|" "$1"', "sh", "a"],
    ['printf "%s|" "a"$1"b$2"', "sh", "x", "y"],
    ['printf "%s|" "$3" "${10}"', "sh", "a"],
    ["printf '%s|' a#$1 'b\\'$1", "sh", "x"],
    ["printf '%s|' 'b\\' $1 'c'", "sh", "x"],
    ['printf "%s|" "$1"0 $10 "${1}" "\\"$1"', "sh", "x"],
)
"""What follows `sh -c`."""


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
def test_a_line_for_sh_prints_what_sh_prints(call: list[str], workspace: Workspace, directory: Path) -> None:
    sh = shutil.which("sh")
    assert sh is not None
    expected = subprocess.run([sh, "-c", *call], capture_output=True, check=False, cwd=directory)
    script = ShellScript.of(["sh", "-c", *call], shell=False)
    shell = BareShell(workspace, pipelines=True)
    assert shell.run(script.parameters).success
    result = shell.run(script.line)
    assert (result.exit_code, result.stdout, result.stderr) == (expected.returncode, expected.stdout, b"")


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(words=st.lists(TEXT, min_size=1))
def test_words_are_taken_as_they_are(words: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    with Workspace.open(_empty(tmp_path_factory)) as workspace:
        line = ShellScript.of(["printf", "%s\\0", *words], shell=False).line
        result = BareShell(workspace).run(line)
    assert result.stdout.decode().split("\0")[:-1] == words


@given(words=st.lists(TEXT, min_size=1))
def test_parameters_are_taken_as_they_are(words: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    script = ShellScript.of(["sh", "-c", 'printf "%s\\0" "$@"', "sh", *words], shell=False)
    with Workspace.open(_empty(tmp_path_factory)) as workspace:
        shell = BareShell(workspace)
        assert shell.run(script.parameters).success
        result = shell.run(script.line)
    assert result.stdout.decode().split("\0")[:-1] == words


def _empty(factory: pytest.TempPathFactory) -> Path:
    return factory.mktemp("ws")


@pytest.mark.parametrize("word", ["A=1", "while", "!", "{", "if", "~", "[[", "#"])
def test_a_first_word_is_a_command_whatever_it_looks_like(word: str, workspace: Workspace) -> None:
    line = ShellScript.of([word, "ls"], shell=False).line
    assert BareShell(workspace, pipelines=True).run(line).exit_code == 127


def test_other_calls_of_a_shell_are_commands_that_are_not_there(workspace: Workspace) -> None:
    for words in (["sh"], ["sh", "-c"], ["sh", "file"], ["fish", "-c", "ls"]):
        assert BareShell(workspace).run(ShellScript.of(words, shell=False).line).exit_code == 127


def test_parameters_are_no_variables_of_programs(workspace: Workspace) -> None:
    script = ShellScript.of(["sh", "-c", "env", "sh", "secret"], shell=False)
    shell = BareShell(workspace)
    shell.run(script.parameters)
    assert b"secret" not in shell.run(script.line).stdout

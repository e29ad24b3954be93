"""The manual pages agree with the help, and groff formats them without warnings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from carrel.fronts.cli.completion.command import SCRIPTS
from carrel.fronts.cli.help import EXAMPLES, commands_of
from carrel.fronts.cli.main import cli
from docs.manual import PAGES, bold, pages, plain
from tests.docs.pages import ROOT
from tests.engines import unavailable

MADE = pages()
NAMES = sorted(MADE)


def rendered(page: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Format the page for a terminal of 80 columns, without overstrikes."""
    groff = shutil.which("groff") or unavailable("needs groff")
    return subprocess.run(
        [groff, "-man", "-ww", "-Tutf8", "-P-cbou", "-rLL=80n", *options, str(PAGES / page)],
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        timeout=60,
        check=True,
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_not_stale(name: str) -> None:
    assert (PAGES / name).read_text() == MADE[name], "run: make docs"


def test_every_command_has_a_page_and_no_page_is_left_over() -> None:
    assert sorted(path.name for path in PAGES.iterdir()) == NAMES
    for name in EXAMPLES:
        assert f"carrel-{name.split(' ')[0]}.1".replace("-.", ".") in MADE


@pytest.mark.parametrize("name", NAMES)
def test_a_page_can_be_read_without_a_warning(name: str) -> None:
    done = rendered(name)
    assert done.stderr == ""
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_a_page_has_every_option_and_every_example_of_its_commands() -> None:
    for name, command in commands_of(cli):
        page = f"carrel-{name.split(' ')[0]}.1".replace("-.", ".")
        text = " ".join(rendered(page).stdout.split())
        for param in command.params:
            for option in param.opts if not getattr(param, "hidden", False) else ():
                assert not option.startswith("-") or option in text, (page, option)
        for line in EXAMPLES.get(name, ())[: 1 if " " in name else None]:
            assert line in text, (page, line)


def test_the_page_of_the_program_lists_the_exit_statuses() -> None:
    text = rendered("carrel.1").stdout
    for status in (0, 1, 2, 3, 4, 5, 70, 130, 141):
        assert re.search(rf"^ +{status} +\w", text, re.MULTILINE), status


@pytest.mark.parametrize(
    ("text", "roff"),
    [
        (".profile", "\\&.profile"),
        ("'quoted'", "\\(aqquoted\\(aq"),
        ("a \\b", "a \\eb"),
        ("--json", "\\-\\-json"),
        ("see `ls -l`", "see \\fBls \\-l\\fR"),
    ],
)
def test_no_character_is_taken_for_a_request(text: str, roff: str) -> None:
    assert plain(text) == roff
    assert bold("-x") == "\\fB\\-x\\fR"


def test_pages_and_scripts_are_installed_where_they_are_looked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert {ROOT / source: target for source, target in shared.items()} == {
        PAGES: "share/man/man1",
        **{
            ROOT / "src" / "carrel" / "fronts" / "cli" / "completion" / "scripts" / SCRIPTS[shell]: target
            for shell, target in (
                ("bash", "share/bash-completion/completions/carrel"),
                ("zsh", "share/zsh/site-functions/_carrel"),
                ("fish", "share/fish/vendor_completions.d/carrel.fish"),
            )
        },
    }
    assert all(Path(ROOT, source).exists() for source in shared)

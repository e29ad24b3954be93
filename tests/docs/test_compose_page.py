"""The Compose page agrees with `compose.yaml`, and its commands exist.

If Compose is installed, it validates the files of the page as well.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from carrel.config.table import KEYS
from carrel.fronts.cli.main import cli
from tests.docs.pages import ROOT, examples
from tests.engines import unavailable

PAGE = ROOT / "docs" / "how-to" / "deploy-with-compose.md"
FILES = [block.text for block in examples(PAGE, "yaml")]
LINES = [
    line for block in examples(PAGE, "sh") for line in block.text.splitlines() if "docker compose " in line
]
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]  # Any: any YAML


def words_from_service(line: str) -> list[str]:
    """Return the words of a line from the name of the service on, or nothing if it names none."""
    words = shlex.split(line.partition("docker compose ")[2], comments=True)
    service = next((place for place, word in enumerate(words) if word in SERVICES), None)
    return [] if service is None else words[service:]


def test_there_are_lines_and_files_to_look_at() -> None:
    assert len(LINES) > 10
    assert len(FILES) > 2


@pytest.mark.parametrize("line", LINES)
def test_a_line_names_a_service(line: str) -> None:
    assert words_from_service(line) or re.search(r"docker compose down\b", line), line


@pytest.mark.parametrize("line", [line for line in LINES if " run --rm carrel " in line])
def test_a_command_in_the_image_is_one_of_ours(line: str) -> None:
    command: click.Command = cli
    for word in words_from_service(line)[1:]:
        if not isinstance(command, click.Group):
            break
        command = command.commands[word]
    assert not isinstance(command, click.Group), line


@pytest.mark.parametrize("text", FILES)
def test_a_file_changes_what_is_there(text: str) -> None:
    variables = {key.variable for key in KEYS} | {"CARREL_CONFIG"}
    for name, service in yaml.safe_load(text)["services"].items():
        assert name in SERVICES or "image" in service
        assert service.get("environment", {}).keys() <= variables
        assert set(service.get("depends_on", ())) <= SERVICES.keys()


@pytest.mark.parametrize("text", FILES)
def test_compose_takes_the_file(text: str, tmp_path: Path) -> None:
    (tmp_path / "override.yaml").write_text(text)
    files = ["--file", str(ROOT / "compose.yaml"), "--file", str(tmp_path / "override.yaml")]
    done = subprocess.run(
        [*compose(), *files, "config", "--quiet"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def compose() -> list[str]:
    """Return the command of Compose: the Docker plugin, or the older standalone program."""
    for words in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(words[0]) and _succeeds([*words, "version"]):
            return words
    return unavailable("needs Compose")


def _succeeds(words: list[str]) -> bool:
    return subprocess.run(words, check=False, capture_output=True).returncode == 0

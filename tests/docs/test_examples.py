"""Every example in the documentation runs, and prints what its page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.command_line import execute, plain_words
from tests.docs.pages import PAGES, Example, examples, name_of
from tests.docs.service import GRPC, HTTP, Running, is_needed, serving
from tests.engines import PYTHON, require_engine

MARK = "\n-- the next block --\n"
FRAMEWORK = re.compile(r"use-with-[a-z-]+\.md")
"""Pages that import an agent framework, which takes seconds; their adapters have tests of their own."""


def pages(kind: str) -> list[ParameterSet]:
    """The pages with examples of a kind."""
    found = [page for page in PAGES if examples(page, kind)]
    heavy = [pytest.mark.thorough]
    return [
        pytest.param(page, id=name_of(page), marks=heavy if FRAMEWORK.fullmatch(page.name) else [])
        for page in found
    ]


def environment() -> dict[str, str]:
    """The environment with the `carrel` of this interpreter first."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def require_for(blocks: list[Example], patch: pytest.MonkeyPatch) -> None:
    """Name the engine and the image for tests if *blocks* need them; without an engine they are not run."""
    if any("container" in block.text for block in blocks):
        patch.setenv("CARREL_CONTAINER_ENGINE", require_engine())
        patch.setenv("CARREL_CONTAINER_IMAGE", PYTHON)


def run(*argv: str, cwd: Path, stdin: str = "", merged: bool = False) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merged else subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=environment(),
        timeout=120,
        check=False,
    )


def typed(line: str, directory: Path) -> str:
    """What a command line prints."""
    words = plain_words(line)
    if words is not None:
        return execute(*words, environ=environment(), cwd=directory, merged=True).out.decode()
    return run("bash", "-c", line, cwd=directory, merged=True).stdout


@contextmanager
def service(blocks: list[Example], directory: Path) -> Iterator[Running]:
    """The service that *blocks* ask, if they do."""
    if not any(is_needed(block.text) for block in blocks):
        yield Running(HTTP, GRPC)
        return
    with serving(directory, environment()) as running:
        yield running


@pytest.mark.parametrize("page", pages("python"))
def test_the_python_of_a_page_runs_and_prints_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = examples(page, "python")
    require_for(blocks, monkeypatch)
    script = f"\nprint({MARK!r}, end='')\n".join(block.text for block in blocks)
    with service(blocks, tmp_path) as running:
        done = run(sys.executable, "-W", "error", "-", cwd=tmp_path, stdin=running.there(script))
    assert done.returncode == 0, done.stderr
    printed = running.told(done.stdout).split(MARK)
    assert len(printed) == len(blocks)
    for block, text in zip(blocks, printed, strict=True):
        if block.prints is not None:
            assert text.rstrip("\n") == block.prints.rstrip("\n")


@pytest.mark.parametrize("page", pages("console"))
def test_the_commands_of_a_page_run_and_print_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = examples(page, "console")
    require_for(blocks, monkeypatch)
    with service(blocks, tmp_path) as running:
        for block in blocks:
            shown = ""
            for line in block.text.splitlines(keepends=True):
                if line.startswith("$ "):
                    shown += line + running.told(typed(running.there(line[2:]), tmp_path))
            assert shown == block.text


def test_most_pages_have_an_example() -> None:
    """So that a slip in the reading of blocks does not go unseen."""
    assert sum(len(examples(page, "python")) for page in PAGES) >= 20
    assert sum(block.prints is not None for page in PAGES for block in examples(page, "python")) >= 15
    assert sum(len(examples(page, "console")) for page in PAGES) >= 2

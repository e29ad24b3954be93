"""Every example in the documentation runs and prints the documented output."""

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
from tests.docs.pages import PAGES, ROOT, Example, examples, name_of
from tests.docs.service import GRPC, HTTP, Running, is_needed, serving
from tests.engines import PYTHON, require_engine

MARK = "\n-- the next block --\n"
FRAMEWORK = re.compile(r"use-with-[a-z-]+\.md")
"""Pages that import an agent framework, which takes seconds; the adapters have tests of their own."""

RUN_AGAIN = [ROOT / "README.md"]
"""Pages whose Python examples run a second time in the same directory."""


def pages(kind: str) -> list[ParameterSet]:
    """Return the pages with examples of a kind."""
    found = [page for page in PAGES if examples(page, kind)]
    heavy = [pytest.mark.thorough]
    return [
        pytest.param(page, id=name_of(page), marks=heavy if FRAMEWORK.fullmatch(page.name) else [])
        for page in found
    ]


def environment() -> dict[str, str]:
    """Return the environment with the `carrel` of this interpreter first in PATH."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def require_for(blocks: list[Example], patch: pytest.MonkeyPatch) -> None:
    """Configure the test engine and image if *blocks* need them; skip without an engine."""
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


def run_line(line: str, directory: Path) -> str:
    """Run a command line and return its output."""
    words = plain_words(line)
    if words is not None:
        return execute(*words, environ=environment(), cwd=directory, merged=True).out.decode()
    return run("bash", "-c", line, cwd=directory, merged=True).stdout


@contextmanager
def service(blocks: list[Example], directory: Path) -> Iterator[Running]:
    """Run a service if *blocks* call one."""
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
    with service(blocks, tmp_path) as running:
        run_blocks(blocks, tmp_path, running)


@pytest.mark.parametrize("page", RUN_AGAIN, ids=name_of)
def test_the_python_of_a_page_that_people_try_first_runs_again_in_the_same_directory(
    page: Path, tmp_path: Path
) -> None:
    blocks = examples(page, "python")
    with service(blocks, tmp_path) as running:
        for _ in range(2):
            run_blocks(blocks, tmp_path, running)


def run_blocks(blocks: list[Example], directory: Path, running: Running) -> None:
    """Run *blocks* as one script, and require the output that the page gives."""
    script = f"\nprint({MARK!r}, end='')\n".join(block.text for block in blocks)
    done = run(sys.executable, "-W", "error", "-", cwd=directory, stdin=running.with_actual_addresses(script))
    assert done.returncode == 0, done.stderr
    printed = running.with_page_addresses(done.stdout).split(MARK)
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
                    shown += line + running.with_page_addresses(
                        run_line(running.with_actual_addresses(line[2:]), tmp_path)
                    )
            assert shown == block.text


def test_most_pages_have_an_example() -> None:
    """Detect a mistake in the parsing of blocks."""
    assert sum(len(examples(page, "python")) for page in PAGES) >= 20
    assert sum(block.prints is not None for page in PAGES for block in examples(page, "python")) >= 15
    assert sum(len(examples(page, "console")) for page in PAGES) >= 2

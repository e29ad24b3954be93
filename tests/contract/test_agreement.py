"""All implementations give the same answers on any tree, and nothing outside is ever changed.

The examples are the same with every run. `CARREL_TEST_RANDOM=1` looks at others each time, and
`CARREL_TEST_EXAMPLES` says how many.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from carrel.errors import CarrelError, EscapeError
from carrel.fs.api import Files, Links
from carrel.paths.parsed_path import parse
from carrel.values import FileInfo
from tests.contract.operations import Operation
from tests.contract.places import IN_CONTAINERS, IN_MEMORY, HostPlace, Place, kinds_here, open_place
from tests.contract.places import read as read_all
from tests.contract.strategies import changes, looks, paths, trees
from tests.depth import IS_THOROUGH
from tests.engines import require_engine
from tests.paths.settings import repeatable
from tests.requirements import requirement

USUAL = [kind for kind in kinds_here() if IS_THOROUGH or kind not in IN_CONTAINERS]
"""Containers are in only when tests are thorough, because they take so much longer."""


@contextmanager
def same_tree(lines: Sequence[str], kinds: Sequence[str] = USUAL) -> Iterator[dict[str, Place]]:
    """One tree behind every implementation."""
    with tempfile.TemporaryDirectory(prefix="carrel-test-", dir=IN_MEMORY) as base:
        opened = {kind: open_place(kind, Path(base) / kind) for kind in kinds}
        for place in opened.values():
            place.plant(*lines)
        yield opened
        for place in opened.values():
            place.require_clean()
            place.files.close()


@requirement("P-05", "P-09", "P-11")
@repeatable
@given(trees(), st.lists(looks, min_size=1, max_size=8))
def test_all_see_the_same(lines: tuple[str, ...], operations: list[Operation]) -> None:
    with same_tree(lines) as opened:
        before = opened["kernel"].lines()
        for operation in operations:
            require_one_answer(operation, opened)
        assert require_one_tree(opened) == before


@requirement("P-12", "P-14", "P-15", "P-16", "W-09", "D-07")
@repeatable
@given(trees(), st.lists(changes | changes | looks, min_size=1, max_size=10))
def test_all_change_the_same(lines: tuple[str, ...], operations: list[Operation]) -> None:
    with same_tree(lines) as opened:
        for operation in operations:
            require_one_answer(operation, opened)
        require_one_tree(opened)


@settings(repeatable, max_examples=repeatable.max_examples // 5)
@given(trees(), st.lists(changes | changes | looks, min_size=1, max_size=10))
def test_files_in_a_container_change_the_same(lines: tuple[str, ...], operations: list[Operation]) -> None:
    require_engine()
    with same_tree(lines, ("kernel", "container")) as opened:
        for operation in operations:
            require_one_answer(operation, opened)
        require_one_tree(opened)


@repeatable
@given(trees(), st.lists(changes, min_size=1, max_size=6))
def test_a_refused_change_changes_nothing(lines: tuple[str, ...], operations: list[Operation]) -> None:
    with same_tree(lines) as opened:
        for operation in operations:
            before = require_one_tree(opened)
            for place in opened.values():
                if operation.run(place.files)[0] == "error":
                    assert place.lines() == before, operation


def require_one_answer(operation: Operation, opened: dict[str, Place]) -> None:
    answers = {kind: operation.run(place.files) for kind, place in opened.items()}
    note(f"{operation} -> {answers['kernel']}")
    assert answers == dict.fromkeys(opened, answers["kernel"]), operation


def require_one_tree(opened: dict[str, Place]) -> list[str]:
    found = {kind: place.lines() for kind, place in opened.items()}
    assert found == dict.fromkeys(opened, found["kernel"])
    return found["kernel"]


# The host as the judge


class Chroot:
    """Plain calls of `os` in a directory that is the root of everything for them."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).with_name("chroot_calls.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.works: bool = self._answer()

    def ask(self, directory: Path, calls: Sequence[tuple[str, str]]) -> list[list[object]]:
        """What the calls give in *directory*."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps([str(directory), calls]) + "\n")
        self._process.stdin.flush()
        answers: list[list[object]] = self._answer()
        return answers

    def _answer(self) -> Any:  # Any: what JSON holds
        assert self._process.stdout
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def chroot() -> Iterator[Chroot]:
    opened = Chroot()
    try:
        if not opened.works:
            if os.environ.get("CI") == "true":
                pytest.fail("these tests need root, and in CI they must run")
            pytest.skip("only root may chroot")
        yield opened
    finally:
        opened.close()


def _described(info: FileInfo) -> object:
    return [info.kind.value, info.size_bytes, info.mode, info.target]


LOOKS: dict[str, Callable[[Files, str], object]] = {
    "read": lambda files, path: read_all(files, path).decode("latin-1"),
    "stat": lambda files, path: _described(files.stat(parse(path), Links.FOLLOW)),
    "lstat": lambda files, path: _described(files.stat(parse(path), Links.KEEP)),
    "list": lambda files, path: sorted(info.name for info in files.list(parse(path), limit=None)),
}


@pytest.mark.root
@repeatable
@given(trees(), st.lists(st.tuples(st.sampled_from(sorted(LOOKS)), paths), min_size=1, max_size=12))
def test_what_does_not_lead_out_is_as_the_host_sees_it(
    chroot: Chroot, lines: tuple[str, ...], calls: list[tuple[str, str]]
) -> None:
    with same_tree(lines) as opened:
        kernel = opened["kernel"]
        assert isinstance(kernel, HostPlace)
        plain = chroot.ask(kernel.directory, [(name, path.replace("\\", "/")) for name, path in calls])
        for kind, place in opened.items():
            for (name, path), expected in zip(calls, plain, strict=True):
                try:
                    answer = ["ok", LOOKS[name](place.files, path)]
                except EscapeError:
                    continue
                except CarrelError as error:
                    answer = ["error", error.number]
                assert answer == expected, (kind, name, path)

"""What is written down about the suite of a framework is compared with what it does, in both directions."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.adapters.peer_suite import PeerSuite, differences, peer_suites

SUITE = """
import os
import pytest


class Suite:
    def test_passes(self): pass
    def test_fails(self): assert not "here"
    def test_is_skipped(self): pytest.skip("not here")
    @pytest.mark.xfail
    def test_is_known_to_fail(self): assert not "here"
    @pytest.fixture
    def broken(self): raise OSError
    def test_cannot_begin(self, broken): pass
    async def test_needs_a_plugin(self): pass
    def test_knows_nothing_of_the_outer_run(self): assert "PYTEST_OUTER_RUN" not in os.environ


class TestOurs(Suite):
    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self): return "asyncio"
"""
DATA = """
[own]
package = "pytest"
version = "{version}"
file = "suite.py"
options = ["-p", "anyio"]
passed = ["test_passes", "test_needs_a_plugin", "test_knows_nothing_of_the_outer_run"]

[own.skipped]
test_is_skipped = "not here"

[own.failed]
test_fails = "not here"

[own.error]
test_cannot_begin = "broken"

[own.xfailed]
test_is_known_to_fail = "not here"
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PeerSuite:
    monkeypatch.setenv("PYTEST_OUTER_RUN", "1")
    (tmp_path / "suite.py").write_text(SUITE, encoding="utf-8")
    (tmp_path / "data.toml").write_text(DATA.format(version=version("pytest")), encoding="utf-8")
    return peer_suites(tmp_path / "data.toml")["own"]


def told(suite: PeerSuite, root: Path) -> list[str]:
    return differences(suite, root / "report.xml", root=root)


def test_a_suite_that_ends_as_recorded_differs_in_nothing(suite: PeerSuite, tmp_path: Path) -> None:
    assert told(suite, tmp_path) == []


def test_every_other_end_is_told_and_so_are_missing_tests_reasons_and_versions(
    suite: PeerSuite, tmp_path: Path
) -> None:
    outcomes = dict(suite.outcomes) | {"test_passes": "failed", "test_fails": "passed", "test_gone": "passed"}
    del outcomes["test_is_skipped"]
    changed = replace(suite, outcomes=outcomes, version="0", reasons={"test_is_skipped": " "})
    assert told(changed, tmp_path) == [
        "test_is_skipped: no reason",
        f"pytest: recorded for 0, installed is {version('pytest')}",
        "test_fails: recorded as passed, is failed",
        "test_gone: recorded as passed, is missing",
        "test_is_skipped: recorded as missing, is skipped",
        "test_passes: recorded as failed, is passed",
    ]


def test_a_suite_that_cannot_be_run_is_no_suite_without_tests(suite: PeerSuite, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="own did not run"):
        told(replace(suite, file="nowhere.py"), tmp_path)


def test_data_with_a_slip_of_the_pen_is_refused(suite: PeerSuite) -> None:
    table = {"package": "pytest", "version": "0", "file": "suite.py", "passed": ["a"]}
    with pytest.raises(ValueError, match="unknown keys"):
        PeerSuite.parse("own", table | {"skiped": {}})
    with pytest.raises(ValueError, match="two outcomes"):
        PeerSuite.parse("own", table | {"failed": {"a": "why"}})

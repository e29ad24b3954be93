"""The suites that frameworks publish for their providers, and what of them our adapters fulfil.

`peer_suites.toml` has one table a suite:

    [NAME]
    package = "what to install for it"
    version = "the version that the outcomes are of"
    file = "the module with our subclass of the suite, from the root of the project"
    options = ["pytest", "options", "of", "that", "run"]
    passed = ["test_one", "test_two"]

    [NAME.skipped]
    test_three = "why it is skipped"

`failed`, `error` and `xfailed` are like `skipped`: what does not pass has a reason. A suite is run in a
process of its own, with no plugin but those that its options name, because frameworks need plugins that
would change our own tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).with_name("peer_suites.toml")
TIMEOUT_SECONDS = 240
PASSED = "passed"
NOT_PASSED = ("skipped", "failed", "error", "xfailed")


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSuite:
    """A suite of a framework, and how each of its tests ends with our adapter."""

    name: str
    package: str
    version: str
    file: str
    options: tuple[str, ...]
    outcomes: Mapping[str, str]
    reasons: Mapping[str, str]
    """Why a test does not pass, by its name."""

    @classmethod
    def parse(cls, name: str, table: Mapping[str, Any]) -> PeerSuite:
        """The suite that a table of the data describes."""
        known = {"package", "version", "file", "options", PASSED, *NOT_PASSED}
        if unknown := table.keys() - known:
            raise ValueError(f"{name}: unknown keys {sorted(unknown)}")
        told = [(test, PASSED) for test in table[PASSED]]
        told += [(test, outcome) for outcome in NOT_PASSED for test in table.get(outcome, {})]
        outcomes = dict(told)
        if len(outcomes) != len(told):
            raise ValueError(f"{name}: a test has two outcomes")
        reasons = {test: why for outcome in NOT_PASSED for test, why in table.get(outcome, {}).items()}
        return cls(
            name=name,
            package=table["package"],
            version=table["version"],
            file=table["file"],
            options=tuple(table.get("options", ())),
            outcomes=outcomes,
            reasons=reasons,
        )


def peer_suites(data: Path = DATA) -> dict[str, PeerSuite]:
    """Every suite of the data, by name."""
    tables = tomllib.loads(data.read_text(encoding="utf-8"))
    return {name: PeerSuite.parse(name, table) for name, table in tables.items()}


def differences(suite: PeerSuite, report: Path, *, root: Path = ROOT) -> list[str]:
    """Run *suite*, creating the file *report*; return the outcomes that differ from the recorded ones."""
    found = [f"{test}: no reason" for test, why in suite.reasons.items() if not why.strip()]
    if (installed := version(suite.package)) != suite.version:
        found.append(f"{suite.package}: recorded for {suite.version}, installed is {installed}")
    outcomes = run(suite, report, root=root)
    for test in sorted(outcomes.keys() | suite.outcomes.keys()):
        recorded, now = suite.outcomes.get(test, "missing"), outcomes.get(test, "missing")
        if recorded != now:
            found.append(f"{test}: recorded as {recorded}, is {now}")
    return found


def run(suite: PeerSuite, report: Path, *, root: Path = ROOT) -> dict[str, str]:
    """Run *suite* in a process of its own, and return how each test ended."""
    command = [sys.executable, "-m", "pytest", suite.file, f"--rootdir={root}", f"--junit-xml={report}"]
    command += ["-c", os.devnull, "--noconftest", "--import-mode=importlib", "-p", "no:cacheprovider", "-q"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(root)}
    ended = subprocess.run(
        [*command, *suite.options],
        cwd=root,
        env=environ,
        capture_output=True,
        check=False,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )
    if ended.returncode not in (0, 1):  # anything else: the suite itself could not be run
        raise AssertionError(f"{suite.name} did not run:\n{ended.stdout}{ended.stderr}")
    return _outcomes(report)


def _outcomes(report: Path) -> dict[str, str]:
    """How each test ended, by its name."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.attrib["name"]
        if name in found:
            raise AssertionError(f"two tests are named {name}")
        found[name] = _outcome(case)
    return found


def _outcome(case: ElementTree.Element) -> str:
    if case.find("failure") is not None:
        return "failed"
    if case.find("error") is not None:
        return "error"
    skipped = case.find("skipped")
    if skipped is None:
        return PASSED
    return "xfailed" if skipped.get("type") == "pytest.xfail" else "skipped"

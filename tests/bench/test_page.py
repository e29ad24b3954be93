"""The page about the benchmarks says what the data says, and what was not measured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench._areas import AREAS
from bench._errors import UnmeasuredError
from bench._files import PROJECT, Files
from bench._fresh import Fresh, Goal, Step
from bench._page import render, stands
from bench._results import Result, load, save
from bench._rows import OURS, Figure, Row, amount


def bench(*arguments: str | Path, into: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run benchmarks as `make bench` does, and write beneath *into*."""
    return subprocess.run(
        [sys.executable, "-m", "bench", "--into", into, *arguments],
        cwd=PROJECT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.thorough
def test_the_page_and_its_plots_are_what_the_data_gives() -> None:
    files = Files()
    assert files.there() == files.made(), "run: make bench ARGS=--render"


def test_every_benchmark_has_its_place_on_the_page() -> None:
    programs = {file.stem for file in (PROJECT / "bench").glob("[!_]*.py")}
    assert {area.name for area in AREAS} == programs


@pytest.mark.thorough
def test_one_that_cannot_run_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    nowhere = f"unix://{tmp_path}/none"
    done = bench(
        "--quick", "--dir", tmp_path, "containers", "tools", into=tmp_path, CARREL_TEST_ENGINE=nowhere
    )
    assert done.returncode == 0, done.stderr
    found = load(Files(tmp_path).results)
    assert found["containers"].unmeasured
    assert found["tools"].rows
    page = Files(tmp_path).page.read_text("utf-8")
    assert f"**Not measured**: {found['containers'].unmeasured}" in page
    assert "-m bench.tools --quick" in page
    assert str(tmp_path) not in page
    assert (tmp_path / "docs/images/bench-tools.svg").exists()


def test_one_that_breaks_is_told_and_fails_the_run(tmp_path: Path) -> None:
    done = bench("--dir", tmp_path / "none", "tools", into=tmp_path)
    assert done.returncode == 1
    assert "it failed" in Files(tmp_path).page.read_text("utf-8")


def test_what_was_found_before_stays_where_something_else_is_measured(tmp_path: Path) -> None:
    before = Result(date="2026-01-01", quick=False, seconds=1, unmeasured="it was late")
    save(Files(tmp_path).results, {"files": before})
    bench("--dir", tmp_path / "none", "tools", into=tmp_path)
    assert load(Files(tmp_path).results)["files"] == before


def test_a_reason_names_no_directory_of_the_machine() -> None:
    told = UnmeasuredError("no '/opt/tools/node' and no file:///srv/simple/x, but ../a/b")
    assert str(told) == "no 'node' and no x, but ../a/b"


def test_a_measured_result_comes_back_from_its_file(tmp_path: Path) -> None:
    row = Row(
        "read", "4 KiB", {OURS: Figure(2.0, best=1.0), "other": Figure(4.0, p99=5.0)}, {"third": "gone"}
    )
    result = Result(date="2026-01-01", quick=True, seconds=2.0, rows=(row,))
    save(tmp_path / "results.json", {"files": result})
    assert load(tmp_path / "results.json") == {"files": result}


@pytest.mark.parametrize(
    ("ours", "unit", "words"),
    [
        (100, "ms", "even"),
        (96, "ms", "even"),
        (10, "ms", "10× quicker"),
        (250, "ms", "2.5× slower"),
        (50, "MiB", "2.0× less"),
        (150, "MiB", "1.5× more"),
    ],
)
def test_a_ratio_is_said_in_words(ours: float, unit: str, words: str) -> None:
    row = Row("read", "", {OURS: Figure(ours), "other": Figure(100)}, unit=unit)
    assert stands(row, "other") == words


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0551, "ms", "55.1 µs"),
        (12_340, "µs", "12.3 ms"),
        (32_335, "ms", "32.3 s"),
        (0.02, "µs", "0.02 µs"),
        (3.678, "MiB", "3.68 MiB"),
    ],
)
def test_a_figure_is_told_in_the_unit_that_suits_it(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


def test_a_fresh_machine_is_told_in_seconds_and_in_shares() -> None:
    demo = Goal("make demo", [Step("compile", 90), Step("show", 10)])
    page = render({}, Fresh("2026-01-01", "Two cores.", [demo, Goal("make test", [Step("run", 250)])]))
    assert "| compile | 90 s | 90% |" in page
    assert "`make test`: 4 min 10 s in all, 100% of it: run. That is 2.5 times `make demo`." in page


def test_a_step_that_nobody_measured_is_said_so() -> None:
    page = render({}, Fresh("", "", [Goal("make demo", [Step("compile", None), Step("show", 10)])]))
    assert "`make demo`: not measured." in page
    assert "| compile | not measured |  |" in page

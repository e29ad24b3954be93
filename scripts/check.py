"""Run checks of the project, the static ones in parallel with the tests.

    python scripts/check.py MODE [OPTION...]

    lint       format, lint, types and import contracts
    quick      these, the tests of what changed, and quick ones, for under a minute
    all        these, and all tests
    core       tests that are neither slow nor need a Docker engine
    thorough   tests that repeat guards at length, and all that need a Docker engine
    coverage   all tests, those of `thorough` at the usual length; reports the lines that none of them reaches

The test files are divided into shares of about the same time, each run by a pytest of its own: nothing is
collected twice, and no test is reported from one process to another. A share prints its last line when it is
done, and everything if it failed. Options go to pytest, except `--slowest=COUNT`, which lists the slowest
tests; paths take the place of all tests. The exit status is 1 if anything failed. If UNSTEADY_FILE is set,
tests that failed are run once more, alone, and those that pass only then are added to that file instead of
failing the run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

BIN = Path(sys.executable).parent
CODE = ("src", "tests", "bench", "docs/generate.py", "docs/manual.py", "docs/reference_pages", "scripts")
STATIC = {
    "format": ("ruff", "format", "--check", *CODE),
    "lint": ("ruff", "check", *CODE),
    "types": ("mypy", *CODE),
    "imports": ("lint-imports",),
}
CORE = ("-m", "not slow and not engine")
ADAPTERS = "tests/adapters/"
"""Never in one share with others: the frameworks take so much memory that every fork takes twice as long."""
APART = ("tests/contract/", "tests/attack/test_strangers.py")
"""Files that are shares of their own in `thorough`, and the first to be run: they take longest there."""
PASSED, FAILED, NO_TESTS = 0, 1, 5
"""Exit statuses of pytest."""
WORKERS = (os.cpu_count() or 1) + 1
"""Shares run at a time: one more than processors, because many tests wait for a server or a program."""
SHARES = 4 * WORKERS
"""So many that the last ones end at about the same time."""
THOROUGH_SHARES = 3 * SHARES
"""More, because the times of `all` say little about tests that only `thorough` runs."""
SECONDS = Path(".cache/test-seconds.json")
"""How long each test file took in the last run of `all`."""
COVERAGE = ".coverage"
"""What `coverage` measures is kept here; each share adds its number."""
TIME_BOX = 45
"""Seconds after which `quick` starts no further test, so that it ends within a minute."""
QUICK = (
    *("tests/test_tree.py", "tests/test_mutants.py", "tests/test_errors.py", "tests/test_requirements.py"),
    *(
        "tests/paths",
        "tests/policy",
        "tests/audit",
        "tests/config",
        "tests/fs",
        "tests/shell",
        "tests/workspace",
        "tests/storage",
        "tests/sessions",
    ),
)
"""What `quick` runs after the tests of what changed: many guards per second."""
MEMORY = Path("/dev/shm")  # noqa: S108  # only a directory with a random name is made in it
MEMORY_BYTES = 4 * 2**30
"""Free space in `MEMORY` from which on the files of tests are kept there."""


@dataclass(frozen=True, slots=True)
class Part:
    """One check that has run."""

    name: str
    failed: bool
    seconds: float


@dataclass(slots=True)
class Results:
    """What all shares of a run of tests have found."""

    failed: list[str] = field(default_factory=list)
    """The ids of the tests."""
    is_broken: bool = False
    """Whether a share ended in another way than by its tests."""
    outcomes: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    """How many tests were skipped for each reason."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each test took."""


def run_static(name: str) -> Part:
    """Run a static check, and show its output if it fails."""
    begin = time.monotonic()
    done = _run(STATIC[name])
    if done.returncode:
        print(f"\n== {name} failed\n{done.stdout}", flush=True)
    return Part(name, done.returncode != 0, time.monotonic() - begin)


def _run(words: Sequence[str], environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program of the virtual environment that runs this; both its streams are collected as one."""
    return subprocess.run(
        [BIN / words[0], *words[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environ,
        check=False,
    )


def run_tests(mode: str, options: Sequence[str]) -> Part:
    """Run the tests of *mode*, and those that failed once more if the environment asks for it."""
    begin = time.monotonic()
    paths = [option for option in options if Path(option.partition("::")[0]).exists()]
    slowest = [option for option in options if option.startswith("--slowest=")]
    options = [option for option in options if option not in (*paths, *slowest)]
    environ = {**os.environ, "THOROUGH": "1" if mode == "thorough" else ""}
    results = Results()
    with _temporary_directory() as place, ThreadPoolExecutor(WORKERS) as pool:
        shares = enumerate(_shares(mode, paths))
        running = [
            pool.submit(_run_share, [*words, *options], environ, place / str(number), results)
            for number, words in shares
        ]
    for share in running:
        share.result()
    if mode == "all":
        _remember(results)
    if mode == "coverage":
        _report_coverage()
    for option in slowest:
        _print_slowest(results, int(option.partition("=")[2]))
    has_failed = bool(results.failed) and not _pass_now(results.failed, environ)
    for reason, count in results.skipped.items():
        print(f"skipped {count}: {reason}")
    found = ", ".join(f"{results.outcomes[name]} {name}" for name in ("passed", "failed", "skipped"))
    print(f"tests: {found}", flush=True)
    is_empty = not results.outcomes and not options
    return Part("tests", has_failed or results.is_broken or is_empty, time.monotonic() - begin)


def _run_share(words: Sequence[str], environ: Mapping[str, str], place: Path, results: Results) -> None:
    """Run one pytest, and add what it found to *results*."""
    report = place / "report.xml"
    place.mkdir()
    settings = (f"cache_dir={place / 'cache'}", "junit_family=xunit1")
    kept = (f"--junitxml={report}", f"--basetemp={place / 'files'}")
    own = {**environ, "COVERAGE_FILE": f"{COVERAGE}.{place.name}"}
    done = _run(("pytest", "-q", *(f"-o{setting}" for setting in settings), *kept, *words), own)
    *_, last = done.stdout.rstrip().rsplit("\n", 1)
    print(done.stdout if done.returncode not in (PASSED, NO_TESTS) else last.strip("= "), flush=True)
    results.is_broken |= done.returncode not in (PASSED, FAILED, NO_TESTS)
    failed = place / "cache/v/cache/lastfailed"
    if failed.exists():
        results.failed += json.loads(failed.read_text("utf-8"))
    if report.exists():
        _read_report(report, results)
    shutil.rmtree(place, ignore_errors=True)


def _read_report(report: Path, results: Results) -> None:
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314  # pytest wrote it
        results.seconds[f"{case.get('file')}::{case.get('name')}"] = float(case.get("time", 0))
        found = {child.tag: child for child in case}
        if "failure" in found or "error" in found:
            results.outcomes["failed"] += 1
        elif "skipped" in found:
            results.outcomes["skipped"] += 1
            results.skipped[found["skipped"].get("message", "")] += 1
        else:
            results.outcomes["passed"] += 1


def _pass_now(failures: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether tests pass when they are run again, alone; they are written down."""
    unsteady = os.environ.get("UNSTEADY_FILE")
    if not unsteady:
        return False
    print("\n== failed, and run again alone", flush=True)
    done = _run(("pytest", "-q", "--everything", *failures), environ)
    print(done.stdout, flush=True)
    if done.returncode == PASSED:
        with open(unsteady, "a", encoding="utf-8") as file:
            file.writelines(f"{failure}\n" for failure in failures)
    return done.returncode == PASSED


def _report_coverage() -> None:
    """Print what the shares together have covered."""
    print(_run(("coverage", "combine", "-q", *map(str, Path().glob(f"{COVERAGE}.*")))).stdout, end="")
    print(_run(("coverage", "report")).stdout, flush=True)


def _print_slowest(results: Results, count: int) -> None:
    print(f"\n== the {count} slowest tests")
    for name, seconds in sorted(results.seconds.items(), key=lambda item: -item[1])[:count]:
        print(f"{seconds:7.2f} s  {name[:150]}")


# Shares


def _shares(mode: str, paths: Sequence[str]) -> list[list[str]]:
    """The words for each pytest of *mode*, those that take longest first."""
    if mode == "quick":
        changed, quick = _selected(_changed())
        return [[*CORE, *share] for share in (*_divided(changed), *_divided(quick))]
    is_long = mode in ("thorough", "coverage")
    found = _divided(_files(paths or ["tests"]), THOROUGH_SHARES if is_long else SHARES, is_long=is_long)
    match mode:
        case "core":
            return [[*CORE, *share] for share in found]
        case "thorough":
            marks = ("(thorough or deeper) and not engine",), ("thorough and engine", "--everything")
            return [["-m", *mark, *share] for share in found for mark in marks]
        case "coverage":
            return [["--everything", "--cov", "--cov-report=", *share] for share in found]
    return found


def _files(paths: Sequence[str]) -> list[str]:
    """The test files in *paths*, which may name single tests too."""
    found: list[str] = []
    for path in paths:
        below = sorted(map(str, Path(path).rglob("test_*.py"))) if Path(path).is_dir() else [path]
        found += below
    return list(dict.fromkeys(found))


def _divided(files: Sequence[str], count: int = SHARES, *, is_long: bool = False) -> list[list[str]]:
    """Neighbours together, because they share servers and guests, in shares of about the same time."""
    known = _seconds()
    weights = {file: known.get(file.partition("::")[0], 1.0) for file in files}
    full = max(1.0, sum(weights.values()) / count)
    weights |= {file: 2 * full for file in files if is_long and file.startswith(APART)}
    shares: list[list[str]] = []
    weight = 0.0
    for file in files:
        is_apart = not shares or shares[-1][-1].startswith(ADAPTERS) != file.startswith(ADAPTERS)
        if is_apart or weight + weights[file] / 2 > full:
            shares.append([])
            weight = 0.0
        shares[-1].append(file)
        weight += weights[file]
    return sorted(shares, key=lambda share: -sum(weights[file] for file in share))


def _remember(results: Results) -> None:
    """Keep how long each file took, for the next run."""
    known: dict[str, float] = {}
    for name, seconds in results.seconds.items():
        file = name.partition("::")[0]
        known[file] = known.get(file, 0) + seconds
    if known:
        seconds_of = {**_seconds(), **{name: round(seconds, 2) for name, seconds in known.items()}}
        SECONDS.parent.mkdir(exist_ok=True)
        SECONDS.write_text(json.dumps(seconds_of, indent=0), encoding="utf-8")


def _seconds() -> dict[str, float]:
    found: dict[str, float] = json.loads(SECONDS.read_text("utf-8")) if SECONDS.exists() else {}
    return found


@contextmanager
def _temporary_directory() -> Iterator[Path]:
    """A directory for the files of tests, in memory where there is room.

    On disk a third of the time would go into making and removing them. Tests that are run again use the disk.
    """
    is_roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES
    with TemporaryDirectory(prefix="carrel-tests-", dir=MEMORY if is_roomy else None) as place:
        yield Path(place)


# What changed


def _changed() -> list[str]:
    """Files that differ from the last commit, new ones included."""
    listed = (("diff", "--name-only", "HEAD"), ("ls-files", "--others", "--exclude-standard"))
    found = [subprocess.run(["git", *words], capture_output=True, text=True, check=True) for words in listed]
    return [line for done in found for line in done.stdout.splitlines() if Path(line).exists()]


def _selected(changed: Sequence[str]) -> tuple[list[str], list[str]]:
    """The test files that are changed or name a changed module, and the quick ones besides."""
    modules = [_module(path) for path in changed if path.endswith(".py")]
    named = re.compile("|".join(rf"\b{re.escape(module)}\b" for module in modules) or "(?!)")
    tests = _files(["tests"])
    touched = [path for path in tests if path in changed or named.search(Path(path).read_text("utf-8"))]
    if any(path.endswith(".md") for path in changed):
        touched.append("tests/docs/test_pages.py")
    return touched, [path for path in _files(QUICK) if path not in touched and Path(path).exists()]


def _module(path: str) -> str:
    """The name by which tests import a file."""
    return path.removesuffix(".py").removesuffix("/__init__").removeprefix("src/").replace("/", ".")


def main(mode: str, *options: str) -> int:
    """Run the checks of *mode* and print how long each took."""
    os.environ["CHECK_UNTIL"] = str(time.monotonic() + TIME_BOX) if mode == "quick" else ""
    with ThreadPoolExecutor(len(STATIC)) as pool:
        static = [pool.submit(run_static, name) for name in STATIC if mode in ("lint", "quick", "all")]
        tests = [] if mode == "lint" else [run_tests(mode, options)]
        parts = [*(part.result() for part in static), *tests]
    for part in parts:
        print(f"{'FAILED' if part.failed else 'ok':6} {part.name:10} {part.seconds:6.1f} s")
    return 1 if any(part.failed for part in parts) else 0


if __name__ == "__main__":
    if sys.argv[1:2] not in [[mode] for mode in ("lint", "quick", "all", "core", "thorough", "coverage")]:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))

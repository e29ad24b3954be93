"""Run checks of the project, the static ones beside the tests.

    python scripts/check.py MODE [OPTION...]

    lint       format, lint, types and import contracts
    quick      these, the tests of what changed, and quick ones, for under a minute
    all        these, and all tests
    core       tests that are neither slow nor need a Docker engine
    thorough   tests that repeat guards at length, and all that need a Docker engine

Options go to pytest. Tests print as they run; a static check prints only if it fails. The exit status is 1 if
anything failed. If UNSTEADY_FILE is set, tests that failed are run once more, alone, and those that pass only
then are added to that file instead of failing the run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

BIN = Path(sys.executable).parent
CODE = ("src", "tests", "bench", "docs/generate.py", "docs/manual.py", "docs/reference_pages", "scripts")
STATIC = {
    "format": ("ruff", "format", "--check", *CODE),
    "lint": ("ruff", "check", *CODE),
    "types": ("mypy", *CODE),
    "imports": ("lint-imports",),
}
ADAPTERS = "tests/adapters"
"""Run apart: the frameworks take so much memory that every fork beside them takes twice as long."""
CORE = ("-q", "-m", "not slow and not engine")
FAILED, NO_TESTS = 1, 5
"""Pytest's exit status if tests failed, and if none was selected."""
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
WORKERS = 2 * (os.cpu_count() or 1)
"""Test processes: more than processors, because many tests wait for a server or a program."""
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
    ),
)
"""What `quick` runs after the tests of what changed: many guards per second."""


@dataclass(frozen=True, slots=True)
class Tests:
    """One run of pytest."""

    name: str
    arguments: Sequence[str]
    thorough: bool = False
    """Whether tests go as deep as they can."""


@dataclass(frozen=True, slots=True)
class Part:
    """One check that has run."""

    name: str
    failed: bool
    seconds: float


def run_static(name: str) -> Part:
    """Run a static check, and show its output if it fails."""
    begin = time.monotonic()
    done = subprocess.run(
        _program(*STATIC[name]), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        print(f"\n== {name} failed\n{done.stdout.decode(errors='replace')}", flush=True)
    return Part(name, done.returncode != 0, time.monotonic() - begin)


def run_tests(tests: Tests, options: Sequence[str]) -> Part:
    """Run tests, and those that failed once more if the environment asks for it."""
    begin = time.monotonic()
    LAST_FAILED.unlink(missing_ok=True)
    environment = {**os.environ, "THOROUGH": "1" if tests.thorough else ""}
    argv = _program("pytest", f"-n{WORKERS}", "--dist=worksteal", *tests.arguments, *options)
    status = subprocess.run(argv, env=environment, check=False).returncode
    unsteady = os.environ.get("UNSTEADY_FILE")
    if status == FAILED and unsteady:
        failures = json.loads(LAST_FAILED.read_text("utf-8"))
        print("\n== failed, and run again alone", flush=True)
        argv = _program("pytest", "-q", "--everything", *failures)
        status = subprocess.run(argv, env=environment, check=False).returncode
        if status == 0:
            with open(unsteady, "a", encoding="utf-8") as file:
                file.writelines(f"{failure}\n" for failure in failures)
    return Part(tests.name, status not in ((0, NO_TESTS) if options else (0,)), time.monotonic() - begin)


def _program(name: str, *arguments: str) -> list[str | Path]:
    """A program of the virtual environment that runs this."""
    return [BIN / name, *arguments]


def runs(mode: str) -> list[Tests]:
    """The runs of tests in *mode*, one after the other."""
    match mode:
        case "quick":
            return [Tests("tests", (*CORE, "-rs", "--dist=load", *_selected(_changed())))]
        case "all":
            return [Tests("tests", (f"--ignore={ADAPTERS}",)), Tests("adapters", (ADAPTERS,))]
        case "core":
            return [Tests("tests", (*CORE, f"--ignore={ADAPTERS}")), Tests("adapters", (*CORE, ADAPTERS))]
        case "thorough":
            return [
                Tests("tests", ("-m", "(thorough or deeper) and not engine"), thorough=True),
                Tests("engine", ("-m", "thorough and engine", "--everything")),
            ]
    return []


def _changed() -> list[str]:
    """Files that differ from the last commit, new ones included."""
    listed = (("diff", "--name-only", "HEAD"), ("ls-files", "--others", "--exclude-standard"))
    found = [subprocess.run(["git", *words], capture_output=True, text=True, check=True) for words in listed]
    return [line for done in found for line in done.stdout.splitlines() if Path(line).exists()]


def _selected(changed: Sequence[str]) -> list[str]:
    """The test files that are changed or name a changed module, and then the quick ones."""
    modules = [_module(path) for path in changed if path.endswith(".py")]
    named = re.compile("|".join(rf"\b{re.escape(module)}\b" for module in modules) or "(?!)")
    tests = sorted(map(str, Path("tests").rglob("test_*.py")))
    touched = [path for path in tests if path in changed or named.search(Path(path).read_text("utf-8"))]
    if any(path.endswith(".md") for path in changed):
        touched.append("tests/docs/test_pages.py")
    return list(dict.fromkeys((*touched, *(path for path in QUICK if Path(path).exists()))))


def _module(path: str) -> str:
    """The name by which tests import a file."""
    return path.removesuffix(".py").removesuffix("/__init__").removeprefix("src/").replace("/", ".")


def main(mode: str, *options: str) -> int:
    """Run the checks of *mode* and print how long each took."""
    os.environ["CHECK_UNTIL"] = str(time.monotonic() + TIME_BOX) if mode == "quick" else ""
    with ThreadPoolExecutor(len(STATIC)) as pool:
        static = [pool.submit(run_static, name) for name in STATIC if mode in ("lint", "quick", "all")]
        tests = [run_tests(each, options) for each in runs(mode)]
        parts = [*(part.result() for part in static), *tests]
    for part in parts:
        print(f"{'FAILED' if part.failed else 'ok':6} {part.name:10} {part.seconds:6.1f} s")
    return 1 if any(part.failed for part in parts) else 0


if __name__ == "__main__":
    if sys.argv[1:2] not in [[mode] for mode in ("lint", "quick", "all", "core", "thorough")]:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))

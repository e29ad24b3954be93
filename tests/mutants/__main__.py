"""Take out one guard at a time and see whether a test notices.

Each mutant is a copy of the sources with one piece of text replaced. The test named by the mutant must fail
on it; if it passes, the mutant has survived, and a hole of that shape would go unseen.

    python -m tests.mutants            all of them, and the tests on the unchanged sources
    python -m tests.mutants NAME...    only those
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.mutant import Mutant, StaleError
from tests.mutants.table import MUTANTS

TOP = Path(__file__).resolve().parents[2]
SOURCES = TOP / "src"
CACHE = TOP / ".cache"
"""Where copies of the sources are linked, because links do not cross file systems."""
SECONDS = 120
"""Tests that hang on a mutant have noticed it."""
WORKERS = (os.cpu_count() or 1) + 1
"""One more than processors, because some tests hang on their mutant."""
RUN = """
import sys
import carrel
import pytest
if not carrel.__file__.startswith(sys.argv[1] + "/"):
    sys.exit(f"the tests would run on {carrel.__file__}, not on {sys.argv[1]}")
sys.exit(10 + pytest.main(sys.argv[2:]))
"""
PASSED, FAILED = 10, 11
"""The exit status of the above; any other means that the tests were not run."""


class BrokenError(Exception):
    """The tests could not be run at all."""


def run_tests(
    sources: Path, tests: Iterable[str], place: Path, seconds: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run tests on the package in *sources*, and be sure that it is that one."""
    path = os.pathsep.join((str(sources), str(TOP)))
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    # As little as will do: most of the time goes into starting.
    options = ["-x", "-q", "--everything", "-p", "no:cacheprovider", "-p", "pytest_timeout"]
    return subprocess.run(
        [sys.executable, "-c", RUN, str(sources), *options, f"--basetemp={place / 'tmp'}", *tests],
        cwd=TOP,
        env=environment,
        capture_output=True,
        text=True,
        errors="backslashreplace",
        timeout=seconds,
        check=False,
    )


def survives(mutant: Mutant) -> bool:
    """Whether the tests of *mutant* pass on it.

    Raises:
        StaleError: The sources have changed, and the mutant has to follow.
        BrokenError: The tests could not be run.
    """
    CACHE.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=CACHE) as copy,
        tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True) as place,
    ):
        sources = Path(copy) / "src"
        shutil.copytree(SOURCES, sources, copy_function=os.link)
        changed = sources / "carrel" / mutant.file
        text = mutant.applied(sources)
        changed.unlink()  # the file itself is shared with the sources
        changed.write_text(text, encoding="utf-8")
        try:
            done = run_tests(sources, [mutant.tests], Path(place))
        except subprocess.TimeoutExpired:
            return False
    if done.returncode not in (PASSED, FAILED):
        raise BrokenError(f"the tests of mutant {mutant.name!r} were not run\n{done.stdout}{done.stderr}")
    return done.returncode == PASSED


def verdict(mutant: Mutant) -> str:
    """What became of *mutant*."""
    try:
        # Twice, because a test that depends on chance may miss it once.
        return "SURVIVED" if survives(mutant) and survives(mutant) else "killed"
    except StaleError as error:
        return f"STALE: {error}"
    except BrokenError as error:
        return f"BROKEN: {error}"


def timed_verdict(mutant: Mutant) -> tuple[str, float]:
    """What became of *mutant*, and how many seconds that took."""
    begin = time.monotonic()
    return verdict(mutant), time.monotonic() - begin


def unchanged() -> str:
    """What the tests of all mutants say of the sources as they are; nothing if they pass."""
    tests = sorted({mutant.tests for mutant in MUTANTS})
    with tempfile.TemporaryDirectory(prefix="mutant-") as place:
        done = run_tests(SOURCES, tests, Path(place), seconds=10 * SECONDS)
    return "" if done.returncode == PASSED else f"{done.stdout}{done.stderr}"


def main(names: list[str]) -> int:
    """Run the mutants with these names, or all; the exit status is 1 unless all are killed."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    killed = 0
    with ThreadPoolExecutor(WORKERS) as pool:
        reference = None if names else pool.submit(unchanged)
        for mutant, (became, seconds) in zip(chosen, pool.map(timed_verdict, chosen), strict=True):
            print(f"{became:10} {seconds:5.1f} s  {mutant.name}", flush=True)
            killed += became == "killed"
        problem = reference.result() if reference else ""
    if problem:
        print(f"the tests do not pass on the unchanged sources:\n{problem}", file=sys.stderr)
    print(f"{killed} of {len(chosen)} mutants killed")
    return 0 if killed == len(chosen) > 0 and not problem else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

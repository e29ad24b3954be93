"""What every benchmark does: parse its options, measure in a temporary directory, and print the results."""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from bench import _report
from bench._aims import Aim
from bench._errors import UnmeasuredError
from bench._machine import load, machine, packages
from bench._packages import packages_directory
from bench._rows import Row


@dataclass(frozen=True, slots=True)
class Given:
    """What a benchmark is given to work with."""

    base: Path
    """A directory of its own, removed in the end."""
    quick: bool
    """Small counts: some seconds, rough ratios."""
    others: Path
    """Where other packages and programs are installed."""


class Bench(Protocol):
    """Something to measure, row by row."""

    def versions(self) -> Mapping[str, str]:
        """What is measured besides ours, and of which version."""
        ...

    def run(self) -> Iterator[Row]:
        """Measure, one row after the other."""
        ...

    def aims(self, rows: Sequence[Row]) -> list[Aim]:
        """The aims, and their results."""
        ...


def run(description: str, make: Callable[[Given], Bench]) -> None:
    """Measure what *make* makes of a directory of its own, and tell."""
    parser = options(description)
    parser.add_argument(
        "--json", action="store_true", help="print everything as JSON, and the table to standard error"
    )
    arguments = parser.parse_args()
    logging.getLogger("carrel").setLevel(logging.CRITICAL + 1)
    directory = arguments.dir.resolve()
    base = Path(tempfile.mkdtemp(prefix=".bench-", dir=directory))
    show = partial(print, flush=True, file=sys.stderr if arguments.json else sys.stdout)
    try:
        bench = make(Given(base, arguments.quick, arguments.others.resolve()))
        found = _measured(bench, machine(directory), show)
    except UnmeasuredError as error:
        show(f"not measured: {error}")
        found = {"unmeasured": str(error)}
    finally:
        subprocess.run(["rm", "-rf", "--", base], check=True)  # copes with any depth, whatever broke before
    if arguments.json:
        print(json.dumps(found, indent=2))


def _measured(bench: Bench, about: Mapping[str, object], show: Callable[[str], None]) -> dict[str, object]:
    """Everything as plain values; each row is shown as soon as it is there."""
    load_before = load()
    versions = {**packages("carrel"), **bench.versions()}
    show(_report.heading({**about, "load": load_before, **versions}))
    rows = []
    for row in bench.run():
        rows.append(row)
        show(_report.lines(row))
    aims = bench.aims(rows)
    show("\n" + _report.verdicts(aims))
    return {
        "machine": {**about, "load_before": load_before, "load_after": load()},
        "versions": versions,
        "rows": [asdict(row) | {"ours_is": {way: row.ratio(way) for way in row.others}} for row in rows],
        "aims": [asdict(aim) for aim in aims],
    }


def options(description: str) -> argparse.ArgumentParser:
    """The options that one benchmark has, and all of them together."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="small counts: some seconds, rough ratios")
    parser.add_argument("--dir", type=Path, default=Path(__file__).parent, help="where to put the files")
    parser.add_argument(
        "--others", type=Path, default=packages_directory(), help="where other packages are installed"
    )
    return parser

"""What every benchmark does: take its options, measure in a directory that is removed, and tell."""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from bench._measure import Row
from bench._report import Aim, for_programs, heading, lines, machine, verdicts


class Bench(Protocol):
    """Something to measure."""

    def run(self) -> Iterator[Row]:
        """Measure, one row after the other."""
        ...

    def aims(self, rows: Sequence[Row]) -> list[Aim]:
        """What was aimed at, and what was found."""
        ...


def run(description: str, make: Callable[[Path, bool], Bench]) -> None:
    """Measure what *make* gives for a directory of its own, quickly or not."""
    arguments = _arguments(description)
    logging.getLogger("carrel").setLevel(logging.CRITICAL + 1)
    directory = arguments.dir.resolve()
    base = Path(tempfile.mkdtemp(prefix=".bench-", dir=directory))
    show: Callable[[str], None] = _ignore if arguments.json else partial(print, flush=True)
    try:
        bench = make(base, arguments.quick)
        show(heading(machine(directory)))
        rows = []
        for row in bench.run():
            rows.append(row)
            show(lines(row))
        aims = bench.aims(rows)
        show("\n" + verdicts(aims))
    finally:
        subprocess.run(["rm", "-rf", "--", base], check=True)  # copes with any depth, whatever broke before
    if arguments.json:
        print(json.dumps(for_programs(rows, aims, machine(directory)), indent=2))


def _arguments(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="small counts: some seconds, rough ratios")
    parser.add_argument("--dir", type=Path, default=Path(__file__).parent, help="where to put the files")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    return parser.parse_args()


def _ignore(_: str) -> None:
    """Leave the output to the JSON at the end."""

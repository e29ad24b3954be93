"""Run the benchmarks one after the other, each in a process of its own, and write a page with the results.

    .venv/bin/python -m bench [--quick] [--dir DIRECTORY] [--others DIRECTORY] [--into DIRECTORY] [NAME ...]
    .venv/bin/python -m bench --render

One that cannot run is listed as not measured, with the reason, and the others continue. The exit status is
0 unless one fails. `--render` regenerates the page and its plots from earlier results.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from bench import _results
from bench._areas import AREAS
from bench._files import PROJECT, Files
from bench._program import options
from bench._results import Result, parse

NAMES = tuple(area.name for area in AREAS)
ENGINE = "CARREL_TEST_ENGINE"


def main() -> int:
    """Run the requested benchmarks, and write the page."""
    arguments = _arguments()
    files = Files(arguments.into.resolve())
    broken = [] if arguments.render else _run_all(arguments, files.results)
    files.write()
    _say(f"\nwritten: {files.page.relative_to(files.top)} and its plots")
    if broken:
        _say(f"failed: {', '.join(broken)}")
    return 1 if broken else 0


def _arguments() -> argparse.Namespace:
    parser = options("Run the benchmarks and write the page about them.")
    parser.add_argument("--into", type=Path, default=PROJECT, help="beneath which directory to write")
    parser.add_argument("--render", action="store_true", help="measure nothing, regenerate the page")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(NAMES)}; all by default")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    return arguments


def _run_all(arguments: argparse.Namespace, file: Path) -> list[str]:
    """Run the benchmarks, save each result at once, and return the names of those that failed."""
    names = arguments.names or NAMES
    if "containers" in names and ENGINE not in os.environ:
        _say(f"for containers, set {ENGINE} to what `scripts/engine start DIRECTORY` prints")
    found = _results.load(file)
    broken = []
    for name in names:
        found[name], status = _run(name, arguments)
        if status:
            broken.append(name)
        _results.save(file, {name: found[name] for name in NAMES if name in found})
    return broken


def _run(name: str, arguments: argparse.Namespace) -> tuple[Result, int]:
    """Run one benchmark; its table is printed to standard error."""
    _say(f"\n== {name}")
    places = ["--dir", arguments.dir.resolve(), "--others", arguments.others.resolve()]
    command = [sys.executable, "-m", f"bench.{name}", "--json", *places]
    started = monotonic()
    done = subprocess.run(
        command + ["--quick"] * arguments.quick, stdout=subprocess.PIPE, text=True, cwd=PROJECT, check=False
    )
    about = {
        "date": datetime.now(UTC).date().isoformat(),
        "quick": arguments.quick,
        "seconds": monotonic() - started,
    }
    if status := done.returncode:
        return parse({**about, "unmeasured": f"it failed, with exit status {status}"}), status
    return parse({**about, **json.loads(done.stdout)}), 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

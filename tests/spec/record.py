"""Record the output of the real tools for every `$` case: `python -m tests.spec.record [NAME]...`.

GNU coreutils 9.1, grep 3.8, findutils 4.9, diffutils 3.8 and sed 4.9 printed what is in the files.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.spec import tools
from tests.spec.case import HERE, Case, read, render


def record(path: Path) -> int:
    """Record the outputs of one file again, and return how many cases it has."""
    spec = read(path)
    cases = {case.line: case for case in spec.cases}
    current: Case | None = None
    lines: list[str] = []
    for number, line in enumerate(path.read_text("utf-8").rstrip("\n").split("\n"), 1):
        if number in cases:
            current = cases[number]
            lines.append(line)
            if current.recorded:
                lines += [f"< {each}" for each in _stdin(path, number)]
                lines += render(tools.run(spec, current))
        elif current is None or not current.recorded or line[:1] not in "<|!=" or not line:
            lines.append(line)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return len(cases)


def _stdin(path: Path, number: int) -> list[str]:
    """Return the lines of standard input that follow the case at line *number*, unparsed."""
    found = []
    for line in path.read_text("utf-8").split("\n")[number:]:
        if line.startswith("< "):
            found.append(line[2:])
        elif not line or line[0] in "$%":
            break
    return found


if __name__ == "__main__":
    names = sys.argv[1:]
    for file in sorted(HERE.glob("*.txt")):
        if not names or file.stem in names:
            print(file.name, record(file))

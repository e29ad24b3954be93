"""Shell cases as text: a tree, command lines, and the output of each.

    # A comment.
    locale: C.UTF-8                      locale of the tools; C by default
    live: sizes of directories differ    the outputs depend on the disk: the test runs the tools too
    @ dir/                               a directory of the tree
    @ file = "text\\n" * 3               a file
    @ link => target                     a link
    $ head -n 1 file                     what a real tool printed, recorded by `record.py`:
    < a line of standard input
    | a line of standard output
    ! a line of standard error
    = 1                                  the exit status, if it is not 0
    % head -q                            not recorded: we differ here, or there is no such tool

Every case begins with a new tree. In a line `\\` begins an escape; a last `\\c` means that it has no newline.
"""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

HERE = Path(__file__).parent
BEGIN_NS = 1_709_210_096 * 10**9
"""Modification time of the first entry of a tree, in February 2024; each following one is a minute later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """Output and exit status of a command."""

    stdout: bytes = b""
    stderr: bytes = b""
    status: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One command line and its expected output."""

    command: str
    stdin: bytes
    expected: Printed
    recorded: bool
    """Whether a real tool printed the expected output."""
    line: int


@dataclass(slots=True)
class Spec:
    """One file of cases."""

    path: Path
    tree: list[str] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    locale: str = "C"
    live: bool = False

    def plant(self, directory: Path) -> None:
        """Create the tree in *directory*."""
        paths = [_plant(directory, line) for line in self.tree]
        for number, path in enumerate(paths):
            when = BEGIN_NS + number * 60 * 10**9
            os.utime(path, ns=(when, when), follow_symlinks=False)
        for top, _, _ in os.walk(os.fsencode(directory)):
            if os.fsdecode(top) not in {str(path) for path in paths}:
                os.utime(top, ns=(BEGIN_NS, BEGIN_NS))


def _plant(directory: Path, line: str) -> Path:
    if " => " in line:
        name, _, target = line.partition(" => ")
        path = directory / _name(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
        return path
    name, sign, content = line.partition(" = ")
    path = directory / _name(name)
    if not sign:
        path.mkdir(parents=True, exist_ok=True)
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_content(content))
    path.chmod(0o644)
    return path


def _name(text: str) -> str:
    return os.fsdecode(unescape(text.rstrip("/")))


def _content(text: str) -> bytes:
    literal, _, times = text.rpartition(" * ")
    if not literal:
        literal, times = text, "1"
    value = ast.literal_eval(literal)
    data = value if isinstance(value, bytes) else str(value).encode()
    return data * int(times)


def escape(data: bytes) -> str:
    """Render bytes as text that `unescape` parses."""
    text = data.decode("utf-8", "surrogateescape").replace("\\", "\\\\")
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def unescape(text: str) -> bytes:
    """Parse text that `escape` rendered."""
    parts = text.split("\\\\")
    found = []
    for part in parts:
        pieces = part.split("\\x")
        raw = pieces[0].encode("utf-8", "surrogateescape")
        for piece in pieces[1:]:
            raw += bytes([int(piece[:2], 16)]) + piece[2:].encode("utf-8", "surrogateescape")
        found.append(raw)
    return b"\\".join(found)


def read(path: Path) -> Spec:
    """Read one file of cases."""
    spec = Spec(path)
    case: Case | None = None
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        sign, _, rest = line.partition(" ")
        if not line or sign == "#":
            continue
        if sign in ("$", "%"):
            case = Case(
                command=unescape(rest).decode("utf-8", "surrogateescape"),
                stdin=b"",
                expected=Printed(),
                recorded=sign == "$",
                line=number,
            )
            spec.cases.append(case)
        elif sign == "@":
            spec.tree.append(rest)
        elif sign == "locale:":
            spec.locale = rest
        elif sign == "live:":
            spec.live = True
        elif case is not None:
            case = spec.cases[-1] = _continued(case, sign, rest)
        else:
            raise ValueError(f"{path.name}:{number}: not understood: {line}")
    return spec


def _continued(case: Case, sign: str, rest: str) -> Case:
    printed = case.expected
    data = unescape(rest[:-2]) if rest.endswith("\\c") else unescape(rest) + b"\n"
    if sign == "<":
        return replace(case, stdin=case.stdin + data)
    if sign == "|":
        return replace(case, expected=replace(printed, stdout=printed.stdout + data))
    if sign == "!":
        return replace(case, expected=replace(printed, stderr=printed.stderr + data))
    if sign == "=":
        return replace(case, expected=replace(printed, status=int(rest)))
    raise ValueError(f"line {case.line}: not understood: {sign} {rest}")


def render(printed: Printed) -> list[str]:
    """Return the lines that follow a command."""
    lines = [*_lines("|", printed.stdout), *_lines("!", printed.stderr)]
    return [*lines, f"= {printed.status}"] if printed.status else lines


def _lines(sign: str, data: bytes) -> list[str]:
    *whole, last = data.split(b"\n")
    lines = [f"{sign} {escape(line)}" for line in whole]
    return [*lines, f"{sign} {escape(last)}\\c"] if last else lines


def specs() -> list[Spec]:
    """Parse all files of cases."""
    return [read(path) for path in sorted(HERE.glob("*.txt"))]

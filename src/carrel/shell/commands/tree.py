"""Draw directories as a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from carrel.errors import CarrelError, ClosedError, SessionMissingError
from carrel.shell.command.access import PathAccess, inspects
from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt, UsageError, one_of, whole_number
from carrel.shell.language.glob import name_pattern
from carrel.shell.text.attributes import human, may_execute, mode_letters
from carrel.shell.text.quoting import encode
from carrel.values import FileInfo, FileKind

USAGE = "[OPTION]... [DIRECTORY]..."


@dataclass(frozen=True, slots=True)
class TreeCharacters:
    """What the tree is drawn with."""

    branch: str
    last: str
    through: str
    blank: str = "    "


_UNICODE = TreeCharacters("├── ", "└── ", "│\u00a0\u00a0 ")
_ASCII = TreeCharacters("|-- ", "`-- ", "|   ")
_CHARSETS = {"utf-8": _UNICODE, "UTF-8": _UNICODE, "ascii": _ASCII, "ASCII": _ASCII}


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `tree`."""

    all: Annotated[bool, Opt("-a", help="hidden names too")] = False
    directories: Annotated[bool, Opt("-d", help="only directories")] = False
    level: Annotated[
        int | None, Opt("-L", metavar="N", help="only N levels", parse=whole_number("Invalid level"))
    ] = None
    full: Annotated[bool, Opt("-f", help="the whole path of each name")] = False
    classify: Annotated[bool, Opt("-F", help="add / to directories, * to what may be executed")] = False
    ignore: Annotated[
        tuple[str, ...], Opt("-I", metavar="PATTERN", help="leave out what matches; | separates patterns")
    ] = ()
    only: Annotated[
        tuple[str, ...], Opt("-P", metavar="PATTERN", help="only files that match; | separates patterns")
    ] = ()
    prune: Annotated[bool, Opt("--prune", help="leave out directories that would be empty")] = False
    first: Annotated[bool, Opt("--dirsfirst", help="directories before files")] = False
    by_time: Annotated[bool, Opt("-t", help="the oldest first")] = False
    reverse: Annotated[bool, Opt("-r", help="in reverse order")] = False
    indent: Annotated[bool, Opt("-i", const=False, help="do not draw lines")] = True
    size: Annotated[bool, Opt("-s", help="the size of each file")] = False
    human: Annotated[bool, Opt("-h", help="the same, like 1.5K and 24M")] = False
    mode: Annotated[bool, Opt("-p", help="the permissions of each file")] = False
    report: Annotated[bool, Opt("--noreport", const=False, help="do not tell how many there are")] = True
    signs: Annotated[
        TreeCharacters,
        Opt("--charset", metavar="X", help="draw with utf-8 or ascii", parse=one_of("--charset", _CHARSETS)),
    ] = _UNICODE
    color: Annotated[bool, Opt("-n", "-C", help="accepted and ignored")] = False


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """It would look at everything in each operand."""
    return inspects(operands or ["."])


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Draw each directory."""
    if flags.level == 0:
        raise UsageError("Invalid level, must be greater than 0.", status=1, hint=False)
    drawing = _Drawing(ctx, flags)
    for operand in operands or ["."]:
        drawing.draw(operand)
    if flags.report:
        ctx.write(drawing.report())
    return ctx.status


class Branch(NamedTuple):
    """One name in the tree."""

    name: str
    info: FileInfo
    end: FileInfo | None
    """What is at the end of a link, or the same as `info`."""

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory, or a link to one."""
        return self.end is not None and self.end.is_directory


class _Drawing:
    """All trees of one run."""

    def __init__(self, ctx: Context, flags: Flags) -> None:
        self._ctx = ctx
        self._flags = flags
        self._is_ignored = _matcher(flags.ignore)
        self._is_wanted = _matcher(flags.only)
        self._directories = 0
        self._files = 0

    def report(self) -> bytes:
        """How many there were."""
        directories = f"{self._directories} director{'y' if self._directories == 1 else 'ies'}"
        files = f"{self._files} file{'' if self._files == 1 else 's'}"
        return f"\n{directories if self._flags.directories else f'{directories}, {files}'}\n".encode()

    def draw(self, operand: str) -> None:
        """Draw one tree, level by level with a stack of what is still to be drawn."""
        top = self._open(operand)
        slash = "/" if self._flags.classify and top is not None and not operand.endswith("/") else ""
        self._ctx.write_line(operand + slash if top is not None else f"{operand}  [error opening dir]")
        if top is None:
            self._ctx.status = 2
            return
        levels = [(operand, "", iter(top), len(top))]
        while levels:
            path, indent, branches, left = levels.pop()
            branch = next(branches, None)
            if branch is None:
                continue
            levels.append((path, indent, branches, left - 1))
            inside = self._draw_one(path, indent, branch, is_last=left == 1)
            if inside is not None:
                below = self._flags.signs.blank if left == 1 else self._flags.signs.through
                levels.append((_join(path, branch.name), indent + below, iter(inside), len(inside)))

    def _draw_one(self, path: str, indent: str, branch: Branch, *, is_last: bool) -> list[Branch] | None:
        """Draw a name, and return what is in it, if that is to be drawn too."""
        if branch.is_directory:
            self._directories += 1
        else:
            self._files += 1
        here = _join(path, branch.name)
        enters = branch.info.is_directory and self._may_enter(indent)
        inside = self._open(here) if enters else None
        signs = self._flags.signs
        lead = indent + (signs.last if is_last else signs.branch) if self._flags.indent else ""
        problem = "  [error opening dir]" if enters and inside is None else ""
        self._ctx.write(encode(lead + self._facts(branch.info) + self._label(here, branch) + problem) + b"\n")
        return inside

    def _may_enter(self, indent: str) -> bool:
        level = self._flags.level
        # Every level has an indent of four characters.
        return level is None or len(indent) // 4 + 1 < level

    def _label(self, here: str, branch: Branch) -> str:
        name = here if self._flags.full else branch.name
        sign = ""
        if self._flags.classify and branch.end is not None:
            executable = branch.end.is_file and may_execute(branch.end)
            sign = "/" if branch.is_directory else "*" if executable else ""
        if branch.info.kind is not FileKind.LINK:
            return name + sign
        target = branch.info.target or self._ctx.stat(here, follow=False).target or ""
        return f"{name} -> {target}{sign}"

    def _facts(self, info: FileInfo) -> str:
        facts = [mode_letters(info)] if self._flags.mode else []
        if self._flags.human:
            facts.append(f"{human(info.host_bytes):>4}")
        elif self._flags.size:
            facts.append(f"{info.host_bytes:>11}")
        return f"[{' '.join(facts)}]  " if facts else ""

    # What there is

    def _open(self, path: str) -> list[Branch] | None:
        try:
            found = list(self._branches(path))
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError:
            return None
        found.sort(key=lambda branch: encode(branch.name))
        if self._flags.by_time:
            found.sort(key=lambda branch: branch.info.modified_ns)
        if self._flags.reverse:
            found.reverse()
        if self._flags.first:
            found.sort(key=lambda branch: not branch.is_directory)
        return found

    def _branches(self, path: str) -> Iterator[Branch]:
        for info in self._ctx.list(path):
            name = info.name
            if self._is_left_out(name):
                continue
            branch = Branch(name, info, self._end(path, info))
            if self._has_place(path, branch):
                yield branch

    def _end(self, path: str, info: FileInfo) -> FileInfo | None:
        if info.kind is not FileKind.LINK:
            return info
        try:
            return self._ctx.stat(_join(path, info.name))
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError:
            return None

    def _has_place(self, path: str, branch: Branch) -> bool:
        if not branch.is_directory:
            return not self._flags.directories and (not self._flags.only or self._is_wanted(branch.name))
        if not self._flags.prune or not branch.info.is_directory:
            return True
        return self._holds_files(_join(path, branch.name))

    def _holds_files(self, path: str) -> bool:
        def enter(_: str, info: FileInfo) -> bool:
            return not self._is_left_out(info.name)

        for _, info in self._ctx.walk(path, enter):
            if info.is_directory or self._is_left_out(info.name):
                continue
            if not self._flags.only or self._is_wanted(info.name):
                return True
        return False

    def _is_left_out(self, name: str) -> bool:
        is_hidden = name.startswith(".") and not self._flags.all
        return is_hidden or (bool(self._flags.ignore) and self._is_ignored(name))


def _matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether a name matches one of the patterns, which `|` separates."""
    tests = [name_pattern(part.rstrip("/")) for text in patterns for part in text.split("|")]
    return lambda name: any(test(name) for test in tests)


def _join(directory: str, name: str) -> str:
    return f"{directory}{name}" if directory.endswith("/") else f"{directory}/{name}"

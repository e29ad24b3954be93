"""Print directories as a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from carrel.errors import CarrelError, ClosedError, SessionMissingError
from carrel.shell.command.access import PathAccess, inspects
from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt, UsageError, one_of, whole_number
from carrel.shell.command.paths import join
from carrel.shell.language.glob import name_pattern
from carrel.shell.text.attributes import human, may_execute, mode_letters
from carrel.shell.text.quoting import encode
from carrel.values import FileInfo, FileKind

USAGE = "[OPTION]... [DIRECTORY]..."


@dataclass(frozen=True, slots=True)
class TreeCharacters:
    """The strings that draw the lines of the tree."""

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

    all: Annotated[bool, Opt("-a", help="print hidden files too")] = False
    directories: Annotated[bool, Opt("-d", help="print only directories")] = False
    level: Annotated[
        int | None,
        Opt("-L", metavar="N", help="descend at most N levels", parse=whole_number("Invalid level")),
    ] = None
    full: Annotated[bool, Opt("-f", help="print the full path of each file")] = False
    classify: Annotated[bool, Opt("-F", help="append / to directories, * to executables")] = False
    ignore: Annotated[
        tuple[str, ...], Opt("-I", metavar="PATTERN", help="leave out matching files; | separates patterns")
    ] = ()
    only: Annotated[
        tuple[str, ...], Opt("-P", metavar="PATTERN", help="print only matching files; | separates patterns")
    ] = ()
    prune: Annotated[bool, Opt("--prune", help="leave out empty directories")] = False
    first: Annotated[bool, Opt("--dirsfirst", help="print directories before files")] = False
    by_time: Annotated[bool, Opt("-t", help="sort by modification time, oldest first")] = False
    reverse: Annotated[bool, Opt("-r", help="reverse the order")] = False
    indent: Annotated[bool, Opt("-i", const=False, help="do not draw lines")] = True
    size: Annotated[bool, Opt("-s", help="print the size of each file")] = False
    human: Annotated[bool, Opt("-h", help="print sizes like 1.5K and 24M")] = False
    mode: Annotated[bool, Opt("-p", help="print the permissions of each file")] = False
    report: Annotated[bool, Opt("--noreport", const=False, help="omit the final counts")] = True
    signs: Annotated[
        TreeCharacters,
        Opt("--charset", metavar="X", help="draw with utf-8 or ascii", parse=one_of("--charset", _CHARSETS)),
    ] = _UNICODE
    color: Annotated[bool, Opt("-n", "-C", help="accepted and ignored")] = False


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the operands, whose metadata is read."""
    return inspects(operands or ["."])


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Print the tree of each directory."""
    if flags.level == 0:
        raise UsageError("Invalid level, must be greater than 0.", status=1, hint=False)
    drawing = _Drawing(ctx, flags)
    for operand in operands or ["."]:
        drawing.draw(operand)
    if flags.report:
        ctx.write(drawing.report())
    return ctx.status


class Branch(NamedTuple):
    """One entry of the tree."""

    name: str
    info: FileInfo
    target: FileInfo | None
    """Target of a link, `None` for a broken one; for other entries the same as `info`."""

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory, or a link to one."""
        return self.target is not None and self.target.is_directory


class _Drawing:
    """Draws the trees of one run and counts their entries."""

    def __init__(self, ctx: Context, flags: Flags) -> None:
        self._ctx = ctx
        self._flags = flags
        self._is_ignored = _matcher(flags.ignore)
        self._is_included = _matcher(flags.only)
        self._directories = 0
        self._files = 0

    def report(self) -> bytes:
        """Render the number of directories and files."""
        directories = f"{self._directories} director{'y' if self._directories == 1 else 'ies'}"
        files = f"{self._files} file{'' if self._files == 1 else 's'}"
        return f"\n{directories if self._flags.directories else f'{directories}, {files}'}\n".encode()

    def draw(self, operand: str) -> None:
        """Draw one tree, depth first, with a stack instead of recursion."""
        top = self._read_branches(operand)
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
            children = self._draw_branch(path, indent, branch, is_last=left == 1)
            if children is not None:
                extension = self._flags.signs.blank if left == 1 else self._flags.signs.through
                levels.append((join(path, branch.name), indent + extension, iter(children), len(children)))

    def _draw_branch(self, path: str, indent: str, branch: Branch, *, is_last: bool) -> list[Branch] | None:
        """Draw one entry, and return its children if they are to be drawn too."""
        if branch.is_directory:
            self._directories += 1
        else:
            self._files += 1
        branch_path = join(path, branch.name)
        descends = branch.info.is_directory and self._may_descend(indent)
        children = self._read_branches(branch_path) if descends else None
        signs = self._flags.signs
        lead = indent + (signs.last if is_last else signs.branch) if self._flags.indent else ""
        problem = "  [error opening dir]" if descends and children is None else ""
        label = self._label(branch_path, branch)
        self._ctx.write(encode(lead + self._details(branch.info) + label + problem) + b"\n")
        return children

    def _may_descend(self, indent: str) -> bool:
        level = self._flags.level
        # Every level has an indent of four characters.
        return level is None or len(indent) // 4 + 1 < level

    def _label(self, path: str, branch: Branch) -> str:
        name = path if self._flags.full else branch.name
        sign = ""
        if self._flags.classify and branch.target is not None:
            executable = branch.target.is_file and may_execute(branch.target)
            sign = "/" if branch.is_directory else "*" if executable else ""
        if branch.info.kind is not FileKind.LINK:
            return name + sign
        target = branch.info.target or self._ctx.stat(path, follow=False).target or ""
        return f"{name} -> {target}{sign}"

    def _details(self, info: FileInfo) -> str:
        details = [mode_letters(info)] if self._flags.mode else []
        if self._flags.human:
            details.append(f"{human(info.host_bytes):>4}")
        elif self._flags.size:
            details.append(f"{info.host_bytes:>11}")
        return f"[{' '.join(details)}]  " if details else ""

    # Reading directories

    def _read_branches(self, path: str) -> list[Branch] | None:
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
            branch = Branch(name, info, self._target(path, info))
            if self._is_shown(path, branch):
                yield branch

    def _target(self, path: str, info: FileInfo) -> FileInfo | None:
        if info.kind is not FileKind.LINK:
            return info
        try:
            return self._ctx.stat(join(path, info.name))
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError:
            return None

    def _is_shown(self, path: str, branch: Branch) -> bool:
        if not branch.is_directory:
            return not self._flags.directories and (not self._flags.only or self._is_included(branch.name))
        if not self._flags.prune or not branch.info.is_directory:
            return True
        return self._holds_files(join(path, branch.name))

    def _holds_files(self, path: str) -> bool:
        def enter(_: str, info: FileInfo) -> bool:
            return not self._is_left_out(info.name)

        for _, info in self._ctx.walk(path, enter):
            if info.is_directory or self._is_left_out(info.name):
                continue
            if not self._flags.only or self._is_included(info.name):
                return True
        return False

    def _is_left_out(self, name: str) -> bool:
        is_hidden = name.startswith(".") and not self._flags.all
        return is_hidden or (bool(self._flags.ignore) and self._is_ignored(name))


def _matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tests a name against *patterns*, each of which may be several, split by `|`."""
    tests = [name_pattern(part.rstrip("/")) for text in patterns for part in text.split("|")]
    return lambda name: any(test(name) for test in tests)

"""Print the disk usage of directories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.command.access import PathAccess, inspects
from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt, UsageError, parse_size
from carrel.shell.command.paths import WalkedEntry, post_order
from carrel.shell.language.glob import name_pattern
from carrel.shell.text.attributes import ceil_divide, human
from carrel.shell.text.quoting import encode, quote
from carrel.values import FileInfo

USAGE = "[OPTION]... [FILE]..."
SizeRenderer = Callable[[int], str]


def _by_base(base: int) -> SizeRenderer:
    return lambda size: human(size, base)


def _by_unit(unit: int, suffix: str = "") -> SizeRenderer:
    return lambda size: f"{ceil_divide(size, unit)}{suffix}"


def _parse_block_size(text: str) -> SizeRenderer:
    if text in ("human-readable", "si"):
        return _by_base(1000 if text == "si" else 1024)
    if text[:1].isalpha():
        return _by_unit(parse_size(f"1{text}", "invalid --block-size argument"), text)
    unit = parse_size(text, "invalid --block-size argument")
    if not unit:
        raise ValueError(f"invalid --block-size argument {quote(text)}")
    return _by_unit(unit)


def _parse_depth(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"invalid maximum depth {quote(text)}", status=1)
    return int(text[:9])


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `du`."""

    all: Annotated[bool, Opt("-a", "--all", help="print files too, not only directories")] = False
    summarize: Annotated[bool, Opt("-s", "--summarize", help="print only a total for each FILE")] = False
    depth: Annotated[
        int | None,
        Opt("-d", "--max-depth", metavar="N", help="print at most N levels below each FILE",
            parse=_parse_depth),
    ] = None  # fmt: skip
    total: Annotated[bool, Opt("-c", "--total", help="print a grand total")] = False
    apparent: Annotated[
        bool,
        Opt("--apparent-size", help="print file sizes, rather than disk usage"),
    ] = False
    plain_bytes: Annotated[bool, Opt("-b", "--bytes", help="same as --apparent-size -B 1")] = False
    render: Annotated[
        SizeRenderer,
        Opt("-h", "--human-readable", const=_by_base(1024), help="print sizes like 1.5K and 24M"),
        Opt("--si", const=_by_base(1000), help="the same, in powers of 1000"),
        Opt("-k", const=_by_unit(1024), help="print sizes in KiB; this is the default"),
        Opt("-m", const=_by_unit(2**20), help="print sizes in MiB"),
        Opt(
            "-B", "--block-size", metavar="SIZE", help="print sizes in units of SIZE", parse=_parse_block_size
        ),
    ] = _by_unit(1024)  # noqa: RUF009  # a function, which nothing changes
    exclude: Annotated[
        tuple[str, ...], Opt("--exclude", metavar="PATTERN", help="leave out matching files")
    ] = ()
    separate: Annotated[
        bool, Opt("-S", "--separate-dirs", help="do not include subdirectories in sizes")
    ] = False  # fmt: skip
    count_links: Annotated[bool, Opt("-l", "--count-links", help="count a file once for each hard link")] = (
        False
    )
    zero: Annotated[bool, Opt("-0", "--null", help="end each line with a NUL, not a newline")] = False
    one_disk: Annotated[bool, Opt("-x", "--one-file-system", help="accepted and ignored")] = False


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the operands, whose metadata is read."""
    return inspects(operands or ["."])


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Print the disk usage of each operand."""
    if flags.summarize and flags.all:
        raise UsageError("cannot both summarize and show all entries", status=1)
    if flags.summarize and flags.depth:
        raise UsageError(f"warning: summarizing conflicts with --max-depth={flags.depth}", status=1)
    if flags.summarize and flags.depth == 0:
        ctx.write_error_line(f"{ctx.name}: warning: summarizing is the same as using --max-depth=0")
    usage = _Usage(ctx, flags, several=len(operands) > 1)
    total = 0
    for operand in operands or ["."]:
        with ctx.reporting(operand, f"cannot access {quote(operand)}"):
            total += usage.count(operand)
    if flags.total:
        usage.print_row(total, "total")
    return ctx.status


class _Usage:
    """Sums up disk usage, counting each file once."""

    def __init__(self, ctx: Context, flags: Flags, *, several: bool) -> None:
        self._ctx = ctx
        self._flags = flags
        self._several = several
        self._seen: set[int] = set()
        self._excludes = [name_pattern(text) for text in flags.exclude]
        self._render = _by_unit(1) if flags.plain_bytes else flags.render
        self._apparent = flags.apparent or flags.plain_bytes
        self._depth = 0 if flags.summarize else flags.depth
        self._end = b"\0" if flags.zero else b"\n"

    def print_row(self, size: int, name: str) -> None:
        self._ctx.write(f"{self._render(size)}\t".encode() + encode(name) + self._end)

    def count(self, operand: str) -> int:
        """Print the rows of one operand and return its total."""
        top = self._ctx.stat(operand, follow=False)
        if self._is_excluded(operand, top) or self._was_seen(top):
            return 0
        sums: dict[int, int] = {}
        level = operand.count("/") - operand.endswith("/")
        total = 0
        for path, info in post_order(self._walk(operand) if top.is_directory else iter(())):
            depth = path.count("/") - level
            size = self._size(info)
            total += size
            if info.is_directory:
                size += sums.pop(depth + 1, 0)
                self._print_nested_row(size, path, depth)
                size = 0 if self._flags.separate else size
            elif self._flags.all:
                self._print_nested_row(size, path, depth)
            sums[depth] = sums.get(depth, 0) + size
        own = self._size(top)
        self.print_row(own + sums.get(1, 0), operand)
        return own + total

    def _print_nested_row(self, size: int, path: str, depth: int) -> None:
        if self._depth is None or depth <= self._depth:
            self.print_row(size, path)

    def _walk(self, operand: str) -> Iterator[WalkedEntry]:
        skipped = ""

        def enter(path: str, info: FileInfo) -> bool:
            return path != skipped

        for path, info in self._ctx.walk(operand, enter):
            if self._is_excluded(path, info) or self._was_seen(info):
                skipped = path
            else:
                yield path, info

    def _is_excluded(self, path: str, info: FileInfo) -> bool:
        return any(matches(info.name) or matches(path) for matches in self._excludes)

    def _was_seen(self, info: FileInfo) -> bool:
        """Whether the file was counted before, as another hard link or inside another operand."""
        if self._flags.count_links and not info.is_directory:
            return False
        if not self._several and (info.links < 2 or info.is_directory):
            return False
        if info.inode in self._seen:
            return True
        self._seen.add(info.inode)
        return False

    def _size(self, info: FileInfo) -> int:
        return info.host_bytes if self._apparent else info.blocks * 512

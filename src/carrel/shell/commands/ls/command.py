"""List directories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.command.access import PathAccess, inspects
from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt, UsageError, one_of
from carrel.shell.commands.ls.entry import Indicator, ListOrder, NameStyle
from carrel.shell.commands.ls.layout import Columns
from carrel.shell.commands.ls.listing import DirectoryListing, Follow, ListingOptions, ListLayout
from carrel.shell.language.glob import name_pattern
from carrel.shell.text.quoting import quote

USAGE = "[OPTION]... [FILE]..."
NOTES = """
Sizes, blocks and inodes are those of the disk. Times are in UTC, and root owns all files.
"""

_SORTS = {"none": ListOrder.NONE, "time": ListOrder.TIME, "size": ListOrder.SIZE,
          "extension": ListOrder.EXTENSION, "version": ListOrder.VERSION,
          "width": ListOrder.WIDTH}  # fmt: skip
_FORMATS = {"verbose": "l", "long": "l", "commas": "m", "horizontal": "x", "across": "x", "vertical": "C",
            "single-column": "1"}  # fmt: skip
_LONG = ("l", "g", "o", "n", "full")
_INDICATORS = {indicator.value: indicator for indicator in Indicator}
_WHEN = {"always": True, "yes": True, "force": True, "never": False, "no": False, "none": False,
         "auto": False, "tty": False, "if-tty": False}  # fmt: skip
_STYLES = ("full-iso", "long-iso", "iso", "locale")
_STYLES_HELP = "\n".join([
    "Valid arguments are:",
    *(f"  - [posix-]{style}" for style in _STYLES),
    "  - +FORMAT (e.g., +%H:%M) for a 'date'-style format",
])  # fmt: skip


def _parse_time_style(text: str) -> str:
    if text.startswith("+"):
        return text
    style = text.removeprefix("posix-")
    if style not in _STYLES:
        raise UsageError(f"invalid argument {quote(text)} for 'time style'\n{_STYLES_HELP}")
    return style


def _parse_width(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"invalid line width: {quote(text)}", hint=False)
    return int(text[:9])


def _parse_classify(text: str) -> Indicator:
    enabled = not text or one_of("--classify", _WHEN)(text)
    return Indicator.CLASSIFY if enabled else Indicator.NONE


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `ls`."""

    hidden: Annotated[
        str,
        Opt("-a", "--all", const="all", help="list hidden names, including . and .."),
        Opt("-A", "--almost-all", const="almost", help="list hidden names, except . and .."),
    ] = ""
    layout: Annotated[
        tuple[str, ...],
        Opt("-l", const="l", help="use the long format"),
        Opt("-g", const="g", help="like -l, without the owner"),
        Opt("-o", const="o", help="like -l, without the group"),
        Opt("-n", "--numeric-uid-gid", const="n", help="like -l, with owner and group as numbers"),
        Opt("--full-time", const="full", help="like -l --time-style=full-iso"),
        Opt("-1", const="1", help="list one name per line (the default)"),
        Opt("-C", const="C", help="list names in columns, sorted downwards"),
        Opt("-x", const="x", help="list names in columns, sorted across"),
        Opt("-m", const="m", help="list names separated by commas"),
        Opt("--format", metavar="WORD", help="long, single-column, vertical, across or commas",
            parse=one_of("--format", _FORMATS)),
    ] = ()  # fmt: skip
    order: Annotated[
        ListOrder | None,
        Opt("-t", const=ListOrder.TIME, help="sort by time, newest first"),
        Opt("-S", const=ListOrder.SIZE, help="sort by size, largest first"),
        Opt("-X", const=ListOrder.EXTENSION, help="sort by extension"),
        Opt("-v", const=ListOrder.VERSION, help="sort by name with version numbers"),
        Opt("-U", const=ListOrder.NONE, help="do not sort"),
        Opt("--sort", metavar="WORD", help="none, time, size, extension, version or width",
            parse=one_of("--sort", _SORTS)),
    ] = None  # fmt: skip
    unsorted: Annotated[bool, Opt("-f", help="the same as -a -U")] = False
    reverse: Annotated[bool, Opt("-r", "--reverse", help="reverse the order")] = False
    first: Annotated[bool, Opt("--group-directories-first", help="list directories before files")] = False
    recursive: Annotated[bool, Opt("-R", "--recursive", help="list subdirectories recursively")] = False
    directory: Annotated[
        bool, Opt("-d", "--directory", help="list directories themselves, not their content")
    ] = False
    base: Annotated[
        int | None,
        Opt("-h", "--human-readable", const=1024, help="print sizes like 1.5K and 24M"),
        Opt("--si", const=1000, help="the same with powers of 1000"),
    ] = None
    indicator: Annotated[
        Indicator,
        Opt(
            "-F", const=Indicator.CLASSIFY, help="add / to directories, @ to links, * to executable files"
        ),
        Opt("--classify", metavar="[WHEN]", help="the same", parse=_parse_classify),
        Opt("--file-type", const=Indicator.FILE_TYPE, help="the same without *"),
        Opt("-p", const=Indicator.SLASH, help="add / to directories"),
        Opt("--indicator-style", metavar="WORD", help="none, slash, file-type or classify",
            parse=one_of("--indicator-style", _INDICATORS)),
    ] = Indicator.NONE  # fmt: skip
    blocks: Annotated[bool, Opt("-s", "--size", help="print the disk space of each file, in KiB")] = False
    inode: Annotated[bool, Opt("-i", "--inode", help="print the inode number of each file")] = False
    kibibytes: Annotated[bool, Opt("-k", "--kibibytes", help="count space in KiB (the default)")] = False
    no_group: Annotated[bool, Opt("-G", "--no-group", help="do not show the group")] = False
    time_style: Annotated[
        str,
        Opt("--time-style", metavar="STYLE", help="full-iso, long-iso, iso, locale or +FORMAT",
            parse=_parse_time_style),
    ] = ""  # fmt: skip
    follow: Annotated[
        str,
        Opt("-L", "--dereference", const="all", help="show the targets of links"),
        Opt(
            "-H", "--dereference-command-line", const="operands", help="the same for links given as operands"
        ),
    ] = ""
    style: Annotated[
        NameStyle,
        Opt("-Q", "--quote-name", const=NameStyle.QUOTED, help="print names in double quotes"),
        Opt("-b", "--escape", const=NameStyle.ESCAPED, help="print nongraphic characters as \\n, \\t, \\303"),
        Opt("-q", "--hide-control-chars", const=NameStyle.HIDDEN, help="print nongraphic characters as ?"),
        Opt(
            "-N", "--literal", "--show-control-chars", const=NameStyle.LITERAL, help="print names as they are"
        ),
    ] = NameStyle.LITERAL
    ignore: Annotated[
        tuple[str, ...], Opt("-I", "--ignore", metavar="PATTERN", help="skip names that match PATTERN")
    ] = ()
    backups: Annotated[bool, Opt("-B", "--ignore-backups", help="skip names that end in ~")] = False
    width: Annotated[
        int,
        Opt("-w", "--width", metavar="COLS", help="line width; 0 means no limit",
            parse=_parse_width),
    ] = 80  # fmt: skip
    color: Annotated[
        str, Opt("--color", "--colour", metavar="[WHEN]", help="accepted and ignored")
    ] = ""  # fmt: skip


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare each operand as read."""
    return inspects(operands or ["."])


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """List each operand."""
    DirectoryListing(ctx, _listing_options(ctx, flags)).run(operands or ["."])
    return ctx.status


def _listing_options(ctx: Context, flags: Flags) -> ListingOptions:
    layout, given = _parse_layout(flags.layout)
    order = flags.order or (ListOrder.NONE if flags.unsorted else ListOrder.NAME)
    columns = Columns(
        inode=flags.inode,
        blocks=flags.blocks,
        owner="g" not in given,
        group="o" not in given and not flags.no_group,
        numeric="n" in given,
        base=flags.base,
        time_style=flags.time_style or ("full-iso" if "full" in given else "locale"),
        indicator=flags.indicator,
        style=flags.style,
        now_ns=ctx.workspace.gate.now(),
    )
    return ListingOptions(
        columns=columns,
        layout=layout,
        width=flags.width,
        order=order,
        reverse=flags.reverse,
        directories_first=flags.first,
        hidden=flags.hidden or ("all" if flags.unsorted else ""),
        is_ignored=_ignore_filter(flags),
        recursive=flags.recursive,
        directories_as_files=flags.directory,
        follow=_follow(flags, layout),
    )


def _parse_layout(options: Sequence[str]) -> tuple[ListLayout, set[str]]:
    """Return the last layout given, and all layout options; `-1` does not override a long format."""
    layout = ListLayout.SINGLE
    for option in options:
        requested = ListLayout.LONG if option in _LONG else ListLayout(option)
        if requested is not ListLayout.SINGLE or layout is not ListLayout.LONG:
            layout = requested
    return layout, set(options)


def _follow(flags: Flags, layout: ListLayout) -> Follow:
    if flags.follow == "all":
        return Follow.ALL
    if flags.follow == "operands":
        return Follow.OPERANDS
    follow_none = flags.directory or flags.indicator is Indicator.CLASSIFY or layout is ListLayout.LONG
    return Follow.NONE if follow_none else Follow.DIRECTORIES


def _ignore_filter(flags: Flags) -> Callable[[str], bool]:
    patterns = [name_pattern(text) for text in flags.ignore]
    if flags.backups:
        patterns.append(lambda name: name.endswith("~"))
    return lambda name: any(matches(name) for matches in patterns)

"""Find files by name, type, size and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from carrel.errors import CarrelError
from carrel.shell.command.access import PathAccess, inspects, writes
from carrel.shell.command.context import Context
from carrel.shell.command.paths import WalkedEntry, post_order
from carrel.shell.commands.find.expression import parse
from carrel.shell.commands.find.search import ExpressionError, FoundFile, Predicate, QuitSearch, SearchState
from carrel.shell.text.quoting import quote
from carrel.values import FileInfo

USAGE = "[-H] [-P] [PATH]... [EXPRESSION]"
NOTES = """
Tests:   -name -iname -path -ipath -regex -iregex -lname PATTERN, -type f,d,l, -size [+-]N[cwbkMG], -empty,
         -mtime [+-]DAYS, -mmin [+-]MINUTES, -newer FILE, -newermt DATE, -perm [-/]MODE, -links N, -inum N,
         -samefile FILE, -user NAME, -group NAME, -readable, -writable, -executable, -true, -false
Actions: -print (if there is no other), -print0, -printf FORMAT, -delete, -prune, -quit
Limits:  -maxdepth N, -mindepth N, -depth
Joined by: -a (or nothing), -o, !, ( ), and a comma

Names are listed in order. Regular expressions are those of RE2. There is no -exec: use a pipeline with xargs.
"""


def accesses(argv: Sequence[str]) -> Iterable[PathAccess]:
    """Declare each starting point as read, and with `-delete` as written."""
    _, starts, words = _split_arguments(argv)
    yield from inspects(starts)
    if "-delete" in words:
        yield from writes(starts)


def run(ctx: Context, argv: Sequence[str]) -> int:
    """Search beneath each starting point."""
    options, starts, words = _split_arguments(argv)
    search = SearchState(ctx, ctx.workspace.gate.now())
    try:
        if "-L" in options:
            raise ExpressionError("-L is not supported: links are not followed")
        test = parse(search, words)
        for start in starts:
            _search_from(search, start, test, follow="-H" in options)
    except ExpressionError as error:
        if error.args[0]:
            ctx.error(error.args[0])
    except QuitSearch:
        pass
    return ctx.status


def _split_arguments(argv: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Split the arguments into options, starting points and words of the expression."""
    at = 0
    while at < len(argv) and argv[at] in ("-H", "-L", "-P", "--"):
        at += 1
    begin = at
    while at < len(argv) and not _starts_expression(argv[at]):
        at += 1
    return list(argv[:begin]), list(argv[begin:at]) or ["."], list(argv[at:])


def _starts_expression(word: str) -> bool:
    return (len(word) > 1 and word[0] == "-") or word in ("(", "!")


def _search_from(search: SearchState, start: str, test: Predicate, *, follow: bool) -> None:
    with search.ctx.reporting(start, quote(start)):
        top = _stat_start(search.ctx, start, follow=follow)
        entries = _walk(search, start, top)
        if search.post_order:
            entries = _in_post_order(entries, start)
        base_depth = _base_depth(start)
        for path, info in entries:
            depth = 0 if path == start else path.count("/") - base_depth
            search.pruned = False
            if depth >= search.min_depth:
                test(FoundFile(path, info, depth, start))


def _stat_start(ctx: Context, start: str, *, follow: bool) -> FileInfo:
    if follow:
        try:
            return ctx.stat(start)
        except CarrelError:
            pass
    return ctx.stat(start, follow=False)


def _base_depth(start: str) -> int:
    """Return the number of slashes in paths directly beneath *start*, less one."""
    return start.count("/") - (1 if start.endswith("/") else 0)


def _walk(search: SearchState, start: str, top: FileInfo) -> Iterator[WalkedEntry]:
    yield start, top
    if not top.is_directory or search.max_depth == 0 or (search.pruned and not search.post_order):
        return
    base_depth = _base_depth(start)
    limit = search.max_depth

    def enter(path: str, info: FileInfo) -> bool:
        # The expression has already tested the directory, and may have pruned it.
        if search.pruned and not search.post_order:
            return False
        return limit is None or path.count("/") - base_depth < limit

    yield from search.ctx.walk(start, enter)


def _in_post_order(entries: Iterator[WalkedEntry], start: str) -> Iterator[WalkedEntry]:
    """Yield the entries in post-order, the starting point last."""
    top = next(entries)
    yield from post_order(entries)
    yield top

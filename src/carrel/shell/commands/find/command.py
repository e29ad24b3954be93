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

Names come in order. Regular expressions are those of RE2. There is no -exec: use a pipeline with xargs.
"""


def accesses(argv: Sequence[str]) -> Iterable[PathAccess]:
    """It would look at each starting point, and with `-delete` change it."""
    _, starts, words = _split(argv)
    yield from inspects(starts)
    if "-delete" in words:
        yield from writes(starts)


def run(ctx: Context, argv: Sequence[str]) -> int:
    """Search beneath each starting point."""
    options, starts, words = _split(argv)
    search = SearchState(ctx, ctx.workspace.gate.now())
    try:
        if "-L" in options:
            raise ExpressionError("-L is not offered here: links are not followed")
        test = parse(search, words)
        for start in starts:
            _search(search, start, test, follow="-H" in options)
    except ExpressionError as error:
        if error.args[0]:
            ctx.error(error.args[0])
    except QuitSearch:
        pass
    return ctx.status


def _split(argv: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """The options, the starting points and the words of the expression."""
    at = 0
    while at < len(argv) and argv[at] in ("-H", "-L", "-P", "--"):
        at += 1
    begin = at
    while at < len(argv) and not _begins_expression(argv[at]):
        at += 1
    return list(argv[:begin]), list(argv[begin:at]) or ["."], list(argv[at:])


def _begins_expression(word: str) -> bool:
    return (len(word) > 1 and word[0] == "-") or word in ("(", "!")


def _search(search: SearchState, start: str, test: Predicate, *, follow: bool) -> None:
    with search.ctx.reporting(start, quote(start)):
        top = _top(search.ctx, start, follow=follow)
        found = _from_top(search, start, top)
        if search.post_order:
            found = _last(found, start)
        above = _depth_of(start)
        for path, info in found:
            depth = 0 if path == start else path.count("/") - above
            search.pruned = False
            if depth >= search.min_depth:
                test(FoundFile(path, info, depth, start))


def _top(ctx: Context, start: str, *, follow: bool) -> FileInfo:
    if follow:
        try:
            return ctx.stat(start)
        except CarrelError:
            pass
    return ctx.stat(start, follow=False)


def _depth_of(start: str) -> int:
    """How many slashes stand before the names that are one level beneath *start*, less one."""
    return start.count("/") - (1 if start.endswith("/") else 0)


def _from_top(search: SearchState, start: str, top: FileInfo) -> Iterator[WalkedEntry]:
    yield start, top
    if not top.is_directory or search.max_depth == 0 or (search.pruned and not search.post_order):
        return
    above = _depth_of(start)
    limit = search.max_depth

    def enter(path: str, info: FileInfo) -> bool:
        # The expression has seen the directory by now, and may have pruned it.
        if search.pruned and not search.post_order:
            return False
        return limit is None or path.count("/") - above < limit

    yield from search.ctx.walk(start, enter)


def _last(found: Iterator[WalkedEntry], start: str) -> Iterator[WalkedEntry]:
    """The starting point after all that is beneath it."""
    top = next(found)
    yield from post_order(found)
    yield top

"""The tests of `find`: each function makes a predicate from the argument of a test."""

from __future__ import annotations

import re
from collections.abc import Callable

from carrel.errors import CarrelError, ClosedError, SessionMissingError
from carrel.policy.rules import Access
from carrel.shell.commands.find.search import ExpressionError, FoundFile, Predicate, SearchState
from carrel.shell.language.glob import name_pattern
from carrel.shell.text.attributes import OWNER, ceil_divide
from carrel.shell.text.quoting import encode, quote
from carrel.shell.text.timestamps import SECOND_NS, parse_date
from carrel.values import FileInfo, FileKind

PredicateMaker = Callable[[SearchState, str], Predicate]
"""Makes a predicate from the argument of a test."""

_KINDS = {"f": FileKind.FILE, "d": FileKind.DIRECTORY, "l": FileKind.LINK}
_UNMATCHED_KINDS = "bcpsD"
"""Types that never match, since special files have no type here."""
_UNITS = {"c": 1, "w": 2, "b": 512, "k": 2**10, "M": 2**20, "G": 2**30}
_NUMBER = re.compile(r"([+-]?)([0-9]{1,18})")


# Names


def name(search: SearchState, text: str) -> Predicate:
    """`-name`."""
    matches = name_pattern(text)
    return lambda file: matches(file.name)


def iname(search: SearchState, text: str) -> Predicate:
    """`-iname`."""
    matches = name_pattern(text.lower())
    return lambda file: matches(file.name.lower())


def path(search: SearchState, text: str) -> Predicate:
    """`-path`, where a star matches slashes too."""
    matches = name_pattern(text)
    return lambda file: matches(file.path)


def ipath(search: SearchState, text: str) -> Predicate:
    """`-ipath`."""
    matches = name_pattern(text.lower())
    return lambda file: matches(file.path.lower())


def link_name(search: SearchState, text: str) -> Predicate:
    """`-lname`."""
    matches = name_pattern(text)

    def test(file: FoundFile) -> bool:
        if file.info.kind is not FileKind.LINK:
            return False
        return matches(file.info.target or search.ctx.stat(file.path, follow=False).target or "")

    return test


def regex(search: SearchState, text: str, *, ignore_case: bool = False) -> Predicate:
    """`-regex`, by RE2, of the whole path."""
    # Late: it takes long to import, and few searches need it.
    import re2

    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    options.dot_nl = True
    options.encoding = re2.Options.Encoding.LATIN1
    pattern = text if search.regex_type != "emacs" else _translate_emacs(text)
    try:
        compiled = re2.compile(encode(pattern), options)
    except re2.error as error:
        raise ExpressionError(f"failed to compile regular expression {quote(text)}: {error}") from None
    return lambda file: compiled.fullmatch(encode(file.path)) is not None


def iregex(search: SearchState, text: str) -> Predicate:
    """`-iregex`."""
    return regex(search, text, ignore_case=True)


_TOKEN = re.compile(r"\\(.)|(\[\^?\]?[^\]]*\])|([(){}|])", re.DOTALL)


def _translate_emacs(text: str) -> str:
    """Translate an Emacs expression to RE2, where `(`, `)` and `|` are operators without a backslash."""

    def translate(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[1] if match[1] in "()|" else match[0]
        return match[2] or "\\" + match[3]

    return _TOKEN.sub(translate, text)


# Kinds, sizes, permissions


def kind(search: SearchState, text: str) -> Predicate:
    """`-type`."""
    expected = set()
    for letter in text.split(","):
        if not letter:
            problem = "is missing, i.e., list is ending on: ','" if text else ""
            raise ExpressionError(f"Last file type in list argument to -type {problem}".rstrip())
        if letter not in _KINDS and letter not in _UNMATCHED_KINDS:
            raise ExpressionError(f"Unknown argument to -type: {letter}")
        expected.add(_KINDS.get(letter))
    return lambda file: file.info.kind in expected


def empty(search: SearchState) -> Predicate:
    """`-empty`."""

    def test(file: FoundFile) -> bool:
        if file.info.is_file:
            return file.info.size_bytes == 0
        if not file.info.is_directory:
            return False
        with search.ctx.reporting(file.path, quote(file.path)):
            return not search.ctx.list(file.path)
        return False

    return test


def size(search: SearchState, text: str) -> Predicate:
    """`-size`, rounded up to whole units."""
    unit = _UNITS.get(text[-1:], 0)
    digits = text[:-1] if unit else text
    if not unit and text[-1:].isdecimal():
        unit = _UNITS["b"]
    if not unit:
        raise ExpressionError(f"invalid -size type `{text[-1:]}'")
    compare = _parse_comparison("-size", digits, text)
    return lambda file: compare(ceil_divide(file.info.host_bytes, unit))


def links(search: SearchState, text: str) -> Predicate:
    """`-links`."""
    compare = _parse_comparison("-links", text, text)
    return lambda file: compare(file.info.links)


def inode(search: SearchState, text: str) -> Predicate:
    """`-inum`."""
    compare = _parse_comparison("-inum", text, text)
    return lambda file: compare(file.info.inode)


def owner(search: SearchState, text: str) -> Predicate:
    """`-user` and `-group`: all files have the same owner."""
    is_owner = text in (OWNER, "0")
    return lambda file: is_owner


def permissions(search: SearchState, text: str) -> Predicate:
    """`-perm`."""
    sign = text[:1] if text[:1] in ("-", "/") else ""
    expected = _parse_mode(text[len(sign) :])
    if expected is None:
        raise ExpressionError(f"invalid mode {quote(text)}")
    if sign == "-":
        return lambda file: file.info.mode & expected == expected
    if sign == "/":
        return lambda file: expected == 0 or file.info.mode & expected != 0
    return lambda file: file.info.mode == expected


def _parse_mode(text: str) -> int | None:
    if re.fullmatch("[0-7]{1,4}", text):
        return int(text, 8)
    mode = 0
    for clause in text.split(","):
        match = re.fullmatch("([ugoa]*)[+=]([rwx]+)", clause)
        if match is None:
            return None
        who = match[1] or "a"
        bits = sum({"r": 4, "w": 2, "x": 1}[letter] for letter in set(match[2]))
        for shift, letter in ((6, "u"), (3, "g"), (0, "o")):
            if letter in who or "a" in who:
                mode |= bits << shift
    return mode


def readable(search: SearchState) -> Predicate:
    """`-readable`."""
    return lambda file: _allows(search, file, Access.READ)


def writable(search: SearchState) -> Predicate:
    """`-writable`."""
    return lambda file: _allows(search, file, Access.WRITE) and _has_bits(search, file, 0o222)


def executable(search: SearchState) -> Predicate:
    """`-executable`."""
    return lambda file: _has_bits(search, file, 0o111)


def _allows(search: SearchState, file: FoundFile, access: Access) -> bool:
    if not search.ctx.workspace.explain(search.ctx.path(file.path), access).allowed:
        return False
    return _has_bits(search, file, 0o777)


def _has_bits(search: SearchState, file: FoundFile, bits: int) -> bool:
    """Whether the file, or the one that a link leads to, has one of the permissions in *bits*."""
    if file.info.kind is not FileKind.LINK:
        return bool(file.info.mode & bits)
    try:
        return bool(search.ctx.stat(file.path).mode & bits)
    except (ClosedError, SessionMissingError):
        raise
    except CarrelError:
        return False


# Times


def days(search: SearchState, text: str) -> Predicate:
    """`-mtime`: whole days, rounded down."""
    compare = _parse_comparison("-mtime", text, text)
    now = search.now_ns
    return lambda file: compare((now - file.info.modified_ns) // (86_400 * SECOND_NS))


def minutes(search: SearchState, text: str) -> Predicate:
    """`-mmin`: minutes, rounded up except for `-N`."""
    compare = _parse_comparison("-mmin", text, text)
    now = search.now_ns
    unit = 60 * SECOND_NS
    rounded: Callable[[int], int] = lambda age: ceil_divide(age, unit)  # noqa: E731  # one of two
    if text.startswith("-"):
        rounded = lambda age: age // unit  # noqa: E731  # the other
    return lambda file: compare(rounded(now - file.info.modified_ns))


def newer(search: SearchState, text: str) -> Predicate:
    """`-newer`."""
    try:
        then = search.ctx.stat(text, follow=False).modified_ns
    except (ClosedError, SessionMissingError):
        raise
    except CarrelError as error:
        search.ctx.report(error, quote(text))
        raise ExpressionError("") from None
    return lambda file: file.info.modified_ns > then


def newer_than_date(search: SearchState, text: str) -> Predicate:
    """`-newermt`."""
    try:
        then = parse_date(text, search.now_ns)
    except (ValueError, OverflowError):
        message = f"I cannot figure out how to interpret {quote(text)} as a date or time"
        raise ExpressionError(message) from None
    return lambda file: file.info.modified_ns > then


def same_file(search: SearchState, text: str) -> Predicate:
    """`-samefile`."""
    info: FileInfo | None = None
    with search.ctx.reporting(text, quote(text)):
        info = search.ctx.stat(text, follow=False)
    if info is None:
        raise ExpressionError("")
    inode_number = info.inode
    return lambda file: file.info.inode == inode_number


def _parse_comparison(option: str, text: str, argument: str) -> Callable[[int], bool]:
    """Parse `+N` (more than), `-N` (less than) or `N` (exactly)."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ExpressionError(f"invalid argument `{argument}' to `{option}'")
    limit = int(match[2])
    if match[1] == "+":
        return lambda value: value > limit
    if match[1] == "-":
        return lambda value: value < limit
    return lambda value: value == limit

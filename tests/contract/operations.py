"""The operations of the protocol as values: run one anywhere, and compare what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from carrel.errors import CarrelError
from carrel.fs.api import Existing, Files, Links, Parents
from carrel.paths.parsed_path import parse
from carrel.values import Change, FileInfo, Limits
from tests.contract.places import require_no_host_error

Outcome = tuple[object, ...]
"""Comparable: `("ok", ...)`, or `("error", class, code, errno, path)`."""


@dataclass(frozen=True)
class Operation:
    """One call; its text is what a failing example shows."""

    text: str
    call: Callable[[Files], object]

    def __repr__(self) -> str:
        return self.text

    def run(self, files: Files) -> Outcome:
        """What came of it, in a form that is equal wherever the answers are."""
        try:
            return "ok", plain(self.call(files))
        except CarrelError as error:
            require_no_host_error(error)
            number = error.errno if isinstance(error, OSError) else None
            return "error", type(error).__name__, error.code, number, error.path


def plain(value: object) -> object:
    """*value* without what two file systems may choose for themselves."""
    if isinstance(value, FileInfo):
        return value.path, value.kind.value, value.size_bytes, oct(value.mode), value.target
    if isinstance(value, Change):
        return value.before_bytes, plain(value.info), value.info.links, value.made
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    return value


def read(path: str, *, limit: int | None = None, offset: int = 0, length: int | None = None) -> Operation:
    return Operation(
        f"read({path!r}, limit={limit}, offset={offset}, length={length})",
        lambda files: files.read(parse(path), limit=limit, offset=offset, length=length),
    )


def read_with_info(
    path: str, *, limit: int | None = None, offset: int = 0, length: int | None = None
) -> Operation:
    return Operation(
        f"read_with_info({path!r}, limit={limit}, offset={offset}, length={length})",
        lambda files: files.read_with_info(parse(path), limit=limit, offset=offset, length=length),
    )


def reader(path: str, *, chunk_bytes: int = 2) -> Operation:
    def call(files: Files) -> object:
        opened = files.reader(parse(path))
        return [plain(opened.info), *opened.chunks(chunk_bytes)]

    return Operation(f"reader({path!r})", call)


def stat(path: str, links: Links = Links.FOLLOW) -> Operation:
    return Operation(f"stat({path!r}, {links.name})", lambda files: files.stat(parse(path), links))


def listing(path: str, *, limit: int | None = None) -> Operation:
    return Operation(f"list({path!r}, limit={limit})", lambda files: files.list(parse(path), limit=limit))


def names(path: str, *, limit: int | None = None) -> Operation:
    return Operation(
        f"names({path!r}, limit={limit})",
        lambda files: sorted(each for some in files.names(parse(path), limit=limit) for each in some),
    )


def walk(path: str, limits: Limits) -> Operation:
    def call(files: Files) -> object:
        seen: list[object] = []
        try:
            for info in files.walk(parse(path), limits):
                seen.append(plain(info))
        except CarrelError as error:
            if not seen:
                raise
            seen.append((error.code, error.path))
        return seen

    return Operation(f"walk({path!r}, depth={limits.depth}, entries={limits.walk_entries})", call)


def read_tree(path: str, limits: Limits) -> Operation:
    def call(files: Files) -> object:
        found = files.read_tree(parse(path), limits, enter=None, wants=None, chunk_bytes=2)
        return [(each.path, b"".join(each.chunks)) for each in found]

    return Operation(f"read_tree({path!r})", call)


def touch(path: str, modified_ns: int = 10**18) -> Operation:
    return Operation(
        f"touch({path!r}, {modified_ns})", lambda files: files.touch(parse(path), modified_ns).modified_ns
    )


def write(
    path: str,
    data: bytes = b"new",
    *,
    existing: Existing = Existing.REPLACE,
    parents: Parents = Parents.MAKE,
    mode: int | None = None,
    expect: str | None = None,
) -> Operation:
    return Operation(
        f"write({path!r}, {data!r}, {existing.name}, {parents.name}, mode={mode}, expect={expect!r})",
        lambda files: files.write(
            parse(path), (data,), existing=existing, parents=parents, mode=mode, expect=expect
        ),
    )


def append(
    path: str, data: bytes = b"more", *, limit: int | None = None, expect: str | None = None
) -> Operation:
    return Operation(
        f"append({path!r}, {data!r}, limit={limit}, expect={expect!r})",
        lambda files: files.append(parse(path), data, limit=limit, expect=expect),
    )


def mkdir(path: str, parents: Parents = Parents.MAKE) -> Operation:
    return Operation(
        f"mkdir({path!r}, {parents.name})", lambda files: files.mkdir(parse(path), parents=parents)
    )


def link(path: str, target: str, existing: Existing = Existing.REFUSE) -> Operation:
    return Operation(
        f"link({path!r}, {target!r}, {existing.name})",
        lambda files: files.link(parse(path), target, existing=existing),
    )


def remove(path: str, expect: str | None = None) -> Operation:
    return Operation(f"remove({path!r}, {expect!r})", lambda files: files.remove(parse(path), expect=expect))


def remove_tree(path: str, expect: str | None = None) -> Operation:
    return Operation(
        f"remove_tree({path!r}, {expect!r})", lambda files: files.remove_tree(parse(path), expect=expect)
    )


def move(
    source: str, target: str, existing: Existing = Existing.REFUSE, expect: str | None = None
) -> Operation:
    return Operation(
        f"move({source!r}, {target!r}, {existing.name}, {expect!r})",
        lambda files: files.move(parse(source), parse(target), existing=existing, expect=expect),
    )


def copy(
    source: str, target: str, existing: Existing = Existing.REFUSE, *, limit: int | None = None
) -> Operation:
    return Operation(
        f"copy({source!r}, {target!r}, {existing.name}, limit={limit})",
        lambda files: files.copy(parse(source), parse(target), existing=existing, limit=limit),
    )

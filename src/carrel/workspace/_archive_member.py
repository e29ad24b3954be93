"""One member of an archive, and the rules for its name and for the text of a link.

Both directions obey them: a name or a link that `extract` refuses is one that `archive` does not send.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import dropwhile

from carrel.errors import EscapeError, PathError
from carrel.paths.rel import leads_out, parse, parse_any
from carrel.values import FileKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """What an archive says about one entry, before anybody believed it."""

    name: str
    """As the archive spells it."""
    kind: FileKind
    """`OTHER` for a remark that stands for no file."""
    size_bytes: int = 0
    target: str | None = None
    """The text of a link."""
    same_as: str | None = None
    """For a hard link, the name of the earlier member with the content."""


def parse_name(name: str, *, directory: bool = False) -> str:
    """The plainest spelling of a member's name; empty for the archive's own root.

    Raises:
        EscapeError: It holds `..`.
        PathError: It is absolute, empty, too long, ends in a slash without being a directory, or holds a
            drive letter, a backslash or a NUL.
    """
    where = parse(name)
    if ".." in where.parts:
        raise EscapeError(f"member {name[:80]!r} would lead out of the archive", path=name)
    if "\\" in name:
        raise PathError(f"member {name[:80]!r} holds a backslash", path=name)
    if where.must_dir and not directory:
        raise PathError(f"member {name[:80]!r} is named like a directory, but is none", path=name)
    if not where.parts:
        return ""
    return parse(where.text).text


def require_link(path: str, text: str) -> None:
    """Refuse a link at *path* that could lead out of the archive, also through other links.

    `..` may stand only at the beginning of the text. There it climbs through real directories, because no
    member lies beyond a link; after a name, which may be a link itself, it could climb from anywhere.

    Raises:
        EscapeError: The text is absolute, climbs above the archive, or climbs again after a name.
        PathError: It is empty, too long or holds a drive letter, a backslash or a NUL.
    """
    where = parse_any(text)
    names = dropwhile(lambda part: part == "..", where.parts)
    if where.absolute or leads_out(parse(path), text) or ".." in names:
        raise EscapeError(f"the link {path[:80]!r} could lead out of the archive", path=path)
    if "\\" in text:
        raise PathError(f"the text of the link {path[:80]!r} holds a backslash", path=path)

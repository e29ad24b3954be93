"""Members of an archive: the rules for names and links, and the plan that validates all of them together.

The rules apply in both directions: `archive` leaves out every name and link that `extract` refuses.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from itertools import dropwhile

from carrel.errors import ArchiveError, EscapeError, PathError
from carrel.paths.parsed_path import escapes, parse, parse_any
from carrel.values import FileKind
from carrel.workspace.extract_limits import ExtractMeter


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """The declaration of one entry in an archive, not validated yet."""

    name: str
    """The name as written in the archive."""
    kind: FileKind
    """`OTHER` for metadata that is not a file."""
    size_bytes: int = 0
    target: str | None = None
    """Target of a symbolic link."""
    same_as: str | None = None
    """Of a hard link, the name of the earlier member with the content."""


def parse_name(name: str, *, directory: bool = False) -> str:
    """Return the normalized name of a member; empty for the root of the archive.

    Raises:
        EscapeError: It contains `..`.
        PathError: It is absolute, empty, too long, ends in a slash without being a directory, or contains a
            drive letter, a backslash or a NUL.
    """
    parsed = parse(name)
    if ".." in parsed.parts:
        raise EscapeError(f"member {name[:80]!r} would lead out of the archive", path=name)
    if "\\" in name:
        raise PathError(f"member {name[:80]!r} contains a backslash", path=name)
    if parsed.must_dir and not directory:
        raise PathError(f"member {name[:80]!r} ends in a slash but is not a directory", path=name)
    if not parsed.parts:
        return ""
    return parse(parsed.text).text


def require_link(path: str, text: str) -> None:
    """Refuse a link at *path* that could lead out of the archive, also through other links.

    `..` may occur only at the beginning of the text. There it climbs through real directories, because no
    member lies beyond a link; after a name, which may be a link itself, it could climb from anywhere.

    Raises:
        EscapeError: The text is absolute, climbs above the archive, or climbs again after a name.
        PathError: It is empty, too long or contains a drive letter, a backslash or a NUL.
    """
    parsed = parse_any(text)
    names = dropwhile(lambda part: part == "..", parsed.parts)
    if parsed.absolute or escapes(parse(path), text) or ".." in names:
        raise EscapeError(f"the link {path[:80]!r} could lead out of the archive", path=path)
    if "\\" in text:
        raise PathError(f"the target of the link {path[:80]!r} contains a backslash", path=path)


_IMPLIED = Member(name="", kind=FileKind.DIRECTORY)


class Plan:
    """The entries that an archive would create."""

    def __init__(self, meter: ExtractMeter) -> None:
        self._meter = meter
        self._folded: dict[str, bool] = {}
        """Case-folded, normalized paths, and whether each is a link."""
        self.entries: dict[str, Member] = {}
        """Members by path, parents first, including implied directories. A hard link has the size of the
        file that it becomes."""
        self.skipped: list[str] = []
        """Names of members that are not files."""

    def add(self, member: Member) -> str:
        """Add one member, in the order of the archive; return its path, empty if it creates nothing.

        Raises:
            EscapeError: Its name or its link leads out of the archive, or it goes through a link.
            PathError: Its name is invalid.
            ArchiveError: Another member has that name, or it is a hard link to no earlier member.
            LimitError: The archive exceeds a limit.
        """
        self._count(member.name, member.target or "", member.same_as or "")
        if member.kind is FileKind.OTHER:
            self.skipped.append(member.name)
            return ""
        path = parse_name(member.name, directory=member.kind is FileKind.DIRECTORY)
        if member.same_as is not None:
            member = replace(member, size_bytes=self._original(member, member.same_as).size_bytes)
        self._meter.add_content(member.size_bytes)
        if not path:
            return ""
        self._add_parents(path)
        if self._is_known_directory(path) and member.kind is FileKind.DIRECTORY:
            return path
        if path in self.entries:
            raise ArchiveError(f"two members are called {path[:80]!r}", path=path)
        if member.target is not None:
            require_link(path, member.target)
        self._enter(path, member)
        return path

    def _original(self, member: Member, name: str) -> Member:
        """Return the earlier file that *member* is a hard link to."""
        original = self.entries.get(parse_name(name))
        if original is None or original.kind is not FileKind.FILE:
            raise ArchiveError(
                f"member {member.name[:80]!r} is a hard link to no earlier file", path=member.name
            )
        return original

    def _is_known_directory(self, path: str) -> bool:
        known = self.entries.get(path)
        return known is not None and known.kind is FileKind.DIRECTORY

    def _add_parents(self, path: str) -> None:
        """Add the directories above *path*; no other kind of member may have their names."""
        missing: list[str] = []
        above = path.rpartition("/")[0]
        while above and not self._is_known_directory(above):
            known = self.entries.get(above)
            if known is not None and known.kind is FileKind.LINK:
                raise EscapeError(f"member {path[:80]!r} goes through a link", path=path)
            if known is not None:
                raise ArchiveError(f"member {above[:80]!r} is a file and a directory", path=above)
            missing.append(above)
            above = above.rpartition("/")[0]
        for directory in reversed(missing):
            self._count(directory)
            self._enter(directory, _IMPLIED)

    def _enter(self, path: str, member: Member) -> None:
        is_link = member.kind is FileKind.LINK
        folded = _fold(path)
        if folded not in self._folded:
            self._folded[folded] = is_link
        elif is_link or self._folded[folded]:
            raise EscapeError(
                f"member {path[:80]!r} differs from another only in case or normal form, and one is a link",
                path=path,
            )
        self.entries[path] = member

    def _count(self, *texts: str) -> None:
        self._meter.add_member()
        self._meter.add_header(sum(map(len, texts)))


def _fold(path: str) -> str:
    """Return *path* as a file system compares it that ignores case, normal form and zero-width characters."""
    if path.isascii():
        return path.lower()
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())
    return "".join(character for character in plain if unicodedata.category(character) != "Cf")

"""Judge all members of an archive together, before any of them becomes a file."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

from carrel.errors import ArchiveError, EscapeError
from carrel.values import FileKind
from carrel.workspace._archive_member import Member, parse_name, require_link
from carrel.workspace.extract_limits import Meter

_IMPLIED = Member(name="", kind=FileKind.DIRECTORY)


class Plan:
    """What an archive would make, as far as it was read."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._folded: dict[str, bool] = {}
        """Each path without regard to case and normal form, and whether it stands for a link."""
        self.entries: dict[str, Member] = {}
        """Members by their paths, parents first; also the directories that are only implied. A hard link
        is as large as the file that it becomes."""
        self.skipped: list[str] = []
        """Remarks that stand for no file."""

    def add(self, member: Member) -> str:
        """Take in one member, in the order of the archive; returns its path, empty if it makes nothing.

        Raises:
            EscapeError: Its name or its link leads out of the archive, or it goes through a link.
            PathError: Its name is none that we accept.
            ArchiveError: Another member has that name, or it is a hard link to nothing known.
            LimitError: The archive holds too much.
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
        """The earlier file that *member* is a hard link to."""
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
        """Take in the directories above *path*; nothing else may stand there."""
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
    """What a store would compare that does not care for case, normal form or characters without width."""
    if path.isascii():
        return path.lower()
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())
    return "".join(character for character in plain if unicodedata.category(character) != "Cf")

"""Extract an archive into a workspace: judged as a whole first, then written through the gate.

The archive is taken in whole, into a file without a name outside the workspace, and read twice. The first
pass makes nothing; it ends with an error if any member leads out, lies about itself or passes a limit. The
second makes directories, then files, then links, so that nothing is written through a link of the archive.

Owners, modes and times of members are not applied: files and directories are as new ones are. A hard link
becomes a copy. An archive inside the archive is a file like any other.

Not covered: a process that is killed, or a workspace that is closed midway, leaves what it had made by then;
and what somebody else puts into the place meanwhile is met by the rules of the workspace, not by those for
archives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from carrel.errors import CarrelError, ExistsError, MissingError, NotDirectoryError, QuotaError
from carrel.fs.api import Existing, Links
from carrel.fs.cancellable import uncancellable
from carrel.paths.parsed_path import StrPath, parse_any
from carrel.policy.rules import Access
from carrel.values import FileInfo, FileKind
from carrel.workspace.archive.create import ArchiveFormat
from carrel.workspace.archive.decompress import (
    GZIP,
    Decompressor,
    Inflater,
    bzip2_decompressor,
    decompressed,
    xz_decompressor,
)
from carrel.workspace.archive.members import Member, Plan, parse_name
from carrel.workspace.archive.spool import ArchiveSource, Spool, spooled
from carrel.workspace.archive.tar import BLOCK, tar_members
from carrel.workspace.archive.zip import END_MARK, LOCAL_MARK, zip_members
from carrel.workspace.extract_limits import ExtractLimits, ExtractMeter

if TYPE_CHECKING:
    from carrel.workspace.writing import WriteOperations

Members = Iterator[tuple[Member, Iterator[bytes]]]

_MAGIC = {
    b"\x1f\x8b": ArchiveFormat.TAR_GZ,
    b"BZh": ArchiveFormat.TAR_BZ2,
    b"\xfd7zXZ\0": ArchiveFormat.TAR_XZ,
    LOCAL_MARK: ArchiveFormat.ZIP,
    END_MARK: ArchiveFormat.ZIP,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What an extraction did."""

    files: int
    """Files written, hard links among them."""
    directories: int
    """Directories made, also those that the archive only implied."""
    links: int
    size_bytes: int
    """Sum of the sizes of the files."""
    skipped: tuple[str, ...] = ()
    """Names of members that stand for no file, such as the label of a tar archive."""


def extract(
    workspace: WriteOperations,
    source: ArchiveSource,
    path: StrPath = ".",
    *,
    format: ArchiveFormat | str | None = None,
    overwrite: bool = False,
    limits: ExtractLimits | None = None,
) -> Extracted:
    """Make the members of the archive *source* beneath the directory *path*, which is made if it is missing.

    If anything fails, what was made is removed again and what was there is as it was; only with *overwrite*,
    files and links that had been replaced by then stay replaced.

    Args:
        workspace: Where to.
        source: An open binary file, the bytes in pieces, or all of them.
        path: The directory that the names of the members begin at.
        format: What the archive is; by default, what its first bytes say.
        overwrite: Replace files by files and links by links. Without it nothing may be there but directories;
            with it neither may anything of another kind.
        limits: Ceilings, beside those of the workspace.

    Raises:
        ArchiveError: It is no archive that is read here, is broken or incomplete, or contradicts itself.
        EscapeError: A member or a link leads out of the archive, or a member goes through a link.
        PathError: The name of a member is none that we accept.
        NotRegularError: A member is a FIFO or a device.
        LimitError: A ceiling would be passed.
        ExistsError: Something stands in the way.
    """
    wanted = None if format is None else ArchiveFormat(format)
    ceilings = limits or ExtractLimits()
    place = _Place(workspace, path)
    place.missing()  # so that a place that cannot be is refused before the source is read
    ledger = workspace.gate.ledger
    with spooled(source, ceilings.archive_bytes, ledger, replacing=overwrite) as spool:
        archive = _Archive(spool, wanted or _detect(spool), ceilings)
        plan = archive.judge(place)
        extraction = _Extraction(place, plan, overwrite=overwrite)
        extraction.require_room()
        done = extraction.run(archive.members(archive.meter()))
    workspace.gate.log("extract", place.target, file_count=done.files, size_bytes=done.size_bytes)
    return done


def _detect(spool: Spool) -> ArchiveFormat:
    beginning = spool.read(0, 8)
    for magic, found in _MAGIC.items():
        if beginning.startswith(magic):
            return found
    return ArchiveFormat.TAR


@dataclass(frozen=True, slots=True)
class _Archive:
    """An archive that can be read as often as needed."""

    spool: Spool
    format: ArchiveFormat
    limits: ExtractLimits

    def meter(self) -> ExtractMeter:
        return ExtractMeter(self.limits, self.spool.size_bytes)

    def judge(self, place: _Place) -> Plan:
        """Read everything once, each content only if it may be written, and make nothing of it."""
        meter = self.meter()
        plan = Plan(meter)
        for member, content in self.members(meter):
            if path := plan.add(member):
                place.require_permitted(path, plan.entries[path].size_bytes)
            deque(content, maxlen=0)
        return plan

    def members(self, meter: ExtractMeter) -> Members:
        """Each member with its content, which is at hand until the next one is asked for."""
        if self.format is ArchiveFormat.ZIP:
            return zip_members(self.spool, meter)
        return tar_members(self._plain(meter), meter)

    def _plain(self, meter: ExtractMeter) -> Iterator[bytes]:
        """The bytes of the tar archive, whatever it is compressed by."""
        if self.format is ArchiveFormat.TAR:
            yield from self.spool.pieces()
            return

        def start() -> Decompressor:
            # To begin a stream costs something, however little is in it.
            meter.add_header(BLOCK)
            return _ENGINES[self.format]()

        for piece in decompressed(self.spool.pieces(), start):
            meter.add_expanded(len(piece))
            yield piece


_ENGINES = {
    ArchiveFormat.TAR_GZ: lambda: Inflater(GZIP),
    ArchiveFormat.TAR_BZ2: bzip2_decompressor,
    ArchiveFormat.TAR_XZ: xz_decompressor,
}


class _Place:
    """The directory that an archive is extracted into."""

    def __init__(self, workspace: WriteOperations, path: StrPath) -> None:
        """Name the directory; it need not be there.

        Raises:
            PathError: The path leads out or is none that we accept.
            AccessError: Nothing may be written there.
        """
        self.workspace = workspace
        self.target = workspace.gate.permit(Access.WRITE, path)[1]
        where = parse_any(self.target.requested)  # the one answer of a path object
        self._root = "/" if where.absolute else ""
        self._parts = where.parts

    def at(self, path: str) -> str:
        """Where the member at *path* belongs."""
        return self._root + "/".join((*self._parts, path))

    def require_permitted(self, path: str, size_bytes: int) -> None:
        """Refuse a member that the workspace would not take, whatever is there.

        Raises:
            PathError: Its path is too long.
            AccessError: Nothing may be written there.
            LimitError: It is too large, or lies too deep.
        """
        gate = self.workspace.gate
        gate.require_size(size_bytes, gate.permit(Access.WRITE, self.at(path))[1])

    def stat(self, place: str, links: Links) -> FileInfo:
        """What is there; a refusal is one of the extraction, so it is not recorded here.

        Raises:
            MissingError: There is nothing.
        """
        files, where = self.workspace.gate.permit(Access.READ, place)
        return files.stat(where, links)

    def missing(self) -> list[str]:
        """The directories that have to be made first, from the top down.

        Raises:
            NotDirectoryError: Something else is there.
        """
        found: list[str] = []
        for count in range(len(self.target.parts)):
            parts = self._parts[: len(self._parts) - count]
            place = self._root + "/".join(parts)
            try:
                kind = self.stat(place, Links.FOLLOW).kind
            except MissingError:
                if parts[-1] == "..":
                    raise
                found.append(place)
                continue
            if kind is not FileKind.DIRECTORY:
                raise NotDirectoryError(f"{place!r} is not a directory", path=place)
            break
        return found[::-1]


class _Extraction:
    """One archive on its way into a place; it knows what it made."""

    def __init__(self, place: _Place, plan: Plan, *, overwrite: bool) -> None:
        self._place = place
        self._workspace = place.workspace
        self._plan = plan
        self._overwrite = overwrite
        self._directories: list[str] = []
        """Those that have to be made, parents first."""
        self._there: set[str] = set()
        """Members whose name is taken by what may be kept or replaced."""
        self._replaced_bytes = 0
        """Sum of the sizes of the files that go when they are replaced."""
        self._made: list[str] = []

    # Before anything is made

    def require_room(self) -> None:
        """Find out what is there already, and whether the rest fits.

        Raises:
            ExistsError: Something stands in the way.
            LimitError: It does not fit into the quota.
        """
        self._directories = self._place.missing()
        above = len(self._directories)
        absent = {""} if above else set()
        for path, member in self._plan.entries.items():
            if path.rpartition("/")[0] not in absent and not self._is_absent(path, member):
                self._there.add(path)
                continue
            absent.add(path)
            if member.kind is FileKind.DIRECTORY:
                self._directories.append(self._place.at(path))
        size = sum(member.size_bytes for member in self._plan.entries.values())
        try:
            self._workspace.gate.require_room(
                more_bytes=size - self._replaced_bytes,
                more_entries=above + len(self._plan.entries) - len(self._there),
            )
        except QuotaError as error:
            error.path = error.filename = self._place.target.requested
            raise

    def _is_absent(self, path: str, member: Member) -> bool:
        """Whether nothing is there; anything else must be of the same kind, and may have to be replaced."""
        place = self._place.at(path)
        try:
            found = self._place.stat(place, Links.KEEP)
        except MissingError:
            return True
        if found.kind is not member.kind or not (self._overwrite or found.is_directory):
            raise ExistsError(f"{place!r} already exists: a {found.kind} is there", path=place)
        if found.is_file and found.links == 1:
            self._replaced_bytes += found.size_bytes
        return False

    # Making it

    def run(self, members: Members) -> Extracted:
        """Make everything, or nothing."""
        try:
            for place in self._directories:
                self._workspace.mkdir(place, parents=False)
                self._made.append(place)
            sizes = [self._make_file(*found) for found in members if found[0].kind is FileKind.FILE]
            links = [self._make_link(*found) for found in self._links()]
        except BaseException:
            self._take_away()
            raise
        return Extracted(
            files=len(sizes),
            directories=len(self._directories),
            links=len(links),
            size_bytes=sum(sizes),
            skipped=tuple(self._plan.skipped),
        )

    def _make_file(self, member: Member, content: Iterable[bytes]) -> int:
        """Write one file; returns its size."""
        path = parse_name(member.name)
        place = self._place.at(path)
        is_new = path not in self._there
        if member.same_as is not None:
            original = self._place.at(parse_name(member.same_as))
            self._workspace.copy(original, place, overwrite=not is_new)
        else:
            self._workspace.write_chunks(place, content, overwrite=not is_new, parents=False)
        if is_new:
            self._made.append(place)
        return self._plan.entries[path].size_bytes

    def _links(self) -> Iterator[tuple[str, str]]:
        for path, member in self._plan.entries.items():
            if member.target is not None:
                yield path, member.target

    def _make_link(self, path: str, target: str) -> str:
        """Make one link; returns its path."""
        is_new = path not in self._there
        gate = self._workspace.gate
        files, where = gate.permit(Access.WRITE, self._place.at(path))
        files.link(where, target, existing=Existing.REFUSE if is_new else Existing.REPLACE)
        if is_new:
            self._made.append(where.requested)
        gate.log("link", where, target=target)
        return where.requested

    def _take_away(self) -> None:
        """Remove what was made; a directory that somebody else put something into stays."""
        gate = self._workspace.gate
        for place in reversed(self._made):
            with suppress(CarrelError):
                files, where = gate.permit(Access.WRITE, place)
                uncancellable(files).remove(where)
                gate.log("delete", where, recursive=False)

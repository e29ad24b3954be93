"""Extract an archive into a workspace: validated as a whole first, then written through the gate.

The whole archive is spooled to an unnamed file outside the workspace and read twice. The first pass creates
nothing; it raises if any member leads out, contradicts itself or exceeds a limit. The second creates
directories, then files, then links, so that nothing is written through a link of the archive.

Owners, modes and times of members are not applied: files and directories get those of new ones. A hard link
becomes a copy. An archive inside the archive is a file like any other.

Not covered: a process that is killed, or a workspace that is closed midway, leaves what was created by then.
Entries that others create in the directory during the extraction are subject to the rules of the workspace,
not to those for archives.
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
    """Result of an extraction."""

    files: int
    """Number of files written, including hard links."""
    directories: int
    """Number of directories created, including implied ones."""
    links: int
    size_bytes: int
    """Sum of the sizes of the files."""
    skipped: tuple[str, ...] = ()
    """Names of members that are not files, such as the label of a tar archive."""


def extract(
    workspace: WriteOperations,
    source: ArchiveSource,
    path: StrPath = ".",
    *,
    format: ArchiveFormat | str | None = None,
    overwrite: bool = False,
    limits: ExtractLimits | None = None,
) -> Extracted:
    """Extract the archive *source* beneath the directory *path*, which is created if it is missing.

    If anything fails, everything that was created is removed; with *overwrite*, files and links that were
    replaced by then stay replaced.

    Args:
        workspace: The workspace to write to.
        source: An open binary file, an iterable of bytes, or bytes.
        path: The directory that the names of the members are relative to.
        format: Format of the archive; detected from its first bytes by default.
        overwrite: Replace files by files and links by links. Without it, only directories may exist already;
            with it, an existing entry must be of the same kind.
        limits: Limits in addition to those of the workspace.

    Raises:
        ArchiveError: It is not a supported archive, is corrupt or incomplete, or contradicts itself.
        EscapeError: A member or a link leads out of the archive, or a member goes through a link.
        PathError: The name of a member is invalid.
        NotRegularError: A member is a FIFO or a device.
        LimitError: A limit would be exceeded.
        ExistsError: A path of a member exists already.
    """
    wanted = None if format is None else ArchiveFormat(format)
    limits = limits or ExtractLimits()
    target = _Target(workspace, path)
    target.missing()  # so that an impossible path is refused before the source is read
    ledger = workspace.gate.ledger
    with spooled(source, limits.archive_bytes, ledger, replacing=overwrite) as spool:
        archive = _Archive(spool, wanted or _detect(spool), limits)
        plan = archive.validate(target)
        extraction = _Extraction(target, plan, overwrite=overwrite)
        extraction.require_room()
        done = extraction.run(archive.members(archive.meter()))
    workspace.gate.log("extract", target.path, file_count=done.files, size_bytes=done.size_bytes)
    return done


def _detect(spool: Spool) -> ArchiveFormat:
    beginning = spool.read(0, 8)
    for magic, found in _MAGIC.items():
        if beginning.startswith(magic):
            return found
    return ArchiveFormat.TAR


@dataclass(frozen=True, slots=True)
class _Archive:
    """A spooled archive, which can be read several times."""

    spool: Spool
    format: ArchiveFormat
    limits: ExtractLimits

    def meter(self) -> ExtractMeter:
        return ExtractMeter(self.limits, self.spool.size_bytes)

    def validate(self, target: _Target) -> Plan:
        """Read and validate the whole archive without writing; return the plan."""
        meter = self.meter()
        plan = Plan(meter)
        for member, content in self.members(meter):
            if path := plan.add(member):
                target.require_permitted(path, plan.entries[path].size_bytes)
            deque(content, maxlen=0)
        return plan

    def members(self, meter: ExtractMeter) -> Members:
        """Yield each member with its content, which must be read before the next member."""
        if self.format is ArchiveFormat.ZIP:
            return zip_members(self.spool, meter)
        return tar_members(self._plain(meter), meter)

    def _plain(self, meter: ExtractMeter) -> Iterator[bytes]:
        """Yield the bytes of the tar archive, decompressed."""
        if self.format is ArchiveFormat.TAR:
            yield from self.spool.pieces()
            return

        def start() -> Decompressor:
            # Starting a stream has a cost, even if it is empty.
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


class _Target:
    """The directory that an archive is extracted into."""

    def __init__(self, workspace: WriteOperations, path: StrPath) -> None:
        """Set the directory, which need not exist.

        Raises:
            PathError: The path leads out or is invalid.
            AccessError: Its rule does not allow writing.
        """
        self.workspace = workspace
        self.path = workspace.gate.permit(Access.WRITE, path)[1]
        requested = parse_any(self.path.requested)  # not `path` again: an object may return another
        self._root = "/" if requested.absolute else ""
        self._parts = requested.parts

    def at(self, path: str) -> str:
        """Return the workspace path of the member *path*."""
        return self._root + "/".join((*self._parts, path))

    def require_permitted(self, path: str, size_bytes: int) -> None:
        """Refuse a member that the rules or limits of the workspace forbid.

        Raises:
            PathError: Its path is too long.
            AccessError: Its rule does not allow writing.
            LimitError: It is too large or too deep.
        """
        gate = self.workspace.gate
        gate.require_size(size_bytes, gate.permit(Access.WRITE, self.at(path))[1])

    def stat(self, path: str, links: Links) -> FileInfo:
        """Return the metadata of *path*; a refusal is recorded as one of the extraction, not here.

        Raises:
            MissingError: It does not exist.
        """
        files, parsed = self.workspace.gate.permit(Access.READ, path)
        return files.stat(parsed, links)

    def missing(self) -> list[str]:
        """Return the missing directories on the path, from the top down.

        Raises:
            NotDirectoryError: One of them exists and is not a directory.
        """
        found: list[str] = []
        for count in range(len(self.path.parts)):
            parts = self._parts[: len(self._parts) - count]
            path = self._root + "/".join(parts)
            try:
                kind = self.stat(path, Links.FOLLOW).kind
            except MissingError:
                if parts[-1] == "..":
                    raise
                found.append(path)
                continue
            if kind is not FileKind.DIRECTORY:
                raise NotDirectoryError(f"{path!r} is not a directory", path=path)
            break
        return found[::-1]


class _Extraction:
    """Creates the entries of a plan, and removes them after a failure."""

    def __init__(self, target: _Target, plan: Plan, *, overwrite: bool) -> None:
        self._target = target
        self._workspace = target.workspace
        self._plan = plan
        self._overwrite = overwrite
        self._directories: list[str] = []
        """Directories to create, parents first."""
        self._existing: set[str] = set()
        """Paths of members that exist already and are kept or replaced."""
        self._replaced_bytes = 0
        """Sum of the sizes of the files that are replaced."""
        self._created: list[str] = []

    # Before anything is created

    def require_room(self) -> None:
        """Find the members that exist already, and require that the others fit in the quota.

        Raises:
            ExistsError: A path of a member exists already.
            LimitError: The members do not fit in the quota.
        """
        self._directories = self._target.missing()
        above = len(self._directories)
        absent = {""} if above else set()
        for path, member in self._plan.entries.items():
            if path.rpartition("/")[0] not in absent and not self._is_absent(path, member):
                self._existing.add(path)
                continue
            absent.add(path)
            if member.kind is FileKind.DIRECTORY:
                self._directories.append(self._target.at(path))
        size = sum(member.size_bytes for member in self._plan.entries.values())
        try:
            self._workspace.gate.require_room(
                more_bytes=size - self._replaced_bytes,
                more_entries=above + len(self._plan.entries) - len(self._existing),
            )
        except QuotaError as error:
            error.path = error.filename = self._target.path.requested
            raise

    def _is_absent(self, path: str, member: Member) -> bool:
        """Whether *path* does not exist; an existing entry must be of the same kind to be replaced."""
        location = self._target.at(path)
        try:
            found = self._target.stat(location, Links.KEEP)
        except MissingError:
            return True
        if found.kind is not member.kind or not (self._overwrite or found.is_directory):
            raise ExistsError(f"{location!r} already exists: a {found.kind} is there", path=location)
        if found.is_file and found.links == 1:
            self._replaced_bytes += found.size_bytes
        return False

    # Creating

    def run(self, members: Members) -> Extracted:
        """Create all members, or none."""
        try:
            for directory in self._directories:
                self._workspace.mkdir(directory, parents=False)
                self._created.append(directory)
            sizes = [self._create_file(*found) for found in members if found[0].kind is FileKind.FILE]
            links = [self._create_link(*found) for found in self._links()]
        except BaseException:
            self._undo()
            raise
        return Extracted(
            files=len(sizes),
            directories=len(self._directories),
            links=len(links),
            size_bytes=sum(sizes),
            skipped=tuple(self._plan.skipped),
        )

    def _create_file(self, member: Member, content: Iterable[bytes]) -> int:
        """Write one file; return its size."""
        path = parse_name(member.name)
        location = self._target.at(path)
        is_new = path not in self._existing
        if member.same_as is not None:
            original = self._target.at(parse_name(member.same_as))
            self._workspace.copy(original, location, overwrite=not is_new)
        else:
            self._workspace.write_chunks(location, content, overwrite=not is_new, parents=False)
        if is_new:
            self._created.append(location)
        return self._plan.entries[path].size_bytes

    def _links(self) -> Iterator[tuple[str, str]]:
        for path, member in self._plan.entries.items():
            if member.target is not None:
                yield path, member.target

    def _create_link(self, path: str, target: str) -> str:
        """Create one link; return its path."""
        is_new = path not in self._existing
        gate = self._workspace.gate
        files, parsed = gate.permit(Access.WRITE, self._target.at(path))
        files.link(parsed, target, existing=Existing.REFUSE if is_new else Existing.REPLACE)
        if is_new:
            self._created.append(parsed.requested)
        gate.log("link", parsed, target=target)
        return parsed.requested

    def _undo(self) -> None:
        """Remove everything that was created, except directories to which others have added entries."""
        gate = self._workspace.gate
        for path in reversed(self._created):
            with suppress(CarrelError):
                files, parsed = gate.permit(Access.WRITE, path)
                uncancellable(files).remove(parsed)
                gate.log("delete", parsed, recursive=False)

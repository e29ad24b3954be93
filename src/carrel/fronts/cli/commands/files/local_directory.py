"""Local directories, outside any workspace: packed into an archive, and written from one.

Each is opened as a workspace of its own, so that no link in it can lead out of it, no matter who created it.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator

from carrel.audit.logger import SandboxLogger
from carrel.errors import CarrelError
from carrel.fronts.cli.local_files import LocalError, draft_path
from carrel.policy.rules import AccessMode, SandboxPolicy
from carrel.values import Limits
from carrel.workspace.archive.create import LeftOut
from carrel.workspace.chunks import SourceError, guarded
from carrel.workspace.extract_limits import ExtractLimits
from carrel.workspace.workspace import Workspace

UNLIMITED = Limits(
    file_bytes=None, read_bytes=None, scan_bytes=None, list_entries=None, walk_entries=None, depth=None
)
UNLIMITED_ARCHIVE = ExtractLimits(
    archive_bytes=None, extracted_bytes=None, members=None, header_bytes=None, ratio=None
)
"""For an archive packed here from a local directory; the limits of the session still apply."""


def pack_directory(path: str, left_out: Callable[[LeftOut], None]) -> Iterator[bytes]:
    """Pack a local directory into a tar archive, yielded in chunks.

    Raises:
        LocalError: The directory cannot be read, or changes too much while it is read.
    """
    try:
        with _open_as_workspace(path, AccessMode.READ_ONLY) as tree:
            yield from tree.archive(left_out=left_out)
    except CarrelError as error:
        raise LocalError(f"cannot read {path!r}: {error.message}", path=path) from None


class LocalDirectoryWriter:
    """Creates or fills a local directory; conflicts are reported before any content is read."""

    def __init__(self, path: str, *, fill: bool) -> None:
        """Write to *path*; with *fill*, write into an existing directory, following links.

        Raises:
            LocalError: *path* exists and must not be changed.
        """
        self._requested = path
        self._path = os.path.realpath(path) if fill else os.path.abspath(path)
        self._exists = os.path.lexists(self._path)
        if self._exists and not fill:
            raise LocalError(f"{path!r} already exists; use --force to replace files in it", path=path)
        if self._exists and not os.path.isdir(self._path):
            raise LocalError(f"{path!r} is not a directory", path=path)

    def write(self, pieces: Iterable[bytes]) -> None:
        """Extract an archive to a temporary directory, and rename it when it is complete.

        An existing directory is written in place: new files appear all or none, but files that were replaced
        before an error stay replaced.

        Raises:
            LocalError: The directory cannot be written, or an entry in it conflicts with the archive.
        """
        if self._exists:
            self._extract(pieces, self._path)
            return
        draft = draft_path(self._path)
        try:
            try:
                os.mkdir(draft)
                self._extract(pieces, draft)
                os.rename(draft, self._path)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        except OSError as error:
            if isinstance(error, CarrelError):
                raise
            raise LocalError(
                f"cannot write {self._requested!r}: {error.strerror}", path=self._requested
            ) from None

    def _extract(self, pieces: Iterable[bytes], directory: str) -> None:
        try:
            with _open_as_workspace(directory, AccessMode.READ_WRITE) as tree:
                tree.extract(guarded(pieces), overwrite=self._exists)
        except SourceError as error:
            cause = error.__cause__
        except CarrelError as error:
            raise LocalError(
                f"cannot write {self._requested!r}: {error.message}", path=self._requested
            ) from None
        else:
            return
        raise cause or OSError("the source of the archive failed")


def _open_as_workspace(path: str, mode: AccessMode) -> Workspace:
    directory = os.path.realpath(path)
    silent = SandboxLogger(logging.Logger("carrel.local", logging.CRITICAL + 1))
    policy = SandboxPolicy.for_workspace(directory, mode)
    return Workspace.open(directory, policy=policy, limits=UNLIMITED, logger=silent)

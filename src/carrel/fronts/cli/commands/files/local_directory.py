"""Directories of this machine, outside any workspace: packed into an archive, and written from one.

Each is opened as a workspace of its own, so that no link in it leads out of it, whoever made the link.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator

from carrel.audit.logger import SandboxLogger
from carrel.errors import CarrelError
from carrel.fronts.cli.local_files import LocalError, draft_beside
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
"""For an archive that was made here of a local directory: what it may hold is up to the session."""


def pack_directory(path: str, left_out: Callable[[LeftOut], None]) -> Iterator[bytes]:
    """What is in the local directory, as the pieces of a tar archive.

    Raises:
        LocalError: It cannot be read, or changes too much meanwhile.
    """
    try:
        with _opened(path, AccessMode.READ_ONLY) as tree:
            yield from tree.archive(left_out=left_out)
    except CarrelError as error:
        raise LocalError(f"cannot read {path!r}: {error.message}", path=path) from None


class LocalDirectoryWriter:
    """A local directory to be made, or to be filled; what is in its way is told before anything is read."""

    def __init__(self, path: str, *, fill: bool) -> None:
        """Name the directory at *path*; with *fill*, one that is there is filled, through links too.

        Raises:
            LocalError: Something is there that must not be touched.
        """
        self._asked = path
        self._path = os.path.realpath(path) if fill else os.path.abspath(path)
        self._is_there = os.path.lexists(self._path)
        if self._is_there and not fill:
            raise LocalError(f"{path!r} already exists; --force replaces the files in it", path=path)
        if self._is_there and not os.path.isdir(self._path):
            raise LocalError(f"{path!r} is not a directory", path=path)

    def write(self, pieces: Iterable[bytes]) -> None:
        """Make what is in the archive beside the directory first, and put it in place when it is complete.

        What is there already is filled where it is: all or nothing of what is new, but files that were
        replaced before an error stay replaced.

        Raises:
            LocalError: It cannot be written, or something in it stands in the way.
        """
        if self._is_there:
            self._extract(pieces, self._path)
            return
        draft = draft_beside(self._path)
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
            raise LocalError(f"cannot write {self._asked!r}: {error.strerror}", path=self._asked) from None

    def _extract(self, pieces: Iterable[bytes], directory: str) -> None:
        try:
            with _opened(directory, AccessMode.READ_WRITE) as tree:
                tree.extract(guarded(pieces), overwrite=self._is_there)
        except SourceError as error:
            cause = error.__cause__
        except CarrelError as error:
            raise LocalError(f"cannot write {self._asked!r}: {error.message}", path=self._asked) from None
        else:
            return
        raise cause or OSError("the source of the archive failed")


def _opened(path: str, mode: AccessMode) -> Workspace:
    directory = os.path.realpath(path)
    silent = SandboxLogger(logging.Logger("carrel.local", logging.CRITICAL + 1))
    policy = SandboxPolicy.for_workspace(directory, mode)
    return Workspace.open(directory, policy=policy, limits=UNLIMITED, logger=silent)

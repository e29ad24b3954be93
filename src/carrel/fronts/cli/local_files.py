"""Local files, outside any workspace: read in chunks, written atomically."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import BinaryIO

from carrel.errors import CarrelError

STREAM = "-"
"""The operand that means standard input or output."""
CHUNK_BYTES = 2**20
"""Read size for local files."""
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
"""Errors of `link` on a file system without hard links."""


class LocalError(Exception):
    """A local file cannot be used."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.message = message
        self.path = path


def open_source(path: str) -> BinaryIO:
    """Open a local file, or standard input.

    Raises:
        LocalError: It is missing, a directory, or cannot be read.
    """
    if path == STREAM:
        return sys.stdin.buffer
    try:
        return open(path, "rb")
    except IsADirectoryError:
        raise LocalError(f"{path!r} is a directory", path=path) from None
    except OSError as error:
        raise LocalError(f"cannot read {path!r}: {error.strerror}", path=path) from None


def read_chunks(source: BinaryIO, path: str) -> Iterator[bytes]:
    """The content of *source* in chunks.

    Raises:
        LocalError: Reading fails.
    """
    try:
        while chunk := source.read(CHUNK_BYTES):
            yield chunk
    except OSError as error:
        raise LocalError(f"cannot read {path!r}: {error.strerror}", path=path) from None


def draft_path(path: str) -> str:
    """A temporary path in the directory of *path*, for content that is not complete yet."""
    return os.path.join(os.path.dirname(path), f".carrel-{os.urandom(8).hex()}.part")


class LocalFileWriter:
    """Writes a local file; conflicts are reported before any content is read."""

    def __init__(self, path: str, *, replace: bool) -> None:
        """Write to *path*; with *replace*, overwrite an existing file, following links.

        Raises:
            LocalError: *path* exists and must not be replaced.
        """
        self._requested = path
        self._replace = replace
        self._path = os.path.realpath(path) if replace else path
        with suppress(OSError):
            self._require_replaceable(os.lstat(self._path))

    def _require_replaceable(self, found: os.stat_result) -> None:
        if stat.S_ISDIR(found.st_mode):
            raise LocalError(
                f"{self._requested!r} is a directory; give the path of a file in it", path=self._requested
            )
        if not self._replace:
            raise LocalError(
                f"{self._requested!r} already exists; use --force to replace it", path=self._requested
            )
        if not stat.S_ISREG(found.st_mode):
            raise LocalError(f"{self._requested!r} is not a regular file", path=self._requested)

    def write(self, content: Iterable[bytes]) -> None:
        """Write *content* to a temporary file, and rename it when it is complete.

        Raises:
            LocalError: The file cannot be written, or was created by another program in the meantime.
        """
        draft = draft_path(self._path)
        try:
            try:
                with open(draft, "xb") as file:
                    file.writelines(content)
                self._commit(draft)
            finally:
                with suppress(OSError):
                    os.unlink(draft)
        except OSError as error:
            if isinstance(error, CarrelError):
                raise
            raise LocalError(
                f"cannot write {self._requested!r}: {error.strerror}", path=self._requested
            ) from None

    def _commit(self, draft: str) -> None:
        if self._replace:
            os.replace(draft, self._path)
            return
        try:
            os.link(draft, self._path)
        except OSError as error:
            if error.errno not in _NO_LINKS or os.path.lexists(self._path):
                raise
            os.rename(draft, self._path)

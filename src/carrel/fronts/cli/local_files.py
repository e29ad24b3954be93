"""Files of this machine, outside any workspace: read in chunks, written completely or not at all."""

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
"""Stands for standard input or output."""
CHUNK_BYTES = 2**20
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)


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


def chunks(source: BinaryIO, path: str) -> Iterator[bytes]:
    """The content of *source* piece by piece.

    Raises:
        LocalError: It cannot be read to its end.
    """
    try:
        while chunk := source.read(CHUNK_BYTES):
            yield chunk
    except OSError as error:
        raise LocalError(f"cannot read {path!r}: {error.strerror}", path=path) from None


def draft_beside(path: str) -> str:
    """A name beside *path* for what is not complete yet."""
    return os.path.join(os.path.dirname(path), f".carrel-{os.urandom(8).hex()}.part")


class LocalFileWriter:
    """A local file to be written; what is in its way is told before anything is read."""

    def __init__(self, path: str, *, replace: bool) -> None:
        """Name the file at *path*; with *replace*, a file that is there is replaced, through links too.

        Raises:
            LocalError: Something is there that must not be replaced.
        """
        self._asked = path
        self._replace = replace
        self._path = os.path.realpath(path) if replace else path
        with suppress(OSError):
            self._require_replaceable(os.lstat(self._path))

    def _require_replaceable(self, found: os.stat_result) -> None:
        if stat.S_ISDIR(found.st_mode):
            raise LocalError(f"{self._asked!r} is a directory; name the file in it", path=self._asked)
        if not self._replace:
            raise LocalError(f"{self._asked!r} already exists; --force replaces it", path=self._asked)
        if not stat.S_ISREG(found.st_mode):
            raise LocalError(f"{self._asked!r} is not a regular file", path=self._asked)

    def write(self, content: Iterable[bytes]) -> None:
        """Write *content* beside the file first, and put it in place when it is complete.

        Raises:
            LocalError: The file cannot be written, or somebody made one meanwhile.
        """
        draft = draft_beside(self._path)
        try:
            try:
                with open(draft, "xb") as file:
                    file.writelines(content)
                self._put_in_place(draft)
            finally:
                with suppress(OSError):
                    os.unlink(draft)
        except OSError as error:
            if isinstance(error, CarrelError):
                raise
            raise LocalError(f"cannot write {self._asked!r}: {error.strerror}", path=self._asked) from None

    def _put_in_place(self, draft: str) -> None:
        if self._replace:
            os.replace(draft, self._path)
            return
        try:
            os.link(draft, self._path)
        except OSError as error:
            if error.errno not in _NO_LINKS or os.path.lexists(self._path):
                raise
            os.rename(draft, self._path)

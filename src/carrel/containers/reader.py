"""`ContainerReader`: a file in a container, open to be read."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from weakref import finalize

from carrel.containers.shell_steps import PIECE_BYTES
from carrel.containers.steps import Found, Held, Met, Parts, Piece, Steps, SwappedError
from carrel.errors import CarrelError
from carrel.fs.translate import translate
from carrel.paths.rel import Where
from carrel.values import FileInfo


class ContainerReader:
    """An open file, read by chunks; it outlives the name, and the end of its `ContainerFiles`.

    A small file was read as a whole when it was opened, and only what is appended later is looked for at
    its name. A large one is kept open in the container.
    """

    def __init__(
        self,
        steps: Steps,
        parts: Parts,
        opened: Held | Piece,
        info: FileInfo,
        where: Where,
    ) -> None:
        """Read on from *opened*, which is the file at *parts*."""
        self._steps = steps
        self._parts = parts
        self._where = where
        self._at = 0
        self.info = info
        self._held = opened if isinstance(opened, Held) else None
        self._stat = opened[0]
        self._content = b"" if isinstance(opened, Held) else opened[1]
        if self._held is not None:
            finalize(self, steps.drop, self._held)

    def chunks(self, chunk_bytes: int, offset: int = 0) -> Iterator[bytes]:
        """The content from *offset* on, at most *chunk_bytes* at a time."""
        self._at += offset
        ahead = b""
        while True:
            if not ahead:
                ahead = self._read(max(chunk_bytes, PIECE_BYTES), self._at)
                if not ahead:
                    return
            piece, ahead = ahead[:chunk_bytes], ahead[chunk_bytes:]
            self._at += len(piece)
            yield piece

    def read(self, length: int, offset: int = 0) -> bytes:
        """So much of the content from *offset* on, or what there is of it."""
        found: list[bytes] = []
        while length > 0 and (piece := self._read(length, offset)):
            found.append(piece[:length])
            offset += len(found[-1])
            length -= len(found[-1])
        return b"".join(found)

    def _read(self, count: int, offset: int) -> bytes:
        if offset < len(self._content):
            return self._content[offset : offset + count]
        try:
            if self._held is not None:
                return self._steps.read_held(self._held, offset, count)
            return self._appended(count, offset)
        except CarrelError:
            raise
        except SwappedError:
            number: int | None = errno.EAGAIN
        except OSError as error:
            number = error.errno
        raise translate(number, self._where)

    def _appended(self, count: int, offset: int) -> bytes:
        """What was added since it was opened, if its name still stands for it."""
        try:
            found = self._steps.read(self._parts, offset, count)
        except (SwappedError, FileNotFoundError, NotADirectoryError):
            return b""
        if isinstance(found, Met | Found):
            return b""
        now, data = found
        return data if (now.st_dev, now.st_ino) == (self._stat.st_dev, self._stat.st_ino) else b""

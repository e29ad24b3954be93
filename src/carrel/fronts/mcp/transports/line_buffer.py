"""`LineBuffer`: split the bytes of a stream into lines of bounded length."""

from __future__ import annotations


class LineBuffer:
    """Splits a stream that is read in pieces; the bytes of a line that is too long are dropped."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def split(self, data: bytes) -> list[bytes | ValueError]:
        """Return the lines that end in *data*, with an error in place of each one that is too long."""
        first, *others = data.split(b"\n")
        self._add(first)
        if not others:
            return []
        *whole, rest = others
        lines = [self._take_line()]
        for each in whole:
            self._add(each)
            lines.append(self._take_line())
        self._add(rest)
        return lines

    def end(self) -> list[bytes | ValueError]:
        """Return the last line if it has no line end."""
        return [self._take_line()] if self._size else []

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max_bytes:
            self._pieces.clear()
        elif piece:
            self._pieces.append(piece)

    def _take_line(self) -> bytes | ValueError:
        size, self._size = self._size, 0
        if size > self._max_bytes:
            return ValueError(f"a line of {size} bytes is too long; the limit is {self._max_bytes}")
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

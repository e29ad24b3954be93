"""`LineBuffer`: split the bytes of a stream into lines of bounded length."""

from __future__ import annotations


class LineBuffer:
    """Cuts what is read piece by piece; of a line that is too long nothing is kept."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def split(self, data: bytes) -> list[bytes | ValueError]:
        """The lines that end in *data*, without their ends; an error instead of one that is too long."""
        first, *others = data.split(b"\n")
        self._keep(first)
        if not others:
            return []
        *whole, rest = others
        found = [self._line()]
        for each in whole:
            self._keep(each)
            found.append(self._line())
        self._keep(rest)
        return found

    def end(self) -> list[bytes | ValueError]:
        """The last line, if it has no end."""
        return [self._line()] if self._size else []

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._most_bytes:
            self._pieces.clear()
        elif piece:
            self._pieces.append(piece)

    def _line(self) -> bytes | ValueError:
        size, self._size = self._size, 0
        if size > self._most_bytes:
            return ValueError(f"a line of {size} bytes is too long; at most {self._most_bytes}")
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

"""What is read piece by piece comes out line by line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from carrel.fronts.mcp.transports.line_buffer import LineBuffer

MOST = 5
PIECES = st.lists(st.lists(st.sampled_from([b"\n", b"a", b"bcd"]), max_size=8).map(b"".join), max_size=8)


def split(pieces: list[bytes]) -> list[bytes | None]:
    """The lines; `None` for each that is too long."""
    splitter = LineBuffer(MOST)
    found = [line for piece in pieces for line in splitter.split(piece)] + splitter.end()
    return [line if isinstance(line, bytes) else None for line in found]


@given(PIECES)
def test_it_does_not_matter_where_the_pieces_end(pieces: list[bytes]) -> None:
    *whole, rest = b"".join(pieces).split(b"\n")
    lines = [*whole, *([rest] if rest else [])]
    assert split(pieces) == [line if len(line) <= MOST else None for line in lines]


def test_of_a_line_that_is_too_long_nothing_is_kept() -> None:
    splitter = LineBuffer(MOST)
    for _ in range(1000):
        assert splitter.split(b"abc") == []
    assert splitter._pieces == []
    (error, line) = splitter.split(b"\nnext\n")
    assert str(error) == "a line of 3000 bytes is too long; the limit is 5"
    assert line == b"next"

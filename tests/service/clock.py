"""Time that passes when a test says so."""

from __future__ import annotations

from dataclasses import dataclass

SECOND = 10**9
START = 1_700_000_000 * SECOND


@dataclass(slots=True)
class FakeClock:
    """A clock of nanoseconds."""

    now_ns: int = START

    def __call__(self) -> int:
        return self.now_ns

    def seconds(self) -> float:
        """The same, as clocks of seconds tell it."""
        return self.now_ns / SECOND

    def advance(self, seconds: float) -> None:
        self.now_ns += int(seconds * SECOND)

"""`RefusalCounts`: how many operations were refused, and how many mistakes callers made, by error code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from threading import RLock

MAX_CODES = 256
"""Maximum number of different codes that are counted apart, so that metrics have few labels."""
OTHER = "other"
"""Counts the codes beyond that number."""

Count = tuple[bool, str, int]
"""Whether it counts mistakes, the error code, and the number."""


class RefusalCounts:
    """Counts refusals, and mistakes such as a syntax error apart from them; for all threads."""

    def __init__(self) -> None:
        # Reentrant, because a signal handler may interrupt a refusal in the same thread.
        self._lock = RLock()
        self._numbers: Counter[tuple[bool, str]] = Counter()

    def add(self, code: str, number: int = 1, *, is_mistake: bool = False) -> None:
        """Count a refusal with the error *code*, or *number* of them."""
        with self._lock:
            key = is_mistake, code
            if key not in self._numbers and len(self._numbers) >= MAX_CODES:
                key = is_mistake, OTHER
            self._numbers[key] += number

    def add_all(self, counts: Iterable[Count]) -> None:
        """Add what `take` returned in another process."""
        for is_mistake, code, number in counts:
            self.add(code, number, is_mistake=is_mistake)

    def take(self) -> list[Count]:
        """Return all numbers, and start again at zero."""
        with self._lock:
            taken = [(*key, number) for key, number in self._numbers.items()]
            self._numbers.clear()
            return taken

    def of(self, *, mistakes: bool) -> dict[str, int]:
        """Return the number of refusals, or of *mistakes*, by error code."""
        with self._lock:
            return {
                code: number for (is_mistake, code), number in self._numbers.items() if is_mistake is mistakes
            }

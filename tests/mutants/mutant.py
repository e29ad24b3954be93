"""`Mutant`: the sources with one guard less."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class StaleError(Exception):
    """The text that a mutant replaces is not in the sources exactly once."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard less."""

    name: str
    file: str
    """Beneath `src/carrel`."""
    old: str
    new: str
    tests: str
    """A file, and after a `::` the name of a test in it."""

    def applied(self, sources: Path) -> str:
        """Return the text of the file without the guard.

        Raises:
            StaleError: The guard is not there exactly once.
        """
        text = (sources / "carrel" / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            found = f"{text.count(self.old)} times in {self.file}"
            raise StaleError(f"mutant {self.name!r} is stale: its text is {found}, not once")
        return text.replace(self.old, self.new)

"""State of one `find`: the file being tested, and what its expression has set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from carrel.shell.command.context import Context
from carrel.values import FileInfo


class ExpressionError(Exception):
    """An expression that cannot be used; nothing is searched."""


class QuitSearch(Exception):  # nothing is wrong
    """The search is over."""


class FoundFile(NamedTuple):
    """One file that the search has come to."""

    path: str
    """As it is shown."""
    info: FileInfo
    depth: int
    start: str
    """The starting point that it lies beneath."""

    @property
    def name(self) -> str:
        """The last name of the path."""
        return self.path.rstrip("/").rpartition("/")[2] or self.path[:1]


Predicate = Callable[[FoundFile], bool]


@dataclass(slots=True)
class SearchState:
    """What one `find` knows and is told by its expression."""

    ctx: Context
    now_ns: int
    min_depth: int = 0
    max_depth: int | None = None
    post_order: bool = False
    """Whether what is in a directory comes before it."""
    has_action: bool = False
    """Whether something is done with what is found, so that it is not printed anyway."""
    pruned: bool = False
    """Whether the directory that was just visited is not to be gone into."""
    regex_type: str = "emacs"

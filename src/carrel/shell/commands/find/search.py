"""State of one search: the file being tested, and the options that the expression set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from carrel.shell.command.context import Context
from carrel.shell.command.paths import base_name
from carrel.values import FileInfo


class ExpressionError(Exception):
    """The expression is invalid; nothing is searched."""


class QuitSearch(Exception):  # not an error
    """Raised by `-quit` to end the search."""


class FoundFile(NamedTuple):
    """One file to test."""

    path: str
    """Display path."""
    info: FileInfo
    depth: int
    start: str
    """The starting point that the file is beneath."""

    @property
    def name(self) -> str:
        """The last component of the path."""
        return base_name(self.path) or self.path[:1]


Predicate = Callable[[FoundFile], bool]


@dataclass(slots=True)
class SearchState:
    """State that the predicates of one search share."""

    ctx: Context
    now_ns: int
    min_depth: int = 0
    max_depth: int | None = None
    post_order: bool = False
    """Whether the content of a directory is tested before the directory itself."""
    has_action: bool = False
    """Whether the expression has an action, so that the implicit `-print` is left out."""
    pruned: bool = False
    """Whether the walk must not descend into the directory just tested."""
    regex_type: str = "emacs"

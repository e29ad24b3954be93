"""A pattern for files as deepagents defines it, matched in linear time."""

from __future__ import annotations

from carrel.paths.match import Pattern
from carrel.tools.glob_pattern import GlobPattern


class FileGlob:
    """A pattern without a slash matches names at any depth, another the path beneath the search root.

    A slash in front ties a name to the root. A name that begins with a dot is matched only by a part of the
    pattern that does so too.
    """

    def __init__(self, text: str) -> None:
        """Compile *text*.

        Raises:
            PatternError: It is no pattern, or stands for too many.
        """
        # A dot in front keeps a single name from matching at any depth.
        self._glob = GlobPattern(f".{text}" if text.startswith("/") else text)
        self.parts = self._glob.parts
        """The patterns of carrel that it stands for."""
        self._dotted = [
            Pattern(part)
            for each in self.parts
            for part in each.split("/")
            if part.startswith(".") and part != "."
        ]
        self.enters_hidden = self._glob.anywhere or bool(self._dotted)
        """Whether anything in a directory can match whose name begins with a dot."""

    def matches(self, path: str) -> bool:
        """Whether the *path*, seen from the search root, matches."""
        if not self._glob.matches(path):
            return False
        names = path.split("/")
        judged = names[-1:] if self._glob.anywhere else names
        return all(
            any(pattern.matches(name) for pattern in self._dotted) for name in judged if name.startswith(".")
        )

r"""Glob patterns, matched only against paths that a walk has found.

`*`, `?` and `[...]` match inside one name, `**` any number of names. A pattern without a slash matches the
name at any depth; one with a slash matches the whole relative path. `\` is a separator, as in paths.
Matching takes time in proportion to the pattern and the path: each name is matched by a regular expression
that cannot backtrack into earlier stars, and `**` by the same greedy rule over names.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from functools import lru_cache

from carrel.errors import PatternError

PATTERN_CHARACTERS = 1024
_MAGIC = re.compile(r"[*?[]")


class Pattern:
    """A compiled glob."""

    def __init__(self, text: str) -> None:
        """Compile *text*.

        Raises:
            PatternError: It is empty, absolute, too long or contains `..`.
        """
        if not isinstance(text, str):
            raise TypeError(f"a pattern must be str, not {type(text).__name__}")
        self.text = text
        plain = text.replace("\\", "/")
        parts = [part for part in plain.split("/") if part not in ("", ".")]
        if problem := _problem(plain, parts):
            raise PatternError(f"invalid pattern {text[:80]!r}: {problem}")
        self.anywhere = "/" not in plain and parts != ["**"]
        self._parts = [_compile(part) for part in parts]
        self.literal_parent = _literal_parent(parts)
        """The leading names without wildcards, where a search may begin."""

    def matches(self, path: str) -> bool:
        """Whether the relative *path* matches."""
        if self.anywhere:
            only = self._parts[0]
            return only is not None and only.match(path.rpartition("/")[2]) is not None
        return _match(self._parts, path.split("/"))

    def matches_name(self, name: str) -> bool:
        """Whether a path whose last name is *name* can match."""
        last = self._parts[-1]
        return last is None or last.match(name) is not None


def _problem(plain: str, parts: Sequence[str]) -> str | None:
    if len(plain) > PATTERN_CHARACTERS:
        return f"longer than {PATTERN_CHARACTERS} characters"
    if "\0" in plain:
        return "it contains a NUL"
    if not parts:
        return "it is empty"
    if plain.startswith("/"):
        return "it must be relative"
    if ".." in parts:
        return "it must not contain '..'"
    return None


def _literal_parent(parts: Sequence[str]) -> tuple[str, ...]:
    names: list[str] = []
    for part in parts[:-1]:
        if _MAGIC.search(part):
            break
        names.append(part)
    return tuple(names)


@lru_cache(maxsize=256)
def _compile(part: str) -> re.Pattern[str] | None:
    """Return a matcher for one name, or `None` for `**`."""
    return None if part == "**" else re.compile(fnmatch.translate(part))


def _match(parts: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> bool:
    """Match names against parts; each `**` takes as few names as possible."""
    part = name = 0
    retry_part, retry_name = -1, 0
    while name < len(names):
        here = parts[part] if part < len(parts) else None
        if here is not None and here.match(names[name]):
            part += 1
            name += 1
        elif part < len(parts) and here is None:
            retry_part, retry_name = part, name
            part += 1
        elif retry_part >= 0:
            retry_name += 1
            part, name = retry_part + 1, retry_name
        else:
            return False
    return all(rest is None for rest in parts[part:])

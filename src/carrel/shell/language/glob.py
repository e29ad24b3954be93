"""Pathname expansion: match patterns of a command line against existing names, in linear time.

`*`, `?` and `[...]` match within one name, `**` any number of directories. Hidden names are matched only by a
pattern that begins with a dot. Directories are listed through the gate; links are not followed by `**`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from carrel.errors import CarrelError, ClosedError, LimitError, SessionMissingError
from carrel.shell.language.pattern import Matcher, PatternSegment, is_magic, matcher
from carrel.shell.text.quoting import encode
from carrel.values import FileInfo

_PATH_BYTES = 256
"""Memory that a path takes besides its characters while it is matched: in sets, in lists, as sort key."""


class PathComponent(NamedTuple):
    """What one name of a path must be like, or several that are simply given."""

    text: str
    matches: Matcher | None = None
    """`None` for what is simply given."""
    any_depth: bool = False
    """Whether it is `**`."""


class Glob:
    """Expands patterns, seen from where a shell is."""

    def __init__(
        self,
        list_directory: Callable[[str], Iterable[FileInfo]],
        is_there: Callable[[str], bool],
        charge_memory: Callable[[int], object] = lambda count: None,
    ) -> None:
        """Look into directories by *list_directory*; *is_there* tells of one path, *hold* charges memory."""
        self._list = list_directory
        self._is_there = is_there
        self._hold = charge_memory
        self._held = 0

    def expand(self, segments: Iterable[PatternSegment]) -> list[str]:
        """The paths that match, in the order of their bytes; if there are none, the pattern itself.

        Raises:
            LimitError: A directory has too many entries to be listed.
        """
        try:
            return self._expand(list(segments))
        finally:
            self._hold(-self._held)

    def _expand(self, segments: list[PatternSegment]) -> list[str]:
        text = "".join(segment.text for segment in segments)
        found = sorted(self._match("/" if text.startswith("/") else "", _parts(segments)), key=encode)
        if text.endswith("/"):
            found = [path + "/" for path in found if self._is_directory(path)]
        return found or [text]

    def _match(self, start: str, parts: list[PathComponent]) -> set[str]:
        found = {start}
        for part in parts[:-1]:
            found = self._directories(found, part)
        return self._last(found, parts[-1])

    def _directories(self, bases: set[str], part: PathComponent) -> set[str]:
        """What *part* matches in each of *bases* and may be a directory."""
        if part.any_depth:
            return bases | {path for path, info in self._beneath(bases) if info.is_directory}
        if part.matches is None:
            return {self._held_path(base, part.text) for base in bases}
        return {path for path, info in self._matching(bases, part) if not info.is_file}

    def _last(self, bases: set[str], part: PathComponent) -> set[str]:
        """What *part* matches in each of *bases*."""
        if part.any_depth:
            return {path for path, _ in self._beneath(bases)}
        if part.matches is None:
            return {path for base in bases if self._is_there(path := self._held_path(base, part.text))}
        return {path for path, _ in self._matching(bases, part)}

    def _matching(self, bases: set[str], part: PathComponent) -> Iterator[tuple[str, FileInfo]]:
        for base in bases:
            for info in self._entries(base):
                if _may_match(part, info.name):
                    yield self._held_path(base, info.name), info

    def _beneath(self, bases: set[str]) -> Iterator[tuple[str, FileInfo]]:
        """All that is in *bases* and in the directories there, at any depth."""
        waiting = list(bases)
        seen = set(bases)
        while waiting:
            here = waiting.pop()
            for info in self._entries(here):
                if info.name.startswith("."):
                    continue
                path = self._held_path(here, info.name)
                yield path, info
                if info.is_directory and path not in seen:
                    seen.add(path)
                    waiting.append(path)

    def _held_path(self, base: str, name: str) -> str:
        """The path of *name* in *base*, charged for until all patterns are matched."""
        charge = len(base) + len(name) + _PATH_BYTES
        self._hold(charge)
        self._held += charge
        return _join(base, name)

    def _entries(self, base: str) -> Iterable[FileInfo]:
        try:
            return self._list(base or ".")
        except (LimitError, ClosedError, SessionMissingError):
            raise
        except CarrelError:
            return ()

    def _is_directory(self, path: str) -> bool:
        try:
            self._list(path)
        except (ClosedError, SessionMissingError):
            raise
        except LimitError:
            return True
        except CarrelError:
            return False
        return True


def _may_match(part: PathComponent, name: str) -> bool:
    if name.startswith(".") and not part.text.startswith("."):
        return False
    return part.matches is not None and part.matches(name)


def _join(base: str, name: str) -> str:
    return name if not base else f"{base}{name}" if base.endswith("/") else f"{base}/{name}"


def _parts(segments: Iterable[PatternSegment]) -> list[PathComponent]:
    """What the names of a path must be like; names that are simply given stand together."""
    parts: list[PathComponent] = []
    for name in _split(segments):
        part = _part(name)
        if not part.text or (part.any_depth and parts and parts[-1].any_depth):
            continue
        parts.append(part)
    return list(_joined(parts))


def _joined(parts: list[PathComponent]) -> Iterator[PathComponent]:
    given: list[str] = []
    for part in parts:
        if part.matches is None and not part.any_depth:
            given.append(part.text)
            continue
        if given:
            yield PathComponent("/".join(given))
            given = []
        yield part
    if given:
        yield PathComponent("/".join(given))


def _split(segments: Iterable[PatternSegment]) -> Iterator[list[PatternSegment]]:
    """The segments of each name of a path."""
    current: list[PatternSegment] = []
    for text, quoted in segments:
        names = text.split("/")
        for name in names[:-1]:
            current.append(PatternSegment(name, quoted))
            yield current
            current = []
        current.append(PatternSegment(names[-1], quoted))
    yield current


def _part(segments: list[PatternSegment]) -> PathComponent:
    text = "".join(segment.text for segment in segments)
    if not is_magic(segments):
        return PathComponent(text)
    if text == "**" and not any(quoted and part for part, quoted in segments):
        return PathComponent(text, any_depth=True)
    return PathComponent(text, matcher(segments))


def name_pattern(text: str) -> Matcher:
    """A matcher of one whole name, as `find -name` and `grep --include` have it; a backslash quotes."""
    segments: list[PatternSegment] = []
    for found in re.finditer(r"\\(.)|([^\\]+)|\\$", text, re.DOTALL):
        segments.append(PatternSegment(found[1] or found[2] or "\\", found[2] is None))
    return matcher(segments)

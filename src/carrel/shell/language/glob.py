"""Pathname expansion: match patterns of a command line against existing names, in linear time.

`*`, `?` and `[...]` match within one name, `**` matches any number of directories. Only a pattern that begins
with a dot matches hidden names. Directories are listed through the gate; `**` does not follow links.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from carrel.errors import CarrelError, ClosedError, LimitError, SessionMissingError
from carrel.shell.budget import ChargeMemory
from carrel.shell.language.pattern import Matcher, PatternSegment, is_magic, matcher
from carrel.shell.text.quoting import encode
from carrel.values import FileInfo

_PATH_BYTES = 256
"""Memory charged for a path during matching, besides its characters: in sets, in lists, as sort key."""


class PathComponent(NamedTuple):
    """A pattern for one name of a path, or several literal names joined by slashes."""

    text: str
    match: Matcher | None = None
    """`None` for literal names and `**`."""
    any_depth: bool = False
    """Whether it is `**`."""


class Glob:
    """Expands patterns relative to the working directory of a shell."""

    def __init__(
        self,
        list_directory: Callable[[str], Iterable[FileInfo]],
        exists: Callable[[str], bool],
        charge_memory: ChargeMemory,
    ) -> None:
        """List directories with *list_directory*, check single paths with *exists*, and charge the memory."""
        self._list = list_directory
        self._exists = exists
        self._charge_memory = charge_memory
        self._charged_bytes = 0

    def expand(self, segments: Iterable[PatternSegment]) -> list[str]:
        """Return the paths that match, in byte order; if there are none, the pattern itself.

        Raises:
            LimitError: A directory has too many entries to list.
        """
        try:
            return self._expand(list(segments))
        finally:
            self._charge_memory(-self._charged_bytes)
            self._charged_bytes = 0

    def _expand(self, segments: list[PatternSegment]) -> list[str]:
        text = "".join(segment.text for segment in segments)
        paths = sorted(
            self._match_components("/" if text.startswith("/") else "", _components(segments)), key=encode
        )
        if text.endswith("/"):
            paths = [path + "/" for path in paths if self._is_directory(path)]
        return paths or [text]

    def _match_components(self, start: str, components: list[PathComponent]) -> set[str]:
        paths = {start}
        for component in components[:-1]:
            paths = self._match_directories(paths, component)
        return self._match_last(paths, components[-1])

    def _match_directories(self, bases: set[str], component: PathComponent) -> set[str]:
        """Return the paths in *bases* that match *component* and may be directories."""
        if component.any_depth:
            return bases | {path for path, info in self._descendants(bases) if info.is_directory}
        if component.match is None:
            return {self._charged_path(base, component.text) for base in bases}
        return {path for path, info in self._match_entries(bases, component) if not info.is_file}

    def _match_last(self, bases: set[str], component: PathComponent) -> set[str]:
        """Return the paths in *bases* that match *component*, the last one of the pattern."""
        if component.any_depth:
            return {path for path, _ in self._descendants(bases)}
        if component.match is None:
            return {path for base in bases if self._exists(path := self._charged_path(base, component.text))}
        return {path for path, _ in self._match_entries(bases, component)}

    def _match_entries(self, bases: set[str], component: PathComponent) -> Iterator[tuple[str, FileInfo]]:
        for base in bases:
            for info in self._entries(base):
                if _matches(component, info.name):
                    yield self._charged_path(base, info.name), info

    def _descendants(self, bases: set[str]) -> Iterator[tuple[str, FileInfo]]:
        """Yield everything in *bases* and in their subdirectories, at any depth."""
        pending = list(bases)
        seen = set(bases)
        while pending:
            directory = pending.pop()
            for info in self._entries(directory):
                if info.name.startswith("."):
                    continue
                path = self._charged_path(directory, info.name)
                yield path, info
                if info.is_directory and path not in seen:
                    seen.add(path)
                    pending.append(path)

    def _charged_path(self, base: str, name: str) -> str:
        """Return the path of *name* in *base*, charged until the whole pattern is matched."""
        charge = len(base) + len(name) + _PATH_BYTES
        self._charge_memory(charge)
        self._charged_bytes += charge
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


def _matches(component: PathComponent, name: str) -> bool:
    if name.startswith(".") and not component.text.startswith("."):
        return False
    return component.match is not None and component.match(name)


def _join(base: str, name: str) -> str:
    return name if not base else f"{base}{name}" if base.endswith("/") else f"{base}/{name}"


def _components(segments: Iterable[PatternSegment]) -> list[PathComponent]:
    """Parse the components of a pattern; adjacent literal names become one component."""
    components: list[PathComponent] = []
    for name in _split_names(segments):
        component = _component(name)
        if not component.text or (component.any_depth and components and components[-1].any_depth):
            continue
        components.append(component)
    return list(_join_literals(components))


def _join_literals(components: list[PathComponent]) -> Iterator[PathComponent]:
    literals: list[str] = []
    for component in components:
        if component.match is None and not component.any_depth:
            literals.append(component.text)
            continue
        if literals:
            yield PathComponent("/".join(literals))
            literals = []
        yield component
    if literals:
        yield PathComponent("/".join(literals))


def _split_names(segments: Iterable[PatternSegment]) -> Iterator[list[PatternSegment]]:
    """Yield the segments of each name of a path."""
    current: list[PatternSegment] = []
    for text, quoted in segments:
        names = text.split("/")
        for name in names[:-1]:
            current.append(PatternSegment(name, quoted))
            yield current
            current = []
        current.append(PatternSegment(names[-1], quoted))
    yield current


def _component(segments: list[PatternSegment]) -> PathComponent:
    text = "".join(segment.text for segment in segments)
    if not is_magic(segments):
        return PathComponent(text)
    if text == "**" and not any(quoted and part for part, quoted in segments):
        return PathComponent(text, any_depth=True)
    return PathComponent(text, matcher(segments))


def name_pattern(text: str) -> Matcher:
    """Return a matcher of a whole name, as `find -name` and `grep --include` use; a backslash quotes."""
    segments: list[PatternSegment] = []
    for found in re.finditer(r"\\(.)|([^\\]+)|\\$", text, re.DOTALL):
        segments.append(PatternSegment(found[1] or found[2] or "\\", found[2] is None))
    return matcher(segments)

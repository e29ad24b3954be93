"""The directories that the rules of a policy open, and views that show only some of them.

A rule is an open directory, so an allowed path is as confined as the workspace. Where an earlier rule lies
beneath a later one, the later one may not be used to reach it: not by name, and not through a link.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from threading import Lock
from typing import NamedTuple

from carrel.audit.event import Event, is_cut
from carrel.errors import ClosedError, MissingError, PathError
from carrel.fs.api import Account, Confinement, Files
from carrel.fs.cancellable import CancellableFiles, Check
from carrel.fs.local.root import Root
from carrel.paths.parsed_path import ParsedPath, escapes, parse, parse_any, relative
from carrel.policy.rules import Access, SandboxPolicy

WORKSPACE_ROOT = 0
HOST_ROOT = -1
"""Everything else on the host, which only a policy that is switched off opens."""


class Location(NamedTuple):
    """Where a path leads."""

    rule: int | None
    """The rule that decides about it, if one has it."""
    area: int
    """The workspace, the number of another rule, or the host."""
    where: ParsedPath
    """The way from the root of the area."""


class RuleTable:
    """Finds the rule for a path, without looking at any file."""

    def __init__(self, policy: SandboxPolicy, mount: str) -> None:
        """Show the workspace at *mount*, and each other rule of *policy* at its own path."""
        self._first = 0 if policy.allowed_paths else None
        self._mount = parts_of(mount)
        self.roots = [(parts_of(rule.root), parts_of(_real(rule.root))) for rule in policy.allowed_paths]

    def locate(self, where: ParsedPath) -> Location:
        """Where the first rule that has *where* lies, and the way from there."""
        if not where.absolute:
            return Location(self._first, WORKSPACE_ROOT, where)
        if where.parts[: len(self._mount)] == self._mount:
            return Location(self._first, WORKSPACE_ROOT, relative(where, where.parts[len(self._mount) :]))
        for index, spellings in enumerate(self.roots):
            for root in spellings:
                if where.parts[: len(root)] != root:
                    continue
                if index == 0:
                    # The workspace is named by its mount, never by where it lies on the host.
                    return Location(None, HOST_ROOT, relative(where, where.parts))
                return Location(index, index, relative(where, where.parts[len(root) :]))
        return Location(None, HOST_ROOT, relative(where, where.parts))


class RuleRoots:
    """Finds the rule for a path, and the files beneath it."""

    def __init__(
        self,
        policy: SandboxPolicy,
        workspace: Files,
        *,
        mount: str,
        others: Account,
        confinement: Confinement | None = None,
    ) -> None:
        """Show *workspace* at *mount*, and each other rule of *policy* at its own path.

        The account *others* answers for all but the workspace.
        """
        self._account = others
        self._policy = policy
        self._confinement = confinement
        self._lock = Lock()
        self.places = RuleTable(policy, mount)
        self.locate = self.places.locate
        self.workspace = workspace
        self._others: dict[int, Files] = {}
        self._closed = False

    def files(self, place: Location) -> Files:
        """The files of the area that *place* lies in.

        Raises:
            MissingError: The rule's directory is not there.
            ClosedError: Everything was closed.
        """
        if place.area == WORKSPACE_ROOT:
            return self.workspace
        requested = place.where.requested
        with self._lock:
            if self._closed:
                raise ClosedError(f"workspace is closed: {requested!r}", path=requested)
            found = self._others.get(place.area)
            if found is None:
                found = self._others[place.area] = self._open(place.area, requested)
                found.account = self._account
            return found

    def _open(self, area: int, requested: str) -> Files:
        if area == HOST_ROOT:
            return Root.open("/", label="/", confinement=Confinement.NONE)
        path = self._policy.allowed_paths[area].root
        if not os.path.isdir(path):
            raise MissingError(f"no such file or directory: {requested!r}", path=requested)
        root = Root.open(
            path,
            label=path.rstrip("/") + "/",
            confinement=self._confinement,
            excluded=self._excluded(area),
        )
        if Access.WRITE in self._policy.allowed(area):
            root.sweep_drafts(time.time())
        return root

    def _excluded(self, index: int) -> tuple[tuple[str, ...], ...]:
        """The places beneath rule *index* that belong to earlier rules, whether they exist yet or not."""
        own = self.places.roots[index][1]
        earlier = (self.places.roots[number][1] for number in range(index))
        return tuple(
            parts[len(own) :] for parts in earlier if len(parts) > len(own) and parts[: len(own)] == own
        )

    def close(self) -> None:
        """Close every directory."""
        self.workspace.close()
        with self._lock:
            self._closed = True
            for files in self._others.values():
                files.close()
            self._others.clear()


def parts_of(path: str) -> tuple[str, ...]:
    """The names in an absolute path."""
    return tuple(part for part in path.split("/") if part)


def _real(path: str) -> str:
    return os.path.realpath(path)


NameParts = tuple[str, ...]
"""What leads from the workspace to a directory in it."""

_FIRST = HOST_ROOT - 1
"""The area of the first directory that a view shows; those of the others follow downwards."""
_TOP = parse(".")


class ViewFilter:
    """Tells what a view of some directories shows, without looking at any file.

    Not covered: records have paths as they were requested. What others change through a link that stands in
    one of the directories counts as changed there, wherever the link leads.
    """

    def __init__(self, places: RuleTable, within: tuple[NameParts, ...]) -> None:
        """Show of the workspace only what is at or beneath *within*."""
        self._places = places
        self._within = within

    def locate(self, where: ParsedPath) -> Location:
        """Where *where* lies; what the view does not show lies in no rule."""
        place = self._places.locate(where)
        if place.area != WORKSPACE_ROOT:
            return place
        parts = place.where.parts
        for index, names in enumerate(self._within):
            if parts[: len(names)] == names:
                return Location(0, _FIRST - index, relative(place.where, parts[len(names) :]))
        return Location(None, HOST_ROOT, place.where)

    def has(self, event: Event) -> bool:
        """Whether the view shows the path of *event*, and both of a move or a copy."""
        # The text of a link can be read by whoever sees the link.
        other = None if event.operation == "link" else event.other_path
        return self._has(event.path) and (other is None or self._has(other))

    def _has(self, path: str) -> bool:
        if is_cut(path):
            # The rest may lead out again.
            return False
        try:
            place = self.locate(parse_any(path))
        except PathError:
            return False
        return place.rule is not None and not escapes(_TOP, place.where.text)


class View:
    """Finds what a view shows in the areas of a workspace, and closes none of them."""

    def __init__(
        self, areas: RuleRoots, *, within: tuple[NameParts, ...] | None = None, check: Check | None = None
    ):
        """Show of the workspace only what is at or beneath *within*, if that is given.

        Raises:
            UnavailableError: The workspace has no directories that could be opened on their own.
        """
        self.areas = areas
        self.within = within
        self.check = check
        self._parts = [areas.workspace.subtree(names) for names in within or ()]
        self._checked: dict[int, CancellableFiles] = {}
        self.shown = None if within is None else ViewFilter(areas.places, within)
        """What limits it to some directories, if anything does."""

    def narrowed(self, within: tuple[NameParts, ...], check: Check | None) -> View:
        """A view that shows no more than this one, and asks *check* as well."""
        return View(self.areas, within=_meet(self.within, within), check=_both(self.check, check))

    def locate(self, where: ParsedPath) -> Location:
        """Where *where* lies; what the view does not show lies in no rule."""
        return (self.shown or self.areas).locate(where)

    def files(self, place: Location) -> Files:
        """The files of the area that *place* lies in.

        Raises:
            MissingError: The rule's directory is not there.
            ClosedError: The workspace was closed.
        """
        found = self._parts[_FIRST - place.area] if place.area <= _FIRST else self.areas.files(place)
        if self.check is None:
            return found
        checked = self._checked.get(place.area)
        if checked is None:
            # One for each area, because a move looks whether both ends are the same files.
            checked = self._checked.setdefault(place.area, CancellableFiles(found, self.check))
        return checked

    def close(self) -> None:
        """Leave the areas to the workspace that they belong to."""


def parse_within(paths: Iterable[str], mount: str) -> tuple[NameParts, ...]:
    """What leads to each of *paths*; none that lies in another, and nothing if one is the workspace itself.

    Raises:
        ValueError: One is empty, leads out, or is absolute and not beneath *mount*.
    """
    if isinstance(paths, str):
        raise TypeError("the paths must come in a list, not as one str")
    found = {_names(path, parts_of(mount)) for path in paths}
    if () in found:
        return ()
    return tuple(
        sorted(names for names in found if not any(names[:count] in found for count in range(len(names))))
    )


def _names(path: str, mount: NameParts) -> NameParts:
    where = parse_any(path)
    names = where.parts
    if where.absolute:
        if names[: len(mount)] != mount:
            raise ValueError(f"{path!r} is not in the workspace")
        names = names[len(mount) :]
    if ".." in names:
        raise ValueError(f"{path!r} must say without '..' what it means")
    return names


def _meet(one: tuple[NameParts, ...] | None, other: tuple[NameParts, ...]) -> tuple[NameParts, ...] | None:
    """What lies in both; an empty *other* is no condition."""
    if one is None or not other:
        return other or one
    inner = {_deeper(left, right) for left in one for right in other}
    return tuple(sorted(names for names in inner if names is not None))


def _deeper(left: NameParts, right: NameParts) -> NameParts | None:
    """The one that lies at or beneath the other, if one does."""
    shorter, longer = sorted((left, right), key=len)
    return longer if longer[: len(shorter)] == shorter else None


def _both(one: Check | None, other: Check | None) -> Check | None:
    if one is None or other is None:
        return one or other
    first, second = one, other

    def check() -> None:
        first()
        second()

    return check

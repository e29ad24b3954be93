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
"""Everything else on the host, which is accessible only if the policy is switched off."""


class Location(NamedTuple):
    """The rule and the directory that a path belongs to."""

    rule: int | None
    """The rule that decides about the path; `None` if no rule covers it."""
    area: int
    """`WORKSPACE_ROOT`, the index of another rule, `HOST_ROOT`, or a directory of a view."""
    path: ParsedPath
    """The path relative to the root of the area."""


class RuleTable:
    """Finds the rule for a path, without access to files."""

    def __init__(self, policy: SandboxPolicy, mount: str) -> None:
        """Show the workspace at *mount*, and each other rule of *policy* at its own path."""
        self._first = 0 if policy.allowed_paths else None
        self._mount = parts_of(mount)
        self.roots = [(parts_of(rule.root), parts_of(_real(rule.root))) for rule in policy.allowed_paths]

    def locate(self, path: ParsedPath) -> Location:
        """Return the location of *path* in the first rule that covers it."""
        if not path.absolute:
            return Location(self._first, WORKSPACE_ROOT, path)
        if path.parts[: len(self._mount)] == self._mount:
            return Location(self._first, WORKSPACE_ROOT, relative(path, path.parts[len(self._mount) :]))
        for index, spellings in enumerate(self.roots):
            for root in spellings:
                if path.parts[: len(root)] != root:
                    continue
                if index == 0:
                    # The workspace is addressed by its mount path, never by its path on the host.
                    return Location(None, HOST_ROOT, relative(path, path.parts))
                return Location(index, index, relative(path, path.parts[len(root) :]))
        return Location(None, HOST_ROOT, relative(path, path.parts))


class RuleRoots:
    """Finds the rule for a path, and opens the directories of the rules."""

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

        Changes outside the workspace go to the account *others*.
        """
        self._account = others
        self._policy = policy
        self._confinement = confinement
        self._lock = Lock()
        self.table = RuleTable(policy, mount)
        self.locate = self.table.locate
        self.workspace = workspace
        self._others: dict[int, Files] = {}
        self._closed = False

    def files(self, location: Location) -> Files:
        """Return the files of the area of *location*.

        Raises:
            MissingError: The directory of the rule does not exist.
            ClosedError: The workspace was closed.
        """
        if location.area == WORKSPACE_ROOT:
            return self.workspace
        requested = location.path.requested
        with self._lock:
            if self._closed:
                raise ClosedError(f"workspace is closed: {requested!r}", path=requested)
            found = self._others.get(location.area)
            if found is None:
                found = self._others[location.area] = self._open(location.area, requested)
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
        """Return the paths beneath rule *index* that earlier rules cover, even if they do not exist yet."""
        own = self.table.roots[index][1]
        earlier = (self.table.roots[number][1] for number in range(index))
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
    """Return the names in an absolute path."""
    return tuple(part for part in path.split("/") if part)


def _real(path: str) -> str:
    return os.path.realpath(path)


NameParts = tuple[str, ...]
"""The names on the path from the workspace to a directory in it."""

_FIRST = HOST_ROOT - 1
"""The area of the first directory that a view shows; the others follow in descending order."""
_TOP = parse(".")


class ViewFilter:
    """Decides which paths a view of some directories shows, without access to files.

    Not covered: records have paths as they were requested. A change through a link in one of the directories
    counts as a change there, wherever the link leads.
    """

    def __init__(self, table: RuleTable, within: tuple[NameParts, ...]) -> None:
        """Show only the paths of the workspace at or beneath *within*."""
        self._table = table
        self._within = within

    def locate(self, path: ParsedPath) -> Location:
        """Return the location of *path*; a path that the view does not show has no rule."""
        location = self._table.locate(path)
        if location.area != WORKSPACE_ROOT:
            return location
        parts = location.path.parts
        for index, names in enumerate(self._within):
            if parts[: len(names)] == names:
                return Location(0, _FIRST - index, relative(location.path, parts[len(names) :]))
        return Location(None, HOST_ROOT, location.path)

    def includes(self, event: Event) -> bool:
        """Whether the view shows the path of *event*, and both of a move or a copy."""
        # The target of a link is visible to everyone who sees the link.
        other = None if event.operation == "link" else event.other_path
        return self._shows(event.path) and (other is None or self._shows(other))

    def _shows(self, path: str) -> bool:
        if is_cut(path):
            # The rest may lead out again.
            return False
        try:
            location = self.locate(parse_any(path))
        except PathError:
            return False
        return location.rule is not None and not escapes(_TOP, location.path.text)


class View:
    """The directories of a workspace that a view shows. Closing a view closes none of them."""

    def __init__(
        self, roots: RuleRoots, *, within: tuple[NameParts, ...] | None = None, check: Check | None = None
    ):
        """Show only the paths of the workspace at or beneath *within*, if that is given.

        Raises:
            UnavailableError: *within* is given, and the workspace is not on the host's disk.
        """
        self.roots = roots
        self.within = within
        self.check = check
        self._subtrees = [roots.workspace.subtree(names) for names in within or ()]
        self._checked: dict[int, CancellableFiles] = {}
        self.filter = None if within is None else ViewFilter(roots.table, within)
        """Restricts the view to *within*, if that is given."""

    def narrowed(self, within: tuple[NameParts, ...], check: Check | None) -> View:
        """Return a view that shows no more than this one, and calls *check* as well."""
        return View(self.roots, within=_intersect(self.within, within), check=_both(self.check, check))

    def locate(self, path: ParsedPath) -> Location:
        """Return the location of *path*; a path that the view does not show has no rule."""
        return (self.filter or self.roots).locate(path)

    def files(self, location: Location) -> Files:
        """Return the files of the area of *location*.

        Raises:
            MissingError: The directory of the rule does not exist.
            ClosedError: The workspace was closed.
        """
        area = location.area
        found = self._subtrees[_FIRST - area] if area <= _FIRST else self.roots.files(location)
        if self.check is None:
            return found
        checked = self._checked.get(area)
        if checked is None:
            # One per area, because a move compares whether both ends are the same files.
            checked = self._checked.setdefault(area, CancellableFiles(found, self.check))
        return checked

    def close(self) -> None:
        """Do nothing: the directories belong to the workspace."""


def parse_within(paths: Iterable[str], mount: str) -> tuple[NameParts, ...]:
    """Parse the directories of a view, without those in another; empty if one is the workspace itself.

    Raises:
        ValueError: One is empty, leads out, or is absolute and not beneath *mount*.
    """
    if isinstance(paths, str):
        raise TypeError("the paths must be a list of str, not one str")
    found = {_names(path, parts_of(mount)) for path in paths}
    if () in found:
        return ()
    return tuple(
        sorted(names for names in found if not any(names[:count] in found for count in range(len(names))))
    )


def _names(path: str, mount: NameParts) -> NameParts:
    parsed = parse_any(path)
    names = parsed.parts
    if parsed.absolute:
        if names[: len(mount)] != mount:
            raise ValueError(f"{path!r} is not in the workspace")
        names = names[len(mount) :]
    if ".." in names:
        raise ValueError(f"{path!r} must be given without '..'")
    return names


def _intersect(
    one: tuple[NameParts, ...] | None, other: tuple[NameParts, ...]
) -> tuple[NameParts, ...] | None:
    """Return the directories that lie in both; an empty *other* is no restriction."""
    if one is None or not other:
        return other or one
    inner = {_deeper(left, right) for left in one for right in other}
    return tuple(sorted(names for names in inner if names is not None))


def _deeper(left: NameParts, right: NameParts) -> NameParts | None:
    """Return the one that lies at or beneath the other, or `None`."""
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

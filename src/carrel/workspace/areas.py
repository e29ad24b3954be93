"""The directories that the rules of a policy open: the workspace, and each allowed path.

A rule is an open directory, so an allowed path is as confined as the workspace. Where an earlier rule lies
beneath a later one, the later one may not be used to reach it: not by name, and not through a link.
"""

from __future__ import annotations

import os
import time
from threading import Lock
from typing import NamedTuple

from carrel.errors import ClosedError, MissingError
from carrel.fs.api import Account, Confinement, Files
from carrel.fs.root import Root
from carrel.paths.rel import Where, relative
from carrel.policy.rules import Access, SandboxPolicy

WORKSPACE = 0
HOST = -1
"""Everything else on the host, which only a policy that is switched off opens."""


class Place(NamedTuple):
    """Where a path leads."""

    rule: int | None
    """The rule that decides about it, if one has it."""
    area: int
    """The workspace, the number of another rule, or the host."""
    where: Where
    """The way from the root of the area."""


class Places:
    """Finds the rule for a path, without looking at any file."""

    def __init__(self, policy: SandboxPolicy, mount: str) -> None:
        """Show the workspace at *mount*, and each other rule of *policy* at its own path."""
        self._first = 0 if policy.allowed_paths else None
        self._mount = parts_of(mount)
        self.roots = [(parts_of(rule.root), parts_of(_real(rule.root))) for rule in policy.allowed_paths]

    def locate(self, where: Where) -> Place:
        """Where the first rule that has *where* lies, and the way from there."""
        if not where.absolute:
            return Place(self._first, WORKSPACE, where)
        if where.parts[: len(self._mount)] == self._mount:
            return Place(self._first, WORKSPACE, relative(where, where.parts[len(self._mount) :]))
        for index, spellings in enumerate(self.roots):
            for root in spellings:
                if where.parts[: len(root)] != root:
                    continue
                if index == 0:
                    # The workspace is named by its mount, never by where it lies on the host.
                    return Place(None, HOST, relative(where, where.parts))
                return Place(index, index, relative(where, where.parts[len(root) :]))
        return Place(None, HOST, relative(where, where.parts))


class Areas:
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
        self.places = Places(policy, mount)
        self.locate = self.places.locate
        self.workspace = workspace
        self._others: dict[int, Files] = {}
        self._closed = False

    def files(self, place: Place) -> Files:
        """The files of the area that *place* lies in.

        Raises:
            MissingError: The rule's directory is not there.
            ClosedError: Everything was closed.
        """
        if place.area == WORKSPACE:
            return self.workspace
        asked = place.where.asked
        with self._lock:
            if self._closed:
                raise ClosedError(f"workspace is closed: {asked!r}", path=asked)
            found = self._others.get(place.area)
            if found is None:
                found = self._others[place.area] = self._open(place.area, asked)
                found.account = self._account
            return found

    def _open(self, area: int, asked: str) -> Files:
        if area == HOST:
            return Root.open("/", label="/", confinement=Confinement.NONE)
        path = self._policy.allowed_paths[area].root
        if not os.path.isdir(path):
            raise MissingError(f"no such file or directory: {asked!r}", path=asked)
        root = Root.open(
            path,
            label=path.rstrip("/") + "/",
            confinement=self._confinement,
            barred=self._barred(area),
        )
        if Access.WRITE in self._policy.allowed(area):
            root.sweep_drafts(time.time())
        return root

    def _barred(self, index: int) -> tuple[tuple[str, ...], ...]:
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

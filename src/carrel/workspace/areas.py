"""The directories that the rules of a policy open: the workspace, and each allowed path.

A rule is an open directory, so an allowed path is as confined as the workspace. Where an earlier rule lies
beneath a later one, the later one may not be used to reach it: not by name, and not through a link.
"""

from __future__ import annotations

import os
import time
from threading import Lock

from carrel.errors import ClosedError, MissingError
from carrel.fs.api import Confinement, Files
from carrel.fs.root import Root
from carrel.paths.rel import Where, relative
from carrel.policy.rules import Access, SandboxPolicy


class Areas:
    """Finds the rule for a path, and the files beneath it."""

    def __init__(
        self,
        policy: SandboxPolicy,
        workspace: Files,
        *,
        mount: str,
        confinement: Confinement | None = None,
    ) -> None:
        """Show *workspace* at *mount*, and each other rule of *policy* at its own path."""
        self._policy = policy
        self._confinement = confinement
        self._lock = Lock()
        self._mount = _parts(mount)
        self._workspace = workspace
        self._others: dict[int | None, Files] = {}
        self._closed = False
        self._roots = [(_parts(rule.root), _parts(_real(rule.root))) for rule in policy.allowed_paths]

    def locate(self, where: Where) -> tuple[int | None, Where]:
        """The number of the first rule that has *where*, and the way from there."""
        if not where.absolute:
            return (0 if self._policy.allowed_paths else None), where
        parts = where.parts
        if parts[: len(self._mount)] == self._mount:
            return (0 if self._policy.allowed_paths else None), relative(where, parts[len(self._mount) :])
        for index, spellings in enumerate(self._roots):
            for root in spellings:
                if parts[: len(root)] == root:
                    return self._at_own_path(index), relative(where, parts[len(root) :])
        return None, relative(where, parts)

    def _at_own_path(self, index: int) -> int | None:
        """The workspace is named by its mount, never by where it lies on the host."""
        return index or None

    def files(self, index: int | None, where: Where) -> Files:
        """The files beneath rule *index*; of the whole host for `None`, if the policy is switched off.

        Raises:
            MissingError: The rule's directory is not there.
            ClosedError: Everything was closed.
        """
        if self._closed:
            raise ClosedError(f"workspace is closed: {where.asked!r}", path=where.asked)
        if index == 0 or (index is None and where.asked[0] not in "/\\"):
            return self._workspace
        with self._lock:
            found = self._others.get(index)
            if found is None:
                found = self._others[index] = self._open(index, where)
            return found

    def _open(self, index: int | None, where: Where) -> Files:
        if index is None:
            return Root.open("/", label="/", confinement=Confinement.NONE)
        path = self._policy.allowed_paths[index].root
        if not os.path.isdir(path):
            raise MissingError(f"no such file or directory: {where.asked!r}", path=where.asked)
        root = Root.open(
            path,
            label=path.rstrip("/") + "/",
            confinement=self._confinement,
            barred=self._barred(index),
        )
        if Access.WRITE in self._policy.allowed(index):
            root.sweep_drafts(time.time())
        return root

    def _barred(self, index: int) -> tuple[tuple[str, ...], ...]:
        """The places beneath rule *index* that belong to earlier rules, whether they exist yet or not."""
        own = self._roots[index][1]
        earlier = (self._roots[number][1] for number in range(index))
        return tuple(
            parts[len(own) :] for parts in earlier if len(parts) > len(own) and parts[: len(own)] == own
        )

    def close(self) -> None:
        """Close every directory."""
        self._closed = True
        self._workspace.close()
        with self._lock:
            for files in self._others.values():
                files.close()
            self._others.clear()


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def _real(path: str) -> str:
    return os.path.realpath(path)

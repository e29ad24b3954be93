"""`Workspace`: all operations on the files of a session. Each parses, permits, acts and records.

The operations are in `reading` and `writing`; this module opens workspaces and narrows them to views.

Not covered: changes that a process on the host makes to the directory without the gate are neither permitted
nor recorded here. They still cannot make an operation of the gate leave the directory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Unpack

from carrel.audit.event import Event
from carrel.fs.accounts import UnmeteredAccount
from carrel.fs.api import Confinement, Files
from carrel.fs.local.root import Root
from carrel.fs.local.scratch import Scratch
from carrel.policy.rules import Access, AccessMode, SandboxPolicy
from carrel.storage.memory.ledger import MemoryLedger
from carrel.storage.quota import Quota
from carrel.storage.recorder import Recorder
from carrel.values import Limits
from carrel.workspace.gate import Gate, GateOptions, Ledger, create_recorder
from carrel.workspace.reading import ReadOperations
from carrel.workspace.views import RuleRoots, parse_within
from carrel.workspace.writing import WriteOperations

MOUNT = "/workspace"
"""Default mount path: the absolute path of the workspace as the guest sees it."""


class Workspace(ReadOperations, WriteOperations):
    """Files of one session, which nothing in it can leave.

    Paths are relative to the workspace, or absolute beneath `/workspace` or an allowed path. Every operation
    raises errors of `carrel.errors`: `EscapeError` (a `ValueError`) for a path that leads out, `AccessError`
    (a `PermissionError`) for one that a rule forbids, `MissingError` (a `FileNotFoundError`) and the like.
    """

    def __init__(
        self,
        files: Files,
        *,
        policy: SandboxPolicy,
        mount: str = MOUNT,
        confinement: Confinement | None = None,
        ledger: tuple[Recorder, Ledger] | None = None,
        **options: Unpack[GateOptions],
    ) -> None:
        """Open the gate to *files*; most callers want `Workspace.open`.

        A session passes its own recorder and *ledger*; by default, usage is kept in memory.
        """
        limits = options.get("limits") or Limits(disk_bytes=None, entries=None)
        if ledger is None:
            recorder = create_recorder(options)
            ledger = recorder, MemoryLedger(recorder, Quota.of(limits), files, limits)
        files.account = ledger[1]
        self.gate = Gate(
            RuleRoots(
                policy, files, mount=mount, others=UnmeteredAccount(ledger[1]), confinement=confinement
            ),
            policy,
            limits=limits,
            recorder=ledger[0],
            ledger=ledger[1],
            absolute_paths=options.get("absolute_paths", True),
        )
        self.mount = mount
        """Mount path as the guest sees it."""
        self.created_ns: int | None = None
        """Creation time of the session, which distinguishes it from an earlier one with the same id."""
        self._files = files

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        policy: SandboxPolicy | None = None,
        mount: str = MOUNT,
        scratch: Scratch | None = None,
        confinement: Confinement | str | None = None,
        **options: Unpack[GateOptions],
    ) -> Workspace:
        """Open an existing directory of the host as a workspace.

        Args:
            directory: The directory; its contents become the workspace.
            policy: Rules for the workspace and for other paths; read and write in the workspace by default.
            mount: The absolute path that stands for the workspace.
            scratch: Directories for unfinished files and removed trees; the workspace itself by default.
            confinement: Require `kernel` or `walk` instead of what the host supports.
            options: Limits, logger, journal, session id and so on; see `GateOptions`.

        Raises:
            UnavailableError: The directory is missing, or this platform cannot confine.
            ValueError: The policy is for another directory.
        """
        policy = policy or SandboxPolicy.for_workspace(directory)
        if os.path.realpath(policy.workspace_root) != os.path.realpath(directory):
            raise ValueError("the policy is for another directory than the one to be opened")
        demanded = None if confinement is None else Confinement(confinement)
        root = Root.open(
            directory, scratch=scratch, confinement=demanded if policy.enabled else Confinement.NONE
        )
        if scratch is None and Access.WRITE in policy.allowed(0):
            root.sweep_drafts(time.time())
        return cls(root, policy=policy, mount=mount, confinement=demanded, **options)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the workspace. Running reads continue; a change that is not made yet raises `ClosedError`.

        Closing a view leaves the workspace open.
        """
        self.gate.close()

    @property
    def session_id(self) -> str | None:
        """Id of the session that the files belong to."""
        return self.gate.session_id

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return self.gate.limits

    @property
    def policy(self) -> SandboxPolicy:
        """The rules in force."""
        return self.gate.policy

    @property
    def within(self) -> tuple[str, ...] | None:
        """The directories that a view of the workspace is restricted to; `None` for all of it."""
        names = self.gate.within
        return None if names is None else tuple(map("/".join, names))

    @property
    def confinement(self) -> str:
        """How paths are confined: `kernel`, `walk`, `memory`, or `none` for a policy switched off."""
        return self._files.confinement

    def narrowed(
        self,
        *,
        mode: AccessMode = AccessMode.READ_WRITE,
        within: Iterable[str] = (),
        check: Callable[[], None] | None = None,
    ) -> Workspace:
        """Return a view: the same files, usage, journal and session under narrower rules, never wider ones.

        With *within*, every other path in the workspace raises `OutsideError`, because no rule of the view
        covers it. The error is the same whether the path exists or not, so it reveals nothing. A link from
        one of the directories to any other place, even in the workspace, leads out of the view. Where the
        policy is switched off, its rules apply in such a view. A view of a view shows what both would show.

        Args:
            mode: `READ_ONLY` refuses every change, in the workspace and in all other rules.
            within: Directories of the workspace; only paths at or beneath one of them can be used. One that
                does not exist yet is missing until another caller creates it; none may be a link or a file.
            check: Called before every operation, entry and chunk; it raises to stop. Its error reaches the
                caller, and a change that it stops is not made.

        Raises:
            ValueError: A path of *within* is empty, leads out or is not in the workspace.
            UnavailableError: *within* is given, and the workspace is not on the host's disk.
            ClosedError: The workspace is closed.
        """
        view = copy(self)
        view.gate = self.gate.narrowed(AccessMode(mode), parse_within(within, self.mount), check)
        return view

    def changes(self, since: int = 0) -> Iterator[Event]:
        """Return the changes and refusals after the record with the sequence number *since*.

        A view of some directories returns only records whose paths it shows, both of a move or a copy.

        Raises:
            RotatedError: Some of the records are no longer kept.
        """
        return self.gate.events(since)

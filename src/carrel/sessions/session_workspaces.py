"""`SessionWorkspaces`: open the workspaces of claimed sessions with their ledger and journal."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from weakref import WeakValueDictionary

from carrel.audit.journal import FileJournal
from carrel.audit.logger import SandboxLogger
from carrel.errors import SessionMissingError
from carrel.fs.api import Confinement
from carrel.fs.host.durability import Durability
from carrel.fs.local.root import Root
from carrel.policy.rules import SandboxPolicy
from carrel.storage.local.ledger import FileLedger
from carrel.storage.local.lock import SessionLock
from carrel.storage.local.store import Claim
from carrel.storage.quota import Quota
from carrel.storage.recorder import Recorder
from carrel.values import Clock, Limits
from carrel.workspace.workspace import Workspace


class SessionWorkspaces:
    """Opens workspaces, and keeps track of the recorders of those that are open in this process."""

    def __init__(
        self,
        *,
        logger: SandboxLogger,
        clock: Clock,
        durability: Durability,
        min_free_bytes: int,
        confinement: Confinement | None,
        stop_programs: Callable[[str], bool],
    ) -> None:
        """Open every workspace with these settings.

        Before the files of a session are counted, *stop_programs* stops programs of the session that a killed
        process left running; it returns false if that failed.
        """
        self._logger = logger
        self._clock = clock
        self._durability = durability
        self._min_free_bytes = min_free_bytes
        self._confinement = confinement
        self._stop_programs = stop_programs
        self._recorders: WeakValueDictionary[int, Recorder] = WeakValueDictionary()
        """Recorders of the open workspaces, by their `id()`."""

    def open(
        self,
        claim: Claim,
        policy: SandboxPolicy,
        limits: Limits,
        *,
        created_ns: int,
        actor: str,
        absolute_paths: bool,
    ) -> Workspace:
        """Open the workspace of a claimed session.

        Raises:
            SessionMissingError: The session has no workspace.
        """
        directory = claim.workspace()
        if directory is None:
            raise SessionMissingError(f"no such session: {claim.session_id!r}")
        clock = self._clock
        scratch = claim.scratch
        scratch.sweep_drafts(clock() / 1e9)
        confinement = self._confinement if policy.enabled else Confinement.NONE
        root = Root.from_handle(directory, scratch=scratch, confinement=confinement)
        lease = claim.lease(clock())
        recorder = Recorder(
            FileJournal(
                claim.open_state(), flush=self._durability.flush, flush_data=self._durability.flush_data
            ),
            logger=self._logger,
            session_id=claim.session_id,
            actor=actor,
            clock=clock,
            durability=self._durability,
        )
        self._recorders[id(recorder)] = recorder
        ledger = FileLedger(
            root,
            SessionLock(claim.state, session_id=claim.session_id),
            recorder=recorder,
            quota=Quota.of(limits, min_free_bytes=self._min_free_bytes, disk=directory),
            scratch=scratch,
            on_close=lambda: lease.release(clock()),
            stop_programs=partial(self._stop_programs, claim.session_id),
            durability=self._durability,
        )
        workspace = Workspace(
            root,
            policy=policy,
            ledger=(recorder, ledger),
            limits=limits,
            absolute_paths=absolute_paths,
            confinement=self._confinement,
        )
        workspace.created_ns = created_ns
        return workspace

    def record_repeats(self, session_id: str) -> None:
        """Record the counted repeats of refusals in the workspaces of a session that are open here."""
        # Copied in one step, while other threads open theirs.
        for reference in self._recorders.valuerefs():
            recorder = reference()
            if recorder is not None and recorder.session_id == session_id:
                recorder.record_repeats()

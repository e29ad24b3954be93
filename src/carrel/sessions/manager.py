"""`WorkspaceManager`: create, open, list, extend, delete and sweep the sessions of one directory."""

from __future__ import annotations

import errno
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from carrel.audit.chain import JournalCheck
from carrel.audit.journal import FileJournal
from carrel.audit.logger import SandboxLogger
from carrel.config.load import load
from carrel.config.settings import ContainerSettings, Settings, session_rules
from carrel.errors import LimitError, SessionExistsError, SessionMissingError, UnavailableError
from carrel.fs.api import Confinement
from carrel.fs.host.durability import Durability
from carrel.fs.host.platform import require_platform
from carrel.paths.session_id import require_session_id
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.sessions.containers import SessionContainers
from carrel.sessions.session_workspaces import SessionWorkspaces
from carrel.sessions.sweeper import Sweeper, SweepResult, with_last_use
from carrel.storage.api import Registry
from carrel.storage.local.ledger_page import read_page
from carrel.storage.local.registry import SqliteRegistry
from carrel.storage.local.store import Claim, Store
from carrel.storage.session_record import SessionRecord
from carrel.values import UNSET, Clock, Limits, Unset, Usage
from carrel.workspace.views import RuleTable, ViewFilter, parse_within
from carrel.workspace.workspace import MOUNT, Workspace

TTL_SECONDS = 86_400.0
"""Default idle time of a session in seconds."""
MAX_SESSIONS = 1_000
"""Default maximum number of sessions in a directory."""

_TRIES = 100
"""Attempts of `get_workspace` to open or create a session that others delete or create at the same time."""

Configured = Unset
CONFIGURED: Final = UNSET
"""Earlier names of `Unset` and `UNSET`."""


def new_id() -> str:
    """Return a new session id."""
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """The current status of a session."""

    record: SessionRecord
    """Its metadata; `used_ns` is the last use."""
    usage: Usage | None
    """Its usage; `None` until it has been counted."""
    in_use: bool
    """Whether it is open in any process."""


class WorkspaceManager:
    """A directory of sessions, which any number of threads and processes may share."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        limits: Limits | None = None,
        ttl_seconds: float | None = TTL_SECONDS,
        max_sessions: int | None = MAX_SESSIONS,
        min_free_bytes: int = 0,
        durability: Durability | str = Durability.PROCESS,
        rules: Iterable[PathRule] = (),
        containers: ContainerSettings | None = None,
        logger: SandboxLogger | None = None,
        confinement: Confinement | str | None = None,
        clock: Clock = time.time_ns,
    ) -> None:
        """Use the directory *root*, which is created if it is missing.

        Args:
            root: Directory that holds one workspace per session, and the state of all sessions in `.carrel`.
            limits: Limits of sessions that have none of their own; `Limits()` by default.
            ttl_seconds: How long a session may be idle; `None` means forever.
            max_sessions: Maximum number of sessions; `None` means no limit.
            min_free_bytes: Writes are refused while the host's disk has less than this free.
            durability: `process`: changes survive the end of this process. `disk`: they also survive a power
                loss, and each change waits for the disk.
            rules: Other directories that every session may use.
            containers: Address of the engine that runs the containers of sessions. It is connected to only
                when a container has to be stopped or removed.
            logger: Receives the log events.
            confinement: Require `kernel` or `walk` instead of what the host supports.
            clock: Returns the time.

        Raises:
            UnavailableError: It is a link, owned by another user, writable for others, or cannot be used.
        """
        require_platform()
        self.root = Path(os.path.abspath(root))
        self.limits = limits or Limits()
        """Limits of sessions that have none of their own."""
        self.ttl_seconds = ttl_seconds
        """Default idle time of new sessions; `None` means forever."""
        self._max_sessions = max_sessions
        self._min_free_bytes = min_free_bytes
        self._durability = Durability(durability)
        self._rules = tuple(rules)
        self.logger = SandboxLogger.of(logger)
        """Receives the log events."""
        self._confinement = None if confinement is None else Confinement(confinement)
        self._clock = clock
        self._store = Store(self.root, self._durability)
        self._container_settings = containers or ContainerSettings()
        self._containers = SessionContainers(self._store, self._container_settings, logger=self.logger)
        self._registry: Registry = SqliteRegistry(self._store.state, durability=self._durability)
        self._workspaces = SessionWorkspaces(
            logger=self.logger,
            clock=self._clock,
            durability=self._durability,
            min_free_bytes=min_free_bytes,
            confinement=self._confinement,
            stop_programs=self._containers.stop_programs,
        )
        self._full_sweeps: dict[Path, int] = {}
        """Time of the last full sweep of each directory; shared with the managers of `elsewhere`."""

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        root: str | os.PathLike[str] | None = None,
        logger: SandboxLogger | None = None,
    ) -> WorkspaceManager:
        """Create a manager from the environment and the configuration file; see `from_settings`.

        Raises:
            ConfigError: A setting is invalid.
            UnavailableError: The sessions directory cannot be used.
        """
        return cls.from_settings(load(os.environ if environ is None else environ), root=root, logger=logger)

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        *,
        root: str | os.PathLike[str] | None = None,
        logger: SandboxLogger | None = None,
    ) -> WorkspaceManager:
        """Create a manager from loaded *settings*; *root* overrides their directory.

        Containers of its sessions that killed processes left behind are removed.

        Raises:
            UnavailableError: The sessions directory cannot be used.
        """
        session = settings.session
        manager = cls(
            session.directory if root is None else root,
            limits=Limits(disk_bytes=session.disk_bytes, entries=session.entries),
            ttl_seconds=session.ttl_seconds,
            max_sessions=session.max_sessions,
            min_free_bytes=session.min_free_bytes,
            durability=session.durability,
            rules=[
                PathRule(os.fspath(rule.path), AccessMode.parse(rule.mode))
                for rule in session_rules(settings, os.getcwd())
            ],
            containers=settings.containers,
            logger=logger,
        )
        manager._containers.remove_orphans()
        return manager

    def elsewhere(self, root: str | os.PathLike[str]) -> WorkspaceManager:
        """Create a manager of another directory with the same settings.

        Containers of its sessions that killed processes left behind are removed.

        Raises:
            UnavailableError: It is a link, owned by another user, writable for others, or cannot be used.
        """
        other = WorkspaceManager(
            root,
            limits=self.limits,
            ttl_seconds=self.ttl_seconds,
            max_sessions=self._max_sessions,
            min_free_bytes=self._min_free_bytes,
            durability=self._durability,
            rules=self._rules,
            containers=self._container_settings,
            logger=self.logger,
            confinement=self._confinement,
            clock=self._clock,
        )
        other._full_sweeps = self._full_sweeps
        other._containers.remove_orphans()
        return other

    def description(self) -> dict[str, Any]:  # Any: whatever JSON can say
        """Return the settings that another process passes to `from_description` to open these sessions."""
        return {
            "root": str(self.root),
            "limits": asdict(self.limits),
            "min_free_bytes": self._min_free_bytes,
            "durability": self._durability.value,
            "rules": [(rule.root, rule.mode.value) for rule in self._rules],
            "confinement": None if self._confinement is None else self._confinement.value,
        }

    @classmethod
    def from_description(cls, described: dict[str, Any], *, logger: SandboxLogger) -> WorkspaceManager:
        """Create a manager from the `description` of a manager in another process."""
        return cls(
            described["root"],
            limits=Limits(**described["limits"]),
            min_free_bytes=described["min_free_bytes"],
            durability=described["durability"],
            rules=[PathRule(root, AccessMode(mode)) for root, mode in described["rules"]],
            logger=logger,
            confinement=described["confinement"],
        )

    def __enter__(self) -> WorkspaceManager:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the registry; open workspaces stay open."""
        self._registry.close()

    # Creating and opening

    def create(
        self,
        session_id: str | None = None,
        *,
        ttl_seconds: float | Unset | None = UNSET,
        limits: Limits | None = None,
        policy: SandboxPolicy | None = None,
        role: str | None = None,
        labels: Mapping[str, str] | None = None,
        actor: str = "host",
        absolute_paths: bool = True,
        make_id: Callable[[], str] = new_id,
    ) -> Workspace:
        """Create a session and open its workspace; an existing directory is never adopted.

        Raises:
            SessionIdError: The id is invalid.
            SessionExistsError: There is a session, or anything else, with that name.
            LimitError: The maximum number of sessions is reached.
        """
        now = self._clock()
        record = SessionRecord(
            session_id=make_id() if session_id is None else session_id,
            created_ns=now,
            used_ns=now,
            ttl_seconds=self.ttl_seconds if ttl_seconds is UNSET else ttl_seconds,
            role=role,
            limits=limits,
            labels=labels or {},
        )
        if os.path.lexists(self.root / record.session_id):
            raise _exists(record.session_id)
        try:
            workspace = self._create(record, policy, actor=actor, absolute_paths=absolute_paths)
        except LimitError:
            if not self._sweeper().remove_expired(now):
                raise
            workspace = self._create(record, policy, actor=actor, absolute_paths=absolute_paths)
        self._log("session.created", record.session_id)
        return workspace

    def _create(
        self, record: SessionRecord, policy: SandboxPolicy | None, *, actor: str, absolute_paths: bool
    ) -> Workspace:
        policy = policy or self._policy(record.session_id)
        with self._store.claim(record.session_id) as claim:
            if os.path.lexists(self.root / record.session_id):
                raise _exists(record.session_id)
            self._register(record)
            try:
                claim.create_workspace()
                return self._open_claimed(claim, record, policy, actor=actor, absolute_paths=absolute_paths)
            except BaseException:
                with suppress(OSError):
                    claim.undo_create_workspace()
                with suppress(OSError):
                    self._registry.remove(record.session_id)
                raise

    def _register(self, record: SessionRecord) -> None:
        try:
            self._registry.add(record, max_sessions=self._max_sessions)
        except SessionExistsError:
            # There is no workspace and we hold the claim, so a deletion was interrupted before its last step.
            if not self._registry.remove(record.session_id):
                raise
            self._registry.add(record, max_sessions=self._max_sessions)

    def open(
        self,
        session_id: str,
        *,
        limits: Limits | None = None,
        policy: SandboxPolicy | None = None,
        allow: Iterable[PathRule] = (),
        actor: str = "host",
        absolute_paths: bool = True,
    ) -> Workspace:
        """Open the workspace of an existing session; a directory without a record becomes a session.

        Args:
            session_id: The session.
            limits: Replaces the limits of the session.
            policy: Replaces the rules of all sessions.
            allow: Rules in addition to those of all sessions.
            actor: Recorded as the one who requested each operation.
            absolute_paths: Whether absolute paths are looked up in the rules; if not, they are refused.

        Raises:
            SessionIdError: The id is invalid.
            SessionMissingError: There is no such session, or it has expired.
            UnavailableError: The name is that of a link, a file or a directory of another user.
        """
        with self._claimed(session_id) as claim:
            record = self._adopt(claim)
            if self._has_expired(claim, record):
                raise SessionMissingError(f"no such session: {session_id!r}: it has expired")
            policy = policy or self._policy(session_id, allow)
            return self._open_claimed(
                claim, record, policy, limits, actor=actor, absolute_paths=absolute_paths
            )

    def get_workspace(
        self, session_id: str, *, actor: str = "host", absolute_paths: bool = True
    ) -> Workspace:
        """Open the workspace of a session, which is created if it is missing; safe for concurrent callers."""
        session_id = require_session_id(session_id)
        for _ in range(_TRIES):
            try:
                workspace = self.open(session_id, actor=actor, absolute_paths=absolute_paths)
            except SessionMissingError:
                self._delete(session_id, only_expired=True)
            else:
                self._log("session.retrieved", session_id)
                return workspace
            try:
                return self.create(session_id, actor=actor, absolute_paths=absolute_paths)
            except SessionExistsError:
                if not os.path.lexists(self.root / session_id):
                    raise
        raise _exists(session_id)

    @contextmanager
    def _claimed(self, session_id: str) -> Iterator[Claim]:
        """Claim a session that has a workspace.

        Raises:
            SessionIdError: The id is invalid.
            SessionMissingError: There is no such session.
        """
        session_id = require_session_id(session_id)
        self._require_exists(session_id)
        with self._store.claim(session_id) as claim:
            if claim.workspace() is None:
                raise _missing(session_id)
            yield claim

    def _require_exists(self, session_id: str) -> None:
        """Refuse the id of a missing session before any state is created for it."""
        try:
            os.stat(session_id, dir_fd=self._store.directory.fd, follow_symlinks=False)
        except FileNotFoundError:
            raise _missing(session_id) from None
        except OSError:
            return

    def _adopt(self, claim: Claim) -> SessionRecord:
        """Return the record of a claimed session, creating it if it is missing."""
        record = self._registry.get(claim.session_id)
        if record is None:
            record = self._registry.adopt(claim.session_id, self._clock(), ttl_seconds=self.ttl_seconds)
        return record

    def _has_expired(self, claim: Claim, record: SessionRecord) -> bool:
        return self._with_last_use(claim, record).is_expired(self._clock()) and not claim.is_in_use()

    def _with_last_use(self, claim: Claim, record: SessionRecord) -> SessionRecord:
        """Return the record with the last use that the state of the session shows."""
        now = self._clock()
        return with_last_use(record, claim.last_use_ns(now), now)

    def _open_claimed(
        self,
        claim: Claim,
        record: SessionRecord,
        policy: SandboxPolicy,
        limits: Limits | None = None,
        *,
        actor: str,
        absolute_paths: bool,
    ) -> Workspace:
        return self._workspaces.open(
            claim,
            policy,
            limits or record.limits or self.limits,
            created_ns=record.created_ns,
            actor=actor,
            absolute_paths=absolute_paths,
        )

    def _policy(self, session_id: str, allow: Iterable[PathRule] = ()) -> SandboxPolicy:
        return SandboxPolicy.for_workspace(self.root / session_id, allow=(*allow, *self._rules))

    # Status

    def list_workspaces(self) -> list[str]:
        """Return the sorted ids of all sessions, including directories that have no record yet."""
        found = []
        for name in self._store.workspaces():
            with suppress(ValueError):
                found.append(require_session_id(name))
        return found

    def list_records(self, after: str | None = None, count: int = 100) -> list[SessionRecord]:
        """Return up to *count* records ordered by id, starting after the id *after*."""
        return self._registry.list(after, count)

    def get_workspace_size(self, session_id: str) -> int:
        """Return the sum of the sizes of the files of a session.

        Raises:
            SessionMissingError: There is no such session.
        """
        with self.open(session_id) as workspace:
            return workspace.usage().disk_bytes

    def status(self, session_id: str) -> SessionStatus:
        """Return the status of a session. This does not count as a use, and adopts no directory.

        Raises:
            SessionMissingError: There is no such session.
        """
        with self._claimed(session_id) as claim:
            now = self._clock()
            record = self._registry.get(session_id) or SessionRecord(
                session_id=session_id, created_ns=now, used_ns=now, ttl_seconds=self.ttl_seconds
            )
            page = read_page(claim.ledger_fd)
            return SessionStatus(
                record=self._with_last_use(claim, record),
                usage=page.usage if page is not None and page.is_settled else None,
                in_use=claim.is_in_use(),
            )

    def journal(self, session_id: str) -> FileJournal:
        """Open the journal of a session for reading; the caller closes it. This does not count as a use.

        Raises:
            SessionMissingError: There is no such session.
        """
        with self._claimed(session_id) as claim:
            return FileJournal(
                claim.open_state(), before_reading=partial(self._workspaces.record_repeats, session_id)
            )

    def verify(self, session_id: str) -> JournalCheck:
        """Check that the journal of a session is as it was written. This does not count as a use.

        Raises:
            SessionMissingError: There is no such session.
            UnavailableError: The journal cannot be read.
        """
        with closing(self.journal(session_id)) as journal:
            try:
                return journal.verify()
            except OSError as error:
                reason = os.strerror(error.errno or errno.EIO)
        raise UnavailableError(f"the journal cannot be read: {reason}")

    def shown(self, session_id: str, within: Iterable[str]) -> ViewFilter | None:
        """Return the filter for records that a view of *within* may see; `None` if it sees all of them.

        Raises:
            ValueError: A path of *within* is empty, leads out or is not in the workspace.
        """
        names = parse_within(within, MOUNT)
        return ViewFilter(RuleTable(self._policy(session_id), MOUNT), names) if names else None

    # Lifetime

    def extend(self, session_id: str, ttl_seconds: float | None) -> SessionRecord:
        """Let a session be idle for *ttl_seconds* from now on; works for an expired one until it is swept.

        Raises:
            SessionMissingError: There is no such session.
        """
        with self._claimed(session_id) as claim:
            self._adopt(claim)
            record = self._registry.extend(session_id, ttl_seconds)
            now = self._clock()
            self._registry.touch(session_id, now)
            return with_last_use(record, now, now)

    def reset_workspace(self, session_id: str) -> bool:
        """Remove all files of a session and keep the session; return whether it existed."""
        try:
            workspace = self.open(session_id)
        except SessionMissingError:
            return False
        with workspace:
            for info in workspace.list():
                workspace.remove(info.path, recursive=True, force=True)
        return True

    def delete_workspace(self, session_id: str) -> bool:
        """Remove a session with its files and records, even while it is in use; return whether it existed.

        Raises:
            SessionIdError: The id is invalid.
            UnavailableError: The name is that of a link, a file or a directory of another user.
        """
        session_id = require_session_id(session_id)
        deleted = self._delete(session_id)
        if deleted:
            self.logger.log_event("session.deleted", session_id=session_id)
        return deleted

    def _delete(self, session_id: str, *, only_expired: bool = False) -> bool:
        with self._store.claim(session_id) as claim:
            if claim.workspace() is None:
                return self._registry.remove(session_id)
            if only_expired and not self._has_expired(claim, self._adopt(claim)):
                return False
            claim.trash_workspace()
            self._registry.remove(session_id)
            # After the files, so that no new container can be created for them.
            self._containers.remove(session_id)
        return True

    def sweep(self, *, dry_run: bool = False, idle_seconds: float | None = None) -> SweepResult:
        """Remove all expired sessions that are not in use, and what killed processes left.

        Most of what killed processes leave is found only by a full sweep, which looks at every session. The
        first sweep is full, and then the next one after an hour; the cost of the others depends only on the
        number of expired sessions.

        Args:
            dry_run: Only report what would be removed, by a full sweep.
            idle_seconds: Remove sessions that were idle for at least this long, whatever their own lifetime,
                by a full sweep.
        """
        return self._sweeper().run(dry_run=dry_run, idle_seconds=idle_seconds)

    def _sweeper(self) -> Sweeper:
        return Sweeper(
            self._store,
            self._registry,
            self._containers,
            logger=self.logger,
            clock=self._clock,
            full_sweeps=self._full_sweeps,
        )

    def _log(self, event: str, session_id: str) -> None:
        self.logger.log_event(event, session_id=session_id, workspace_path=str(self.root / session_id))


def _exists(session_id: str) -> SessionExistsError:
    return SessionExistsError(f"session {session_id!r} already exists")


def _missing(session_id: str) -> SessionMissingError:
    return SessionMissingError(f"no such session: {session_id!r}")

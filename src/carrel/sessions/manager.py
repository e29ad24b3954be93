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
from weakref import WeakValueDictionary

from carrel.audit.chain import JournalCheck
from carrel.audit.journal import FileJournal
from carrel.audit.logger import SandboxLogger
from carrel.config.load import load
from carrel.config.settings import ContainerSettings, Settings, session_rules
from carrel.errors import LimitError, SessionExistsError, SessionMissingError, UnavailableError
from carrel.fs.api import Confinement
from carrel.fs.host.durability import Durability
from carrel.fs.host.platform import require_platform
from carrel.fs.local.root import Root
from carrel.paths.session_id import require_session_id
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.sessions.containers import SessionContainers
from carrel.sessions.sweeper import Sweeper, SweepResult, with_last_use
from carrel.storage.api import Registry
from carrel.storage.local.ledger import FileLedger, read_page
from carrel.storage.local.lock import SessionLock
from carrel.storage.local.registry import SqliteRegistry
from carrel.storage.local.store import Claim, Store
from carrel.storage.quota import Quota
from carrel.storage.recorder import Recorder
from carrel.storage.session_record import SessionRecord
from carrel.values import UNSET, Clock, Limits, Unset, Usage
from carrel.workspace.views import RuleTable, ViewFilter, parse_within
from carrel.workspace.workspace import MOUNT, Workspace

TTL_SECONDS = 86_400.0
MAX_SESSIONS = 1_000

_TRIES = 100

Configured = Unset
CONFIGURED: Final = UNSET
"""Earlier names of `Unset` and `UNSET`."""


def new_id() -> str:
    """A fresh session id."""
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """A session as it is now."""

    record: SessionRecord
    """What is known about it; `used_ns` is its last use."""
    usage: Usage | None
    """What it holds; `None` until that is counted."""
    in_use: bool
    """Whether somebody has it open."""


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
        """Use the directory *root*, making it if it is missing.

        Args:
            root: Holds one workspace a session and, in `.carrel`, what is ours.
            limits: Ceilings of a session that is given none of its own; `Limits()` by default.
            ttl_seconds: How long a session may be idle; `None` means for ever.
            max_sessions: Most sessions at one time; `None` means no ceiling.
            min_free_bytes: Writes are refused while the host's disk has less than this free.
            durability: `process`: what was changed survives the end of this process. `disk`: it survives a
                power loss, too, and each change waits for the disk.
            rules: Other directories that every session may use.
            containers: Where the engine is that has the containers of sessions, if there are any.
            logger: Where events go.
            confinement: Demand `kernel` or `walk` instead of what the host offers.
            clock: Where the time comes from.

        Raises:
            UnavailableError: It is a link, somebody else's, writable for others, or cannot be used.
        """
        require_platform()
        self.root = Path(os.path.abspath(root))
        self.limits = limits or Limits()
        """Those of a session that has none of its own."""
        self.ttl_seconds = ttl_seconds
        """How long a session may be idle that was made for no other time; `None` for ever."""
        self._max_sessions = max_sessions
        self._min_free_bytes = min_free_bytes
        self._durability = Durability(durability)
        self._rules = tuple(rules)
        self._logger = SandboxLogger.of(logger)
        self._confinement = None if confinement is None else Confinement(confinement)
        self._clock = clock
        self._store = Store(self.root, self._durability)
        self._container_settings = containers or ContainerSettings()
        self._containers = SessionContainers(self._store, self._container_settings, logger=self._logger)
        self._registry: Registry = SqliteRegistry(self._store.state, durability=self._durability)
        self._recorders: WeakValueDictionary[int, Recorder] = WeakValueDictionary()
        """Of the workspaces that are open."""
        self._looks: dict[Path, int] = {}
        """When the last full look of a sweep was; shared with the managers of `elsewhere`."""
        self._containers.start()

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        root: str | os.PathLike[str] | None = None,
        logger: SandboxLogger | None = None,
    ) -> WorkspaceManager:
        """Create a manager from the environment and the configuration file; *root* overrides both.

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
        """Create a manager from *settings* that are already loaded; *root* overrides their directory.

        Raises:
            UnavailableError: The sessions directory cannot be used.
        """
        session = settings.session
        return cls(
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

    def elsewhere(self, root: str | os.PathLike[str]) -> WorkspaceManager:
        """The sessions of another directory, set up in the same way.

        Raises:
            UnavailableError: It is a link, somebody else's, writable for others, or cannot be used.
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
            logger=self._logger,
            confinement=self._confinement,
            clock=self._clock,
        )
        other._looks = self._looks
        return other

    def description(self) -> dict[str, Any]:  # Any: whatever JSON can say
        """What another process needs to open these sessions in the same way, for `from_description`."""
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
        """The sessions that another process described, to be opened here; see `description`."""
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
        """Let go of the registry; workspaces that are open stay so."""
        self._registry.close()

    # Making and opening

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
        """Make the workspace of a new session; never adopt a directory that is there already.

        Raises:
            SessionIdError: The id breaks the rule.
            SessionExistsError: There is something with that name.
            LimitError: There are as many sessions as there may be.
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
                claim.make_workspace()
                return self._opened(claim, record, policy, actor=actor, absolute_paths=absolute_paths)
            except BaseException:
                with suppress(OSError):
                    claim.unmake_workspace()
                with suppress(OSError):
                    self._registry.remove(record.session_id)
                raise

    def _register(self, record: SessionRecord) -> None:
        try:
            self._registry.add(record, most=self._max_sessions)
        except SessionExistsError:
            # There is no workspace and we hold the claim: whoever deleted the session did not get further.
            if not self._registry.remove(record.session_id):
                raise
            self._registry.add(record, most=self._max_sessions)

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
        """Open the workspace of a session that is there; a directory without a record becomes a session.

        Args:
            session_id: The session.
            limits: Other ceilings than those of the session.
            policy: Other rules than those of all sessions.
            allow: Rules besides those of all sessions.
            actor: Named in every record as the one who asked.
            absolute_paths: Whether absolute paths are looked up in the rules, or refused as such.

        Raises:
            SessionIdError: The id breaks the rule.
            SessionMissingError: There is no such session, or it has expired.
            UnavailableError: The name stands for a link, a file or somebody else's directory.
        """
        with self._claimed(session_id) as claim:
            record = self._adopted(claim)
            if self._has_expired(claim, record):
                raise SessionMissingError(f"no such session: {session_id!r}: it has expired")
            policy = policy or self._policy(session_id, allow)
            return self._opened(claim, record, policy, limits, actor=actor, absolute_paths=absolute_paths)

    def get_workspace(
        self, session_id: str, *, actor: str = "host", absolute_paths: bool = True
    ) -> Workspace:
        """Open the workspace of a session, making it if it is missing; safe to call from many at once."""
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
        """Claim a session whose workspace is there.

        Raises:
            SessionIdError: The id breaks the rule.
            SessionMissingError: There is no such session.
        """
        session_id = require_session_id(session_id)
        self._require_there(session_id)
        with self._store.claim(session_id) as claim:
            if claim.workspace() is None:
                raise _missing(session_id)
            yield claim

    def _require_there(self, session_id: str) -> None:
        """Refuse a name that nothing has, before any state is made for it."""
        try:
            os.stat(session_id, dir_fd=self._store.directory.fd, follow_symlinks=False)
        except FileNotFoundError:
            raise _missing(session_id) from None
        except OSError:
            return

    def _adopted(self, claim: Claim) -> SessionRecord:
        """The record of a session whose workspace is there, made if it is missing."""
        record = self._registry.get(claim.session_id)
        if record is None:
            record = self._registry.adopt(claim.session_id, self._clock(), ttl_seconds=self.ttl_seconds)
        return record

    def _has_expired(self, claim: Claim, record: SessionRecord) -> bool:
        return self._used(claim, record).is_expired(self._clock()) and not claim.is_in_use()

    def _used(self, claim: Claim, record: SessionRecord) -> SessionRecord:
        """The record with the last use that the state tells of."""
        now = self._clock()
        return with_last_use(record, claim.last_use_ns(now), now)

    def _opened(
        self,
        claim: Claim,
        record: SessionRecord,
        policy: SandboxPolicy,
        limits: Limits | None = None,
        *,
        actor: str = "host",
        absolute_paths: bool = True,
    ) -> Workspace:
        directory = claim.workspace()
        if directory is None:
            raise _missing(record.session_id)
        limits = limits or record.limits or self.limits
        scratch = claim.scratch
        scratch.sweep_drafts(self._clock() / 1e9)
        confinement = self._confinement if policy.enabled else Confinement.NONE
        root = Root.from_handle(directory, scratch=scratch, confinement=confinement)
        clock = self._clock
        lease = claim.lease(clock())
        recorder = Recorder(
            FileJournal(
                claim.open_state(), flush=self._durability.flush, flush_data=self._durability.flush_data
            ),
            logger=self._logger,
            session_id=record.session_id,
            actor=actor,
            clock=self._clock,
            durability=self._durability,
        )
        self._recorders[id(recorder)] = recorder
        ledger = FileLedger(
            root,
            SessionLock(claim.state, session_id=record.session_id),
            recorder=recorder,
            quota=Quota.of(limits, min_free_bytes=self._min_free_bytes, disk=directory),
            scratch=scratch,
            at_end=lambda: lease.end(clock()),
            end_programs=partial(self._containers.end_left, record.session_id),
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
        workspace.created_ns = record.created_ns
        return workspace

    def _policy(self, session_id: str, allow: Iterable[PathRule] = ()) -> SandboxPolicy:
        return SandboxPolicy.for_workspace(self.root / session_id, allow=(*allow, *self._rules))

    # What there is

    def list_workspaces(self) -> list[str]:
        """The ids of all sessions, sorted; also of directories that have no record yet."""
        found = []
        for name in self._store.workspaces():
            with suppress(ValueError):
                found.append(require_session_id(name))
        return found

    def list_records(self, after: str | None = None, count: int = 100) -> list[SessionRecord]:
        """Up to *count* records in the order of their ids, beginning after the id *after*."""
        return self._registry.list(after, count)

    def get_workspace_size(self, session_id: str) -> int:
        """Sum of the sizes of the files of a session.

        Raises:
            SessionMissingError: There is no such session.
        """
        with self.open(session_id) as workspace:
            return workspace.usage().disk_bytes

    def status(self, session_id: str) -> SessionStatus:
        """What is known about a session; looking is no use of it, and makes nothing a session.

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
                record=self._used(claim, record),
                usage=page.usage if page is not None and page.is_settled else None,
                in_use=claim.is_in_use(),
            )

    def journal(self, session_id: str) -> FileJournal:
        """The journal of a session, to be read and closed; reading is no use of the session.

        Raises:
            SessionMissingError: There is no such session.
        """
        with self._claimed(session_id) as claim:
            return FileJournal(claim.open_state(), before_reading=partial(self._record_repeats, session_id))

    def _record_repeats(self, session_id: str) -> None:
        """Record how often the same was refused in a session, as far as it is open here."""
        # Copied in one step, while other threads open theirs.
        for found in self._recorders.valuerefs():
            recorder = found()
            if recorder is not None and recorder.session_id == session_id:
                recorder.record_repeats()

    def verify(self, session_id: str) -> JournalCheck:
        """Check that the journal of a session is as it was written; checking is no use of the session.

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
        """What tells which records a view of *within* shows; `None` if it shows all of them.

        Raises:
            ValueError: A path of *within* is empty, leads out or is not in the workspace.
        """
        names = parse_within(within, MOUNT)
        return ViewFilter(RuleTable(self._policy(session_id), MOUNT), names) if names else None

    # Lifetime

    def extend(self, session_id: str, ttl_seconds: float | None) -> SessionRecord:
        """Let a session be idle for *ttl_seconds* from now on, also one that has expired but is still there.

        Raises:
            SessionMissingError: There is no such session.
        """
        with self._claimed(session_id) as claim:
            self._adopted(claim)
            record = self._registry.extend(session_id, ttl_seconds)
            now = self._clock()
            self._registry.touch(session_id, now)
            return with_last_use(record, now, now)

    def reset_workspace(self, session_id: str) -> bool:
        """Remove all files of a session, and keep the session; whether there was one."""
        try:
            workspace = self.open(session_id)
        except SessionMissingError:
            return False
        with workspace:
            for info in workspace.list():
                workspace.remove(info.path, recursive=True, force=True)
        return True

    def delete_workspace(self, session_id: str) -> bool:
        """Remove a session with its files and its records, also while it is used; whether there was one.

        Raises:
            SessionIdError: The id breaks the rule.
            UnavailableError: The name stands for a link, a file or somebody else's directory.
        """
        session_id = require_session_id(session_id)
        deleted = self._delete(session_id)
        if deleted:
            self._logger.log_event("session.deleted", session_id=session_id)
        return deleted

    def _delete(self, session_id: str, *, only_expired: bool = False) -> bool:
        with self._store.claim(session_id) as claim:
            if claim.workspace() is None:
                return self._registry.remove(session_id)
            if only_expired and not self._has_expired(claim, self._adopted(claim)):
                return False
            claim.throw_away()
            self._registry.remove(session_id)
            # Now that the files are out of the way no new one can be made for them.
            self._containers.remove(session_id)
        return True

    def sweep(self, *, dry_run: bool = False, idle_seconds: float | None = None) -> SweepResult:
        """Remove every session that has expired and that nobody uses, and what killed processes left.

        Most of what killed processes leave is found only by a look at every session. The first sweep takes
        it, and then the next one after an hour; those between cost only what the expired sessions cost.

        Args:
            dry_run: Only tell what would be removed; always looks at every session.
            idle_seconds: Remove what was idle for so long, whatever lifetime each session was given; always
                looks at every session.
        """
        return self._sweeper().run(dry_run=dry_run, idle_seconds=idle_seconds)

    def _sweeper(self) -> Sweeper:
        return Sweeper(
            self._store,
            self._registry,
            self._containers,
            logger=self._logger,
            clock=self._clock,
            looks=self._looks,
        )

    def _log(self, event: str, session_id: str) -> None:
        self._logger.log_event(event, session_id=session_id, workspace_path=str(self.root / session_id))


def _exists(session_id: str) -> SessionExistsError:
    return SessionExistsError(f"session {session_id!r} already exists")


def _missing(session_id: str) -> SessionMissingError:
    return SessionMissingError(f"no such session: {session_id!r}")

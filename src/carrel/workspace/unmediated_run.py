"""`UnmediatedRun`: run programs that change the files of a workspace without the gate.

Before the run, the workspace must be within its quota. After it, the changes are recorded in the journal
under the actor that started the programs, and the workspace is counted. They are not refused: they have
happened.

Not covered: the changes are not in the journal if the process that runs the programs is killed. During the
run, the usage of the session does not grow with what they write; the caller measures it and stops them.
Files that others change through the gate at the same time are in the journal already and are not recorded
again. A file that is created and removed during the run is not noticed. If there are too many entries, or the
walk is cancelled (`carrel.fs.cancellable`), only some changes are recorded, and `UnmediatedChanges` says so.
If the count is cancelled, the next caller counts.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from carrel.audit.event import Event
from carrel.errors import AccessError, CarrelError, LimitError, QuotaError
from carrel.fs.api import Files
from carrel.fs.cancellable import WalkCancelledError, checkpoint, is_cancelled, uncancellable
from carrel.fs.local.external_changes import (
    EntryState,
    TreeDifference,
    TreeState,
    UnmediatedAccess,
    tree_differences,
)
from carrel.paths.parsed_path import parse
from carrel.policy.rules import Access
from carrel.storage.quota import render_bytes
from carrel.values import Usage
from carrel.workspace.workspace import Workspace

MAX_STATE_ENTRIES = 250_000
"""Maximum number of entries compared before and after; each takes a few hundred bytes of memory."""
_TRIES = 3
_TOP = parse(".")


@dataclass(slots=True, kw_only=True)
class UnmediatedChanges:
    """The changes of a run, as sorted paths without directories."""

    created: list[str] = field(default_factory=list)
    modified: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    is_whole: bool = True
    """Whether these are all changes."""
    problem: str | None = None
    """The limit of the quota that was exceeded, with both numbers."""


class UnmediatedRun:
    """A run of programs in one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        """Require write access to all of *workspace*.

        Raises:
            AccessError: It is read-only, or a view of some directories.
        """
        self._gate = workspace.gate
        try:
            self.files: Files = uncancellable(self._require_access(workspace))
        except AccessError as error:
            self._gate.record_refusal("run", error)
            raise
        self._before = TreeState()
        self._position = 0

    @staticmethod
    def _require_access(workspace: Workspace) -> Files:
        if workspace.within is not None:
            raise AccessError("a view of some directories cannot be given to programs: they see everything")
        return workspace.gate.permit(Access.WRITE, ".")[0]

    @property
    def access(self) -> UnmediatedAccess | None:
        """Access to the directory on the host; `None` for files that are elsewhere."""
        return self.files.unmediated_access()

    def require_room(self) -> None:
        """Refuse a workspace that exceeds its quota.

        Raises:
            QuotaError: It does; files have to be removed first.
        """
        used = self._gate.ledger.usage() if self.has_quota else Usage(disk_bytes=0, entries=0)
        if problem := self.problem(used):
            limits = self._gate.limits
            is_bytes = limits.disk_bytes is not None and used.disk_bytes > limits.disk_bytes
            raise QuotaError(
                "bytes" if is_bytes else "entries",
                limit=int((limits.disk_bytes if is_bytes else limits.entries) or 0),
                asked=used.disk_bytes if is_bytes else used.entries,
                message=f"{problem}; remove something first",
            )

    @property
    def has_quota(self) -> bool:
        """Whether the usage of the workspace is limited."""
        return self._gate.limits.disk_bytes is not None or self._gate.limits.entries is not None

    def problem(self, used: Usage) -> str | None:
        """Describe how *used* exceeds the quota, with both numbers; `None` if it does not."""
        limits = self._gate.limits
        if limits.disk_bytes is not None and used.disk_bytes > limits.disk_bytes:
            return (
                f"Workspace quota exceeded: {used.disk_bytes} bytes > {limits.disk_bytes} bytes limit"
                f" ({render_bytes(limits.disk_bytes)})"
            )
        if limits.entries is not None and used.entries > limits.entries:
            return f"Workspace quota exceeded: {used.entries} entries > {limits.entries} limit"
        return None

    def room_bytes(self, used: Usage) -> int | None:
        """Return how many bytes may still be written; `None` means no limit."""
        limit = self._gate.limits.disk_bytes
        return None if limit is None else max(0, limit - used.disk_bytes)

    def measure(self) -> Usage:
        """Count the files now; fails if directories are moved during the walk."""
        return self.files.measure()

    def begin(self) -> None:
        """Save the state of the tree; if this process is killed, the next caller counts.

        Raises:
            WalkCancelledError: The walk was cancelled; the run must not start.
        """
        self._position = self._gate.position()
        self._before = self._read_state()
        checkpoint()
        self._gate.ledger.begin_unmediated()

    def mark_dirty(self) -> None:
        """Let the next caller count the files."""
        with self._gate.ledger as ledger:
            ledger.charge(0, 0)
            ledger.mark_dirty()

    def recount(self) -> None:
        """Count the files again, where programs may still run."""
        with suppress(LimitError):
            self._gate.ledger.recount()

    def end(self) -> UnmediatedChanges:
        """Record the changes in the journal, and count the files."""
        # Before the records, which must not name changes that a power loss took.
        self._gate.ledger.flush_unmediated()
        changes = self._record(self._read_state())
        # Without a quota, there may be more entries than a count allows.
        with suppress(LimitError, WalkCancelledError):
            changes.problem = self.problem(self._gate.ledger.end_unmediated())
        for names in (changes.created, changes.modified, changes.deleted):
            names.sort()
        return changes

    def _record(self, after: TreeState) -> UnmediatedChanges:
        """Record the changes in the journal until the run is cancelled."""
        recorded = self._recorded()
        changes = UnmediatedChanges(is_whole=False)
        with suppress(WalkCancelledError), self._gate.ledger as ledger:
            for each in tree_differences(self._before, after):
                if is_cancelled():
                    break
                if recorded.has(each.path) or not _is_certain(each, self._before, after):
                    continue
                ledger.record(
                    each.operation,
                    each.path,
                    other=each.target,
                    before_bytes=each.before_bytes,
                    after_bytes=each.after_bytes,
                )
                _list(each, changes)
            else:
                changes.is_whole = self._before.is_whole and after.is_whole
        return changes

    def _recorded(self) -> _Recorded:
        """Return the paths that others changed through the gate during the run."""
        found = _Recorded()
        with suppress(CarrelError):
            for event in self._gate.events(self._position, refusals=False):
                if event.error is None:
                    found.add(event)
        return found

    def _read_state(self) -> TreeState:
        access = self.access
        for _ in range(_TRIES):
            # Fails if directories are moved during the walk.
            with suppress(CarrelError):
                return self._walk() if access is None else access.read_state(MAX_STATE_ENTRIES)
        return TreeState(is_whole=False)

    def _walk(self) -> TreeState:
        found = TreeState()
        try:
            for info in self.files.walk(_TOP, self._gate.limits):
                checkpoint()
                size, modified = (0, 0) if info.is_directory else (info.size_bytes, info.modified_ns)
                found.entries[info.path] = EntryState(info.kind, info.inode, size, modified, 0, info.target)
        except (CarrelError, WalkCancelledError):
            found.is_whole = False
        return found


class _Recorded:
    """Paths that are in the journal."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._trees: set[str] = set()
        """Paths that were removed or moved with everything in them."""

    def add(self, event: Event) -> None:
        """Add the paths of *event*."""
        paths = {path for path in (event.path, event.other_path) if path is not None}
        self._paths |= paths
        if event.operation in ("remove", "move"):
            self._trees |= paths

    def has(self, path: str) -> bool:
        """Whether a change of *path* is recorded."""
        if path in self._paths:
            return True
        if not self._trees:
            return False
        parts = path.split("/")
        return any("/".join(parts[:count]) in self._trees for count in range(1, len(parts)))


def _is_certain(change: TreeDifference, before: TreeState, after: TreeState) -> bool:
    """Whether a change is certain even though one of the states may be incomplete."""
    is_known_before = before.is_whole or change.path in before.entries
    return is_known_before and (after.is_whole or change.path in after.entries)


def _list(change: TreeDifference, changes: UnmediatedChanges) -> None:
    if change.is_directory:
        return
    if change.operation == "remove":
        changes.deleted.append(change.path)
    elif change.before_bytes is None:
        changes.created.append(change.path)
    else:
        changes.modified.append(change.path)

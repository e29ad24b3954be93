"""`UnmediatedRun`: programs that work on the files of a workspace without asking the gate.

Before, the workspace must be within its quota. Afterwards what they did is in the journal, as done by the
actor who let them run, and the workspace is counted again. Nothing is refused then: it has happened.

Not covered: what they did is not in the journal if the process that let them run is killed. While they run,
the count of the session does not grow with what they write; whoever lets them run measures it meanwhile and
ends them. What others change through the gate at the same time is in the journal already, and the same file
is not recorded a second time. A file that is made and removed again is not seen. Where there is more than can
be surveyed, or no time for it (`carrel.fs.cancellable`), only a part is recorded, and `UnmediatedChanges`
says so.
If there was no time to count, the next one to look does.
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
"""So many are looked at before and after; each takes some hundred bytes of memory."""
_TRIES = 3
_TOP = parse(".")


@dataclass(slots=True, kw_only=True)
class UnmediatedChanges:
    """What programs did to the files; everything sorted, and directories in none of the lists."""

    created: list[str] = field(default_factory=list)
    modified: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    is_whole: bool = True
    """Whether that is all."""
    problem: str | None = None
    """What of the quota was passed, with both numbers."""


class UnmediatedRun:
    """The use of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        """Ask whether all of *workspace* may be changed.

        Raises:
            AccessError: It may only be read, or in part.
        """
        self._gate = workspace.gate
        try:
            self.files: Files = uncancellable(self._permitted(workspace))
        except AccessError as error:
            self._gate.refused("run", error)
            raise
        self._before = TreeState()
        self._position = 0

    @staticmethod
    def _permitted(workspace: Workspace) -> Files:
        if workspace.within is not None:
            raise AccessError("a view of some directories cannot be given to programs: they see everything")
        return workspace.gate.permit(Access.WRITE, ".")[0]

    @property
    def bypass(self) -> UnmediatedAccess | None:
        """The directory of the host; `None` for files that are elsewhere."""
        return self.files.unmediated_access()

    def require_room(self) -> None:
        """Refuse a workspace that holds more than it may.

        Raises:
            QuotaError: It does; something has to be removed first.
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
        """Whether the whole of the workspace has a ceiling."""
        return self._gate.limits.disk_bytes is not None or self._gate.limits.entries is not None

    def problem(self, used: Usage) -> str | None:
        """What is too much of *used*, with both numbers; `None` if it is within the quota."""
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
        """How many bytes may still be written; `None` for no ceiling."""
        limit = self._gate.limits.disk_bytes
        return None if limit is None else max(0, limit - used.disk_bytes)

    def measure(self) -> Usage:
        """Count now; directories that are moved meanwhile may make it fail."""
        return self.files.measure()

    def begin(self) -> None:
        """See what there is; should this process be killed, the next one to look counts again.

        Raises:
            WalkCancelledError: There was no time for that; nothing has begun.
        """
        self._position = self._gate.position()
        self._before = self._survey()
        checkpoint()
        self._gate.ledger.begin_direct()

    def mark_dirty(self) -> None:
        """Let the next one to look count again."""
        with self._gate.ledger as ledger:
            ledger.charge(0, 0)
            ledger.mark_dirty()

    def recount(self) -> None:
        """Count again, where something was left running."""
        with suppress(LimitError):
            self._gate.ledger.recount()

    def end(self) -> UnmediatedChanges:
        """See what was changed, write that into the journal, and count again."""
        # Before the records, which must not tell of what a power loss took.
        self._gate.ledger.flush_files()
        changes = self._record(self._survey())
        # A directory that nobody limits may have more than anybody wants to count.
        with suppress(LimitError, WalkCancelledError):
            changes.problem = self.problem(self._gate.ledger.end_direct())
        for names in (changes.created, changes.modified, changes.deleted):
            names.sort()
        return changes

    def _record(self, after: TreeState) -> UnmediatedChanges:
        """Write what was changed into the journal, as far as there is time."""
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
        """What others changed through the gate since the beginning."""
        found = _Recorded()
        with suppress(CarrelError):
            for event in self._gate.events(self._position, refusals=False):
                if event.error is None:
                    found.add(event)
        return found

    def _survey(self) -> TreeState:
        bypass = self.bypass
        for _ in range(_TRIES):
            # Directories that others move meanwhile make it fail.
            with suppress(CarrelError):
                return self._walk() if bypass is None else bypass.read_state(MAX_STATE_ENTRIES)
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
        """What was removed or moved with all that is in it."""

    def add(self, event: Event) -> None:
        """Note the paths of *event*."""
        paths = {path for path in (event.path, event.other_path) if path is not None}
        self._paths |= paths
        if event.operation in ("remove", "move"):
            self._trees |= paths

    def has(self, path: str) -> bool:
        """Whether a change of *path* is known."""
        if path in self._paths:
            return True
        if not self._trees:
            return False
        parts = path.split("/")
        return any("/".join(parts[:count]) in self._trees for count in range(1, len(parts)))


def _is_certain(change: TreeDifference, before: TreeState, after: TreeState) -> bool:
    """Whether a change is true, though perhaps not everything was looked at on both sides."""
    was_looked_at = before.is_whole or change.path in before.entries
    return was_looked_at and (after.is_whole or change.path in after.entries)


def _list(change: TreeDifference, changes: UnmediatedChanges) -> None:
    if change.is_directory:
        return
    if change.operation == "remove":
        changes.deleted.append(change.path)
    elif change.before_bytes is None:
        changes.created.append(change.path)
    else:
        changes.modified.append(change.path)

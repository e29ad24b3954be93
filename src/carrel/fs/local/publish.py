"""Put a finished draft in its place: look up the target, charge and record the write, then rename."""

from __future__ import annotations

import os

from carrel.fs.api import WRITE, Account, Cause, Existing, Parents
from carrel.fs.errors import changed_error
from carrel.fs.handle import Handle
from carrel.fs.local.draft import Draft
from carrel.fs.local.lookup import CreatedDirectory, Lookup, WriteTarget, remove_created
from carrel.fs.local.version import lock_version
from carrel.fs.rules import freed_bytes, info_of
from carrel.paths.parsed_path import ParsedPath
from carrel.values import Change


def publish(
    draft: Draft,
    path: ParsedPath,
    lookup: Lookup,
    account: Account,
    *,
    existing: Existing,
    parents: Parents,
    expect: str | None = None,
    mode: int | None = None,
    cause: Cause = WRITE,
) -> Change:
    """Make *draft* the file at *path* and return what changed.

    The target is looked up again inside `with account:`, where no other change of the tree can happen.
    """
    # Flushed before it gets its name, so that no name ever refers to content that the disk does not have.
    account.flush(draft.fd)
    with account:
        target = lookup.target(path, existing, parents)
        lock = None if expect is None else _lock_expected(target, expect)
        before = target.before
        keep = mode if before is None else before.st_mode
        found = os.fstat(draft.fd)
        if keep is not None and (keep ^ found.st_mode) & 0o777:
            os.fchmod(draft.fd, keep & 0o777)
            account.flush(draft.fd)
            found = os.fstat(draft.fd)
        display = lookup.display(target.path)
        made = lookup.display_parents(target.path, len(target.missing)) if target.missing else []
        _charge(account, target, found, display, made, cause)
        _rename(draft, target, lookup, account, existing)
        del lock
    if not found.st_nlink:
        found = os.fstat(draft.fd)
    return Change(
        before_bytes=None if before is None else before.st_size,
        info=info_of(display, found),
        made=tuple(made),
    )


def _lock_expected(target: WriteTarget, expect: str) -> Handle | None:
    if target.missing:
        raise changed_error(target.path, None)
    return lock_version(target.near, target.path, expect)


def _charge(
    account: Account,
    target: WriteTarget,
    found: os.stat_result,
    display: str,
    made: list[str],
    cause: Cause,
) -> None:
    """Charge and record a write, and the directories *made* for it."""
    before = target.before
    entries = len(made) + (before is None)
    account.charge(found.st_size - freed_bytes(before), entries, inode=found.st_ino)
    for directory in made:
        account.record("mkdir", directory)
    account.record(
        cause.operation,
        cause.source or display,
        other=None if cause.source is None else display,
        before_bytes=None if before is None else before.st_size,
        after_bytes=found.st_size,
    )
    account.prepare()


def _rename(draft: Draft, target: WriteTarget, lookup: Lookup, account: Account, existing: Existing) -> None:
    """Create the missing directories and rename the draft; a failure removes the directories again."""
    parent = target.near
    created: list[CreatedDirectory] = []
    if target.missing:
        parent, created = lookup.mkdirs(parent, target.missing, account.mark_dirty)
        if len(created) != len(target.missing):
            account.mark_dirty()
    try:
        if existing is Existing.REFUSE:
            draft.create(parent, target.path.name)
        else:
            draft.replace(parent, target.path.name)
    except BaseException:
        if not remove_created(created):
            account.mark_dirty()
        raise
    for each in created:
        account.flush_on_exit(each.parent)
    account.flush_on_exit(parent)

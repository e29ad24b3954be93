"""The safe operations beneath one directory.

A `Root` holds one `O_PATH` descriptor; that, not any path, is what it stands for. Each operation resolves
its path to a descriptor, or to the descriptor of the parent and one name without a slash, and then acts by
one system call on that. A check looks at the descriptor already held.

Not covered: a hard link that somebody on the host made to a file outside cannot be told from a file; a
directory that the host mounts inside is refused, but its own mode and size show in a listing.
"""

from __future__ import annotations

import builtins
import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from carrel.errors import EscapeError, MissingError, UnavailableError
from carrel.fs import syscalls
from carrel.fs.accounts import NullAccount
from carrel.fs.api import WRITE, Account, Cause, Confinement, Existing, Links, Parents
from carrel.fs.errors import translate, translated
from carrel.fs.handle import Handle
from carrel.fs.host.platform import require_platform
from carrel.fs.local import walk
from carrel.fs.local.content import append_all, copy_all
from carrel.fs.local.draft import Draft, lock_soon, rename_without_replacing, replace_by_link, sweep_abandoned
from carrel.fs.local.excluded_paths import ExcludedPaths
from carrel.fs.local.lookup import PARENT, Lookup, WriteTarget, entry, unmake
from carrel.fs.local.removal import Removal
from carrel.fs.local.resolve import Resolver
from carrel.fs.local.root_reading import LIST, TOP, RootReading
from carrel.fs.local.scratch import Scratch
from carrel.fs.local.version import changed_error, locked_version, version_of
from carrel.fs.rules import counted_bytes, not_a_file, require_one_name, require_write_bit, too_large
from carrel.paths.parsed_path import ParsedPath, escapes
from carrel.values import Change, FileInfo, FileKind

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY
_SMALL_BYTES = 2**20
"""So much is simply written; before more is, its place is looked at."""


class Root(RootReading):
    """All files beneath one directory."""

    def __init__(
        self,
        directory: Handle,
        *,
        label: str = "",
        scratch: Scratch | None = None,
        confinement: Confinement | None = None,
        excluded: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        """Take over an open directory.

        Paths in answers begin with *label*; *confinement* demands one way of resolving; the places in
        *barred*, given by the names that lead to them, belong to another rule.
        """
        resolver = Resolver(confinement, ExcludedPaths(directory, excluded) if excluded else None)
        super().__init__(Lookup(directory, resolver, label))
        self.account: Account = NullAccount()
        self._scratch = scratch if scratch and _same_mount(directory, scratch) else None

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        label: str = "",
        scratch: Scratch | None = None,
        confinement: Confinement | None = None,
        excluded: tuple[tuple[str, ...], ...] = (),
    ) -> Root:
        """Open a directory of the host.

        Raises:
            UnavailableError: It is missing, no directory, or this platform cannot confine.
        """
        require_platform()
        try:
            fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            reason = os.strerror(error.errno or errno.EIO)
            raise UnavailableError(f"cannot open the directory {Path(directory).name!r}: {reason}") from None
        return cls(Handle(fd), label=label, scratch=scratch, confinement=confinement, excluded=excluded)

    def close(self) -> None:
        """End all use; the descriptor closes when the last running operation is done."""
        self._beneath.close()
        self._scratch = None
        self.account = NullAccount()

    # Writing

    @translated
    def write(
        self,
        where: ParsedPath,
        data: bytes | Iterable[bytes],
        *,
        existing: Existing,
        parents: Parents,
        expect: str | None = None,
        mode: int | None = None,
        cause: Cause = WRITE,
    ) -> Change:
        """Store *data* at once or not at all, through a link at the end if it stays inside."""
        place = _Place(where, existing, parents, expect, mode, cause)
        if isinstance(data, bytes) and len(data) <= _SMALL_BYTES and self._scratch is not None:
            with self._draft(where) as draft:
                draft.write(data)
                return self._publish(draft, place)
        target = self._beneath.target(where, existing, parents)
        if expect is not None and expect != version_of(target.before):
            raise changed_error(where, version_of(target.before))
        freed = _freed(target.before)
        with self._draft(where, target) as draft:
            size = 0
            for piece in (data,) if isinstance(data, bytes) else data:
                self.account.require_room(size + len(piece) - freed, drafted_bytes=size)
                draft.write(piece)
                size += len(piece)
            return self._publish(draft, place)

    @translated
    def append(
        self, where: ParsedPath, data: bytes, *, limit: int | None, expect: str | None = None
    ) -> Change:
        """Add to a regular file that has no other name."""
        flags = _APPEND | os.O_DIRECTORY if where.must_dir else _APPEND
        with self.account as account:
            held = Handle(self._beneath.open(where, flags))
            found = os.fstat(held.fd)
            if not stat.S_ISREG(found.st_mode):
                raise not_a_file(found, where)
            if expect is not None:
                found = self._require_held(held, where, expect)
            require_write_bit(found, where)
            require_one_name(found, where)
            before, after = found.st_size, found.st_size + len(data)
            if limit is not None and after > limit:
                raise too_large("file_bytes", limit, after, where)
            shown = self._beneath.shown(where)
            account.charge(len(data), 0, inode=found.st_ino)
            account.record("append", shown, before_bytes=before, after_bytes=after)
            account.prepare()
            append_all(held.fd, data, before, account.flush)
            return Change(before_bytes=before, info=walk.info_of(shown, os.fstat(held.fd)))

    def _require_held(self, held: Handle, where: ParsedPath, expect: str) -> os.stat_result:
        """Lock an open file, and refuse it if it is not the expected version or lost its name."""
        lock_soon(held.fd)
        try:
            version: str | None = self.stat(where, Links.FOLLOW).version
        except MissingError:
            version = None
        found = os.fstat(held.fd)
        if version != expect or version_of(found) != expect:
            raise changed_error(where, version)
        return found

    @translated
    def touch(self, where: ParsedPath, modified_ns: int) -> FileInfo:
        """Set when a directory, or a file that has no other name, was changed last."""
        flags = os.O_PATH | os.O_DIRECTORY if where.must_dir else os.O_PATH
        with self.account as account:
            held = Handle(self._beneath.open(where, flags))
            found = os.fstat(held.fd)
            if not stat.S_ISDIR(found.st_mode):
                if not stat.S_ISREG(found.st_mode):
                    raise not_a_file(found, where)
                require_one_name(found, where)
            shown = self._beneath.shown(where)
            # A time that is set to what it was has been set, whoever looks.
            was_ns = -1 if found.st_mtime_ns == modified_ns else found.st_mtime_ns
            account.charge(0, 0, inode=was_ns % 2**64)
            account.record("touch", shown)
            account.prepare()
            syscalls.touch_held_unchecked(held.fd, modified_ns)
            account.flush_on_exit(held)
            return walk.info_of(shown, os.fstat(held.fd))

    @translated
    def truncate(self, where: ParsedPath, size: int) -> None:
        """Cut what an append that was interrupted left; for the account, which has counted neither."""
        held = Handle(self._beneath.open(where, _APPEND))
        os.ftruncate(held.fd, size)
        self.account.flush(held.fd)

    @translated
    def copy(self, where: ParsedPath, target: ParsedPath, *, existing: Existing, limit: int | None) -> Change:
        """Copy one regular file within this root."""
        source = self.reader(where)
        size = source.info.size_bytes
        if limit is not None and size > limit:
            raise too_large("file_bytes", limit, size, where)
        found = self._beneath.target(target, existing, Parents.MAKE)
        if size > _SMALL_BYTES:
            self.account.require_room(size - _freed(found.before))
        with self._draft(target, found) as draft:
            copy_all(source, draft, limit, where)
            cause = Cause("copy", source.info.path)
            return self._publish(draft, _Place(target, existing, Parents.MAKE, None, source.info.mode, cause))

    @translated
    def mkdir(self, where: ParsedPath, *, parents: Parents) -> builtins.list[str]:
        """Make a directory and, if wanted, those above it."""
        if where.dotted:
            os.close(self._beneath.open(where, PARENT))
            return []
        with self.account as account:
            near, missing = self._beneath.nearest(where, parents)
            if not missing and entry(near, where.name) is not None:
                if self._is_directory(where):
                    return []
                raise translate(errno.EEXIST, where)
            paths = [*self._beneath.shown_above(where, len(missing)), self._beneath.shown(where)]
            account.charge(0, len(paths))
            for path in paths:
                account.record("mkdir", path)
            account.prepare()
            parent, made = self._beneath.make(near, missing, account.mark_dirty)
            if len(made) != len(missing):
                account.mark_dirty()
            try:
                os.mkdir(where.name, 0o777, dir_fd=parent.fd)
            except BaseException:
                if not unmake(made):
                    account.mark_dirty()
                raise
            account.flush_on_exit(*(each.parent for each in made), parent)
            return paths

    def _is_directory(self, where: ParsedPath) -> bool:
        try:
            os.close(self._beneath.open(where, PARENT))
        except OSError:
            return False
        return True

    @translated
    def link(self, where: ParsedPath, target: str, *, existing: Existing = Existing.REFUSE) -> None:
        """Make a link that leads neither to an absolute path nor, read as text, out of the root."""
        if escapes(where, target):
            raise EscapeError(
                f"a link at {where.requested!r} would lead out: it escapes session workspace",
                path=where.requested,
            )
        text = os.fsencode(target)
        with self.account as account:
            parent = self._beneath.parent(where)
            before = entry(parent, where.name)
            if existing is Existing.REPLACE:
                if where.must_dir:
                    raise translate(errno.ENOTDIR, where)
                if before is not None and stat.S_ISDIR(before.st_mode):
                    raise translate(errno.EISDIR, where)
            elif before is not None:
                raise translate(errno.EEXIST, where)
            elif where.must_dir:
                raise translate(errno.ENOENT, where)
            account.charge(-_freed(before), 1 if before is None else 0)
            account.record("link", self._beneath.shown(where), other=target)
            account.prepare()
            if existing is Existing.REPLACE:
                replace_by_link(text, self._names(where), parent, where.name)
            else:
                os.symlink(text, where.name, dir_fd=parent.fd)
            account.flush_on_exit(parent)

    # Removing and moving

    @translated
    def remove(self, where: ParsedPath, *, expect: str | None = None) -> FileInfo:
        """Remove a file, a link (never its target) or an empty directory."""
        with self.account as account:
            parent = self._beneath.parent(where)
            info = self._beneath.require_entry(parent, where)
            held = None if expect is None else locked_version(parent, where, expect)
            if info.kind is FileKind.DIRECTORY:
                walk.require_empty(self._beneath.resolver.open, parent.fd, where.name)
            self._charge_removal(account, where, info)
            if info.kind is FileKind.DIRECTORY:
                os.rmdir(where.name, dir_fd=parent.fd)
            else:
                os.unlink(where.name, dir_fd=parent.fd)
            account.flush_on_exit(parent)
            del held
            return info

    def _charge_removal(self, account: Account, where: ParsedPath, info: FileInfo) -> None:
        is_last = info.kind is FileKind.FILE and info.links == 1
        account.charge(-counted_bytes(info.size_bytes, info.blocks) if is_last else 0, -1)
        account.record("remove", self._beneath.shown(where), before_bytes=info.size_bytes)
        account.prepare()

    @translated
    def remove_tree(self, where: ParsedPath, *, expect: str | None = None) -> FileInfo:
        """Remove whatever is there, with everything in it; in the trash first where there is one."""
        scratch = self._scratch
        account = self.account
        open_child = self._beneath.resolver.open
        with account:
            parent = self._beneath.parent(where)
            info = self._beneath.require_entry(parent, where)
            held = None if expect is None else locked_version(parent, where, expect)
            if info.kind is not FileKind.DIRECTORY:
                self._charge_removal(account, where, info)
                os.unlink(where.name, dir_fd=parent.fd)
                account.flush_on_exit(parent)
                del held
                return info
            account.charge(0, 0)
            account.record("remove", self._beneath.shown(where), before_bytes=0)
            account.prepare()
            if scratch is None:
                account.mark_dirty()
                Removal(open_child).remove(parent.fd, where.name)
                account.flush_on_exit(parent)
                return info
            mark = account.defer_release()
            thrown = scratch.throw_away(open_child, parent, where.name)
            account.flush_on_exit(parent, scratch.trash)
        # As long as it is in the trash and locked, nobody else takes it for one that was left there.
        account.release(mark, thrown.empty())
        thrown.remove()
        return info

    @translated
    def move(
        self, where: ParsedPath, target: ParsedPath, *, existing: Existing, expect: str | None = None
    ) -> FileInfo:
        """Rename within this root; a link moves as a link."""
        with self.account as account:
            parent = self._beneath.parent(where)
            info = self._beneath.require_entry(parent, where)
            held = None if expect is None else locked_version(parent, where, expect)
            self._move_to(account, parent, where, info, target, existing=existing)
            del held
            return info

    def _move_to(
        self,
        account: Account,
        parent: Handle,
        source: ParsedPath,
        info: FileInfo,
        target: ParsedPath,
        *,
        existing: Existing,
    ) -> None:
        target_parent = self._beneath.parent(target)
        if target.must_dir and info.kind is not FileKind.DIRECTORY:
            raise translate(errno.ENOTDIR, target)
        before = entry(target_parent, target.name)
        if before is not None and existing is Existing.REFUSE:
            raise translate(errno.EEXIST, target)
        if before is not None and before.st_ino == info.inode:
            # Two names of one file stay as they are when one is moved onto the other.
            return
        self._charge_move(account, info, before, source, target)
        try:
            if existing is Existing.REPLACE:
                os.rename(source.name, target.name, src_dir_fd=parent.fd, dst_dir_fd=target_parent.fd)
            else:
                rename_without_replacing(parent.fd, source.name, target_parent.fd, target.name)
        except OSError as error:
            number = error.errno
        else:
            account.flush_on_exit(parent, target_parent)
            return
        raise translate(number, source if number == errno.ENOENT else target)

    def _charge_move(
        self,
        account: Account,
        info: FileInfo,
        before: os.stat_result | None,
        source: ParsedPath,
        target: ParsedPath,
    ) -> None:
        account.charge(-_freed(before), 0 if before is None else -1, inode=info.inode)
        account.record(
            "move",
            self._beneath.shown(source),
            other=self._beneath.shown(target),
            before_bytes=info.size_bytes,
            after_bytes=info.size_bytes,
        )
        account.prepare()

    # Drafts

    def _publish(self, draft: Draft, place: _Place) -> Change:
        """Put a finished draft in its place and say what changed."""
        # Before it gets its name, so that no name ever stands for content that the disk does not have.
        self.account.flush(draft.fd)
        with self.account as account:
            target = self._beneath.target(place.where, place.existing, place.parents)
            held = self._require_expected(place, target)
            before = target.before
            keep = place.mode if before is None else before.st_mode
            found = os.fstat(draft.fd)
            if keep is not None and (keep ^ found.st_mode) & 0o777:
                os.fchmod(draft.fd, keep & 0o777)
                account.flush(draft.fd)
                found = os.fstat(draft.fd)
            made_paths = self._charge_write(account, target, found, place.cause)
            parent, made = self._beneath.make(target.near, target.missing, account.mark_dirty)
            if len(made) != len(target.missing):
                account.mark_dirty()
            try:
                if place.existing is Existing.REFUSE:
                    draft.create(parent, target.where.name)
                else:
                    draft.replace(parent, target.where.name)
            except BaseException:
                if not unmake(made):
                    account.mark_dirty()
                raise
            account.flush_on_exit(*(each.parent for each in made), parent)
            del held
        if not found.st_nlink:
            found = os.fstat(draft.fd)
        return Change(
            before_bytes=None if before is None else before.st_size,
            info=walk.info_of(self._beneath.shown(target.where), found),
            made=tuple(made_paths),
        )

    def _require_expected(self, place: _Place, target: WriteTarget) -> Handle | None:
        """Refuse another version than the expected one; who keeps the handle keeps others out."""
        if place.expect is None:
            return None
        if target.missing:
            raise changed_error(target.where, None)
        return locked_version(target.near, target.where, place.expect)

    def _charge_write(
        self, account: Account, target: WriteTarget, found: os.stat_result, cause: Cause
    ) -> builtins.list[str]:
        """Charge and record a write; returns the paths of the directories that it makes."""
        before = target.before
        made = self._beneath.shown_above(target.where, len(target.missing))
        entries = len(made) + (before is None)
        account.charge(found.st_size - _freed(before), entries, inode=found.st_ino)
        for path in made:
            account.record("mkdir", path)
        shown = self._beneath.shown(target.where)
        account.record(
            cause.operation,
            cause.source or shown,
            other=None if cause.source is None else shown,
            before_bytes=None if before is None else before.st_size,
            after_bytes=found.st_size,
        )
        account.prepare()
        return made

    def _draft(self, where: ParsedPath, target: WriteTarget | None = None) -> Draft:
        """Begin a draft: in the scratch directory, or without a name near its target."""
        try:
            return Draft(self._names(where), target.near if target and self._scratch is None else None)
        except FileNotFoundError:
            # A session that was deleted has no place for drafts; its account knows better what that means.
            self.account.require_room(0)
            raise

    def _names(self, where: ParsedPath) -> Handle:
        """The directory where drafts get their names."""
        scratch = self._scratch
        return self._beneath.use(where) if scratch is None else scratch.drafts

    def sweep_drafts(self, now: float) -> None:
        """Remove the drafts that killed writers left at the top, if we may."""
        with suppress(OSError):
            top = Handle(self._beneath.open(TOP, LIST))
            sweep_abandoned(top.fd, now)


class _Place(NamedTuple):
    """Where a draft is to be put, and on what terms."""

    where: ParsedPath
    existing: Existing
    parents: Parents
    expect: str | None
    mode: int | None
    cause: Cause


def _freed(found: os.stat_result | None) -> int:
    """The bytes that are given back when the name of *found* goes."""
    if not found or found.st_nlink != 1 or not stat.S_ISREG(found.st_mode):
        return 0
    return counted_bytes(found.st_size, found.st_blocks)


def _same_mount(directory: Handle, scratch: Scratch) -> bool:
    """Whether a rename from the scratch directories into the root can work."""
    return syscalls.mount_id_unchecked(directory.fd) == syscalls.mount_id_unchecked(scratch.drafts.fd)

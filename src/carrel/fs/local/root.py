"""`Root`: the `Files` beneath one directory of the host.

A `Root` holds one `O_PATH` descriptor and never uses the path of its directory again. Each operation resolves
its path to a descriptor, or to the descriptor of the parent and one name without a slash, and then acts on
that with one system call. Every check looks at a descriptor that is already open.

Not covered: a hard link that someone on the host made to a file outside cannot be told from a file; a
directory that the host mounts inside is refused, but its own mode and size appear in a listing; a subtree is
whatever directory has its name at the moment of an operation, and anyone who may write above it can replace
that directory.
"""

from __future__ import annotations

import builtins
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from carrel.errors import EscapeError, MissingError, UnavailableError
from carrel.fs import syscalls
from carrel.fs.accounts import NullAccount
from carrel.fs.api import (
    WRITE,
    Account,
    Cause,
    Confinement,
    Content,
    Enter,
    Existing,
    Links,
    OnUnreadable,
    Parents,
    Wants,
)
from carrel.fs.errors import (
    changed_error,
    not_a_file_error,
    size_limit_error,
    translate,
    translated,
    translating,
)
from carrel.fs.handle import Handle
from carrel.fs.host.platform import require_platform
from carrel.fs.local import walk as walk_module
from carrel.fs.local.content import FileReader, append_all, copy_all, read_window
from carrel.fs.local.draft import Draft, lock_soon, rename_without_replacing, replace_by_link, sweep_abandoned
from carrel.fs.local.excluded_paths import ExcludedPaths
from carrel.fs.local.external_changes import UnmediatedAccess
from carrel.fs.local.lookup import PARENT, Lookup, WriteTarget, entry, remove_created
from carrel.fs.local.publish import publish
from carrel.fs.local.removal import Removal
from carrel.fs.local.resolve import Resolver
from carrel.fs.local.scratch import Scratch
from carrel.fs.local.tree_reader import TreeReader
from carrel.fs.local.version import lock_version
from carrel.fs.rules import (
    counted_bytes,
    freed_bytes,
    info_of,
    require_one_name,
    require_write_bit,
    version_of,
)
from carrel.paths.parsed_path import ParsedPath, escapes, parse
from carrel.values import Change, FileInfo, FileKind, Limits, Named, Usage

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_NOCTTY
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY
_TOP = parse(".")
_SMALL_BYTES = 2**20
"""Writes up to this size skip the precheck of target and quota where there is a scratch directory."""


class Root:
    """All files beneath one directory."""

    def __init__(self, lookup: Lookup, *, scratch: Scratch | None = None) -> None:
        """Work beneath *lookup*; drafts and removed trees go to *scratch*, or stay inside without one."""
        self.account: Account = NullAccount()
        self._lookup = lookup
        self._scratch = scratch

    @classmethod
    def from_handle(
        cls,
        directory: Handle,
        *,
        label: str = "",
        scratch: Scratch | None = None,
        confinement: Confinement | None = None,
        excluded: tuple[tuple[str, ...], ...] = (),
    ) -> Root:
        """Take over an open directory.

        Paths in results begin with *label*; *confinement* demands one way of resolving; the paths in
        *excluded*, each given as its names, belong to another rule.
        """
        resolver = Resolver(confinement, ExcludedPaths(directory, excluded) if excluded else None)
        usable = scratch if scratch and _is_same_mount(directory, scratch) else None
        return cls(Lookup(directory, resolver, label), scratch=usable)

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
            UnavailableError: It is missing or not a directory, or this platform cannot confine.
        """
        require_platform()
        try:
            fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            reason = os.strerror(error.errno or errno.EIO)
            raise UnavailableError(f"cannot open the directory {Path(directory).name!r}: {reason}") from None
        return cls.from_handle(
            Handle(fd), label=label, scratch=scratch, confinement=confinement, excluded=excluded
        )

    def subtree(self, names: tuple[str, ...]) -> Root:
        """Return the files beneath the directory *names*; a link to another part of this root leads out.

        It shares the account and the scratch directories, and its results show the same paths.
        """
        part = Root(self._lookup.subtree(names), scratch=self._scratch)
        part.account = self.account
        return part

    @property
    def confinement(self) -> str:
        """The way of resolving that is in use."""
        return self._lookup.resolver.confinement.value

    def close(self) -> None:
        """End all use; the descriptor closes when the last running operation is done."""
        self._lookup.close()
        self._scratch = None
        self.account = NullAccount()

    # Reading

    @translated
    def read(
        self, path: ParsedPath, *, limit: int | None, offset: int = 0, length: int | None = None
    ) -> bytes:
        """Read a regular file, whole or a window of it."""
        return self._read(path, limit, offset, length)[1]

    @translated
    def read_with_info(
        self, path: ParsedPath, *, limit: int | None, offset: int = 0, length: int | None = None
    ) -> tuple[FileInfo, bytes]:
        """Read a file like `read`, and return its info from just before."""
        found, data = self._read(path, limit, offset, length)
        return info_of(self._lookup.display(path), found), data

    def _read(
        self, path: ParsedPath, limit: int | None, offset: int, length: int | None
    ) -> tuple[os.stat_result, bytes]:
        fd = self._lookup.open(path, _READ | os.O_DIRECTORY if path.must_dir else _READ)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise not_a_file_error(found, path)
            return found, read_window(fd, found.st_size, path, limit, offset, length)
        finally:
            os.close(fd)

    @translated
    def reader(self, path: ParsedPath) -> FileReader:
        """Open a regular file for reading in chunks."""
        handle = Handle(self._lookup.open(path, _READ | os.O_DIRECTORY if path.must_dir else _READ))
        found = os.fstat(handle.fd)
        if not stat.S_ISREG(found.st_mode):
            raise not_a_file_error(found, path)
        return FileReader(handle, info_of(self._lookup.display(path), found), path)

    @translated
    def stat(self, path: ParsedPath, links: Links) -> FileInfo:
        """Return the info of one entry; a link that is not followed has its target text."""
        flags = os.O_PATH
        if path.must_dir:
            flags |= os.O_DIRECTORY
        elif links is Links.KEEP:
            flags |= os.O_NOFOLLOW
        fd = self._lookup.open(path, flags)
        try:
            found = os.fstat(fd)
            target = None
            if stat.S_ISLNK(found.st_mode):
                target = os.fsdecode(os.readlink(b"", dir_fd=fd))
            created = syscalls.created_ns_unchecked(fd)
            return info_of(self._lookup.display(path), found, target, created)
        finally:
            os.close(fd)

    @translated
    def list(self, path: ParsedPath, *, limit: int | None) -> builtins.list[FileInfo]:
        """List the entries of a directory, sorted by name."""
        fd = self._lookup.open(path, _LIST)
        try:
            return walk_module.scan(fd, self._lookup.prefix(path), limit)
        finally:
            os.close(fd)

    @translated
    def names(self, path: ParsedPath, *, limit: int | None) -> Iterator[builtins.list[Named]]:
        """List the names in a directory with their kinds, in no order."""
        directory = Handle(self._lookup.open(path, _LIST))
        return translating(walk_module.names(directory, self._lookup.prefix(path), limit), path)

    @translated
    def walk(
        self,
        path: ParsedPath,
        limits: Limits,
        *,
        unreadable: OnUnreadable = OnUnreadable.SKIP,
        enter: Enter | None = None,
    ) -> Iterator[FileInfo]:
        """Walk everything beneath a directory, parents first, never through a link."""
        top = Handle(self._lookup.open(path, _LIST))
        tree = walk_module.TreeWalk(
            self._lookup.resolver.open,
            depth=limits.depth,
            entries=limits.walk_entries,
            listing=limits.list_entries,
            unreadable=unreadable,
            enter=enter,
        )
        return translating(tree.run(top, self._lookup.prefix(path)), path)

    @translated
    def read_tree(
        self,
        path: ParsedPath,
        limits: Limits,
        *,
        enter: Wants | None,
        wants: Wants | None,
        chunk_bytes: int,
    ) -> Iterator[Content]:
        """Read the regular files beneath a directory, in order of their names, never through a link."""
        top = Handle(self._lookup.open(path, _LIST))
        reader = TreeReader(
            self._lookup.resolver.open,
            path,
            self._lookup.prefix(path),
            limits,
            enter=enter,
            wants=wants,
            chunk_bytes=chunk_bytes,
        )
        return translating(reader.run(top), path)

    @translated
    def host_path(self, path: ParsedPath) -> str:
        """Return the current path on the host; the entry need not exist."""
        rest: tuple[str, ...] = ()
        try:
            handle = Handle(self._lookup.open(path, os.O_PATH))
        except FileNotFoundError:
            known, handle = self._lookup.longest_prefix(path, path.parts)
            rest = path.parts[known:]
            if ".." in rest:
                raise
        return os.path.join(os.readlink(f"/proc/self/fd/{handle.fd}"), *rest)

    def measure(self, limit: int | None = None) -> Usage:
        """Count everything, each inode once, at any depth."""
        return self._measure(_TOP, limit)

    @translated
    def _measure(self, path: ParsedPath, limit: int | None) -> Usage:
        top = Handle(self._lookup.open(path, _LIST))
        return walk_module.measure(self._lookup.resolver.open, top, limit)

    def unmediated_access(self) -> UnmediatedAccess:
        """Return the operations for programs that change these files without going through `Files`."""
        return UnmediatedAccess(self._lookup)

    # Writing

    @translated
    def write(
        self,
        path: ParsedPath,
        data: bytes | Iterable[bytes],
        *,
        existing: Existing,
        parents: Parents,
        expect: str | None = None,
        mode: int | None = None,
        cause: Cause = WRITE,
    ) -> Change:
        """Store *data* completely or not at all, through a link at the end if it stays inside."""
        target = None
        freed = 0
        is_small = isinstance(data, bytes) and len(data) <= _SMALL_BYTES
        if not is_small or self._scratch is None:
            target = self._lookup.target(path, existing, parents)
            if expect is not None and expect != version_of(target.before):
                raise changed_error(path, version_of(target.before))
            freed = freed_bytes(target.before)
        with self._begin_draft(path, target) as draft:
            size = 0
            for chunk in (data,) if isinstance(data, bytes) else data:
                if target is not None:
                    self.account.require_room(size + len(chunk) - freed, drafted_bytes=size)
                draft.write(chunk)
                size += len(chunk)
            return publish(
                draft,
                path,
                self._lookup,
                self.account,
                existing=existing,
                parents=parents,
                expect=expect,
                mode=mode,
                cause=cause,
            )

    @translated
    def append(
        self, path: ParsedPath, data: bytes, *, limit: int | None, expect: str | None = None
    ) -> Change:
        """Append to a regular file that has no other name."""
        flags = _APPEND | os.O_DIRECTORY if path.must_dir else _APPEND
        with self.account as account:
            handle = Handle(self._lookup.open(path, flags))
            found = os.fstat(handle.fd)
            if not stat.S_ISREG(found.st_mode):
                raise not_a_file_error(found, path)
            if expect is not None:
                found = self._lock_expected(handle, path, expect)
            require_write_bit(found, path)
            require_one_name(found, path)
            before, after = found.st_size, found.st_size + len(data)
            if limit is not None and after > limit:
                raise size_limit_error("file_bytes", limit, after, path)
            display = self._lookup.display(path)
            account.charge(len(data), 0, inode=found.st_ino)
            account.record("append", display, before_bytes=before, after_bytes=after)
            account.prepare()
            append_all(handle.fd, data, before, account.flush)
            return Change(before_bytes=before, info=info_of(display, os.fstat(handle.fd)))

    def _lock_expected(self, handle: Handle, path: ParsedPath, expect: str) -> os.stat_result:
        """Lock an open file, and refuse it if it is not the expected version or has lost its name."""
        lock_soon(handle.fd)
        try:
            version: str | None = self.stat(path, Links.FOLLOW).version
        except MissingError:
            version = None
        found = os.fstat(handle.fd)
        if version != expect or version_of(found) != expect:
            raise changed_error(path, version)
        return found

    @translated
    def touch(self, path: ParsedPath, modified_ns: int) -> FileInfo:
        """Set the modification time of a directory, or of a file that has no other name."""
        flags = os.O_PATH | os.O_DIRECTORY if path.must_dir else os.O_PATH
        with self.account as account:
            handle = Handle(self._lookup.open(path, flags))
            found = os.fstat(handle.fd)
            if not stat.S_ISDIR(found.st_mode):
                if not stat.S_ISREG(found.st_mode):
                    raise not_a_file_error(found, path)
                require_one_name(found, path)
            display = self._lookup.display(path)
            # Setting the time that the entry already has counts as done, even after a crash.
            before_ns = -1 if found.st_mtime_ns == modified_ns else found.st_mtime_ns
            account.charge(0, 0, inode=before_ns % 2**64)
            account.record("touch", display)
            account.prepare()
            syscalls.touch_held_unchecked(handle.fd, modified_ns)
            account.flush_on_exit(handle)
            return info_of(display, os.fstat(handle.fd))

    @translated
    def truncate(self, path: ParsedPath, size: int) -> None:
        """Cut off what an interrupted append left; for the account, which has charged nothing for it."""
        handle = Handle(self._lookup.open(path, _APPEND))
        os.ftruncate(handle.fd, size)
        self.account.flush(handle.fd)

    @translated
    def copy(self, path: ParsedPath, target: ParsedPath, *, existing: Existing, limit: int | None) -> Change:
        """Copy one regular file within this root."""
        source = self.reader(path)
        size = source.info.size_bytes
        if limit is not None and size > limit:
            raise size_limit_error("file_bytes", limit, size, path)
        found = self._lookup.target(target, existing, Parents.MAKE)
        if size > _SMALL_BYTES:
            self.account.require_room(size - freed_bytes(found.before))
        with self._begin_draft(target, found) as draft:
            copy_all(source, draft, limit, path)
            return publish(
                draft,
                target,
                self._lookup,
                self.account,
                existing=existing,
                parents=Parents.MAKE,
                mode=source.info.mode,
                cause=Cause("copy", source.info.path),
            )

    @translated
    def mkdir(self, path: ParsedPath, *, parents: Parents) -> builtins.list[str]:
        """Create a directory and, if wanted, those above it; returns the paths of all that were created."""
        if path.dotted:
            os.close(self._lookup.open(path, PARENT))
            return []
        with self.account as account:
            near, missing = self._lookup.nearest(path, parents)
            if not missing and entry(near, path.name) is not None:
                if self._is_directory(path):
                    return []
                raise translate(errno.EEXIST, path)
            created_paths = [*self._lookup.display_parents(path, len(missing)), self._lookup.display(path)]
            account.charge(0, len(created_paths))
            for each in created_paths:
                account.record("mkdir", each)
            account.prepare()
            parent, created = self._lookup.mkdirs(near, missing, account.mark_dirty)
            if len(created) != len(missing):
                account.mark_dirty()
            try:
                os.mkdir(path.name, 0o777, dir_fd=parent.fd)
            except BaseException:
                if not remove_created(created):
                    account.mark_dirty()
                raise
            account.flush_on_exit(*[each.parent for each in created], parent)
            return created_paths

    def _is_directory(self, path: ParsedPath) -> bool:
        try:
            os.close(self._lookup.open(path, PARENT))
        except OSError:
            return False
        return True

    @translated
    def link(self, path: ParsedPath, target: str, *, existing: Existing = Existing.REFUSE) -> None:
        """Create a link whose target is neither absolute nor, as text, above the root."""
        if escapes(path, target):
            raise EscapeError(
                f"a link at {path.requested!r} would lead out: it escapes session workspace",
                path=path.requested,
            )
        text = os.fsencode(target)
        with self.account as account:
            parent = self._lookup.parent(path)
            before = entry(parent, path.name)
            if existing is Existing.REPLACE:
                if path.must_dir:
                    raise translate(errno.ENOTDIR, path)
                if before is not None and stat.S_ISDIR(before.st_mode):
                    raise translate(errno.EISDIR, path)
            elif before is not None:
                raise translate(errno.EEXIST, path)
            elif path.must_dir:
                raise translate(errno.ENOENT, path)
            account.charge(-freed_bytes(before), 1 if before is None else 0)
            account.record("link", self._lookup.display(path), other=target)
            account.prepare()
            if existing is Existing.REPLACE:
                replace_by_link(text, self._drafts(path), parent, path.name)
            else:
                os.symlink(text, path.name, dir_fd=parent.fd)
            account.flush_on_exit(parent)

    # Removing and moving

    @translated
    def remove(self, path: ParsedPath, *, expect: str | None = None) -> FileInfo:
        """Remove a file, a link (never its target) or an empty directory."""
        with self.account as account:
            parent = self._lookup.parent(path)
            info = self._lookup.require_entry(parent, path)
            lock = None if expect is None else lock_version(parent, path, expect)
            if info.kind is FileKind.DIRECTORY:
                walk_module.require_empty(self._lookup.resolver.open, parent.fd, path.name)
            self._charge_removal(account, info)
            if info.kind is FileKind.DIRECTORY:
                os.rmdir(path.name, dir_fd=parent.fd)
            else:
                os.unlink(path.name, dir_fd=parent.fd)
            account.flush_on_exit(parent)
            del lock
            return info

    def _charge_removal(self, account: Account, info: FileInfo) -> None:
        is_last = info.kind is FileKind.FILE and info.links == 1
        account.charge(-counted_bytes(info.size_bytes, info.blocks) if is_last else 0, -1)
        account.record("remove", info.path, before_bytes=info.size_bytes)
        account.prepare()

    @translated
    def remove_tree(self, path: ParsedPath, *, expect: str | None = None) -> FileInfo:
        """Remove an entry and everything in it; a directory goes to the trash first, where there is one."""
        scratch = self._scratch
        account = self.account
        open_child = self._lookup.resolver.open
        with account:
            parent = self._lookup.parent(path)
            info = self._lookup.require_entry(parent, path)
            lock = None if expect is None else lock_version(parent, path, expect)
            if info.kind is not FileKind.DIRECTORY:
                self._charge_removal(account, info)
                os.unlink(path.name, dir_fd=parent.fd)
                account.flush_on_exit(parent)
                del lock
                return info
            account.charge(0, 0)
            account.record("remove", info.path, before_bytes=0)
            account.prepare()
            if scratch is None:
                account.mark_dirty()
                Removal(open_child).remove(parent.fd, path.name)
                account.flush_on_exit(parent)
                return info
            mark = account.defer_release()
            trashed = scratch.move_to_trash(open_child, parent, path.name)
            account.flush_on_exit(parent, scratch.trash)
        # While it is in the trash and locked, no sweeper takes it for an abandoned tree.
        account.release(mark, trashed.empty())
        trashed.remove()
        return info

    @translated
    def move(
        self, path: ParsedPath, target: ParsedPath, *, existing: Existing, expect: str | None = None
    ) -> FileInfo:
        """Rename within this root; a link is moved as a link."""
        with self.account as account:
            parent = self._lookup.parent(path)
            info = self._lookup.require_entry(parent, path)
            lock = None if expect is None else lock_version(parent, path, expect)
            self._move_to(account, parent, path, info, target, existing=existing)
            del lock
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
        target_parent = self._target_parent(target)
        if target.must_dir and info.kind is not FileKind.DIRECTORY:
            raise translate(errno.ENOTDIR, target)
        before = entry(target_parent, target.name)
        if before is not None and existing is Existing.REFUSE:
            raise translate(errno.EEXIST, target)
        if before is not None and before.st_ino == info.inode:
            # rename() onto another name of the same file does nothing.
            return
        account.charge(-freed_bytes(before), 0 if before is None else -1, inode=info.inode)
        account.record(
            "move",
            info.path,
            other=self._lookup.display(target),
            before_bytes=info.size_bytes,
            after_bytes=info.size_bytes,
        )
        account.prepare()
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

    @translated
    def _target_parent(self, path: ParsedPath) -> Handle:
        """Look up the parent of a second path, so that errors name that path."""
        return self._lookup.parent(path)

    # Drafts

    def _begin_draft(self, path: ParsedPath, target: WriteTarget | None = None) -> Draft:
        """Begin a draft: in the scratch directory, or unnamed in the directory of its target."""
        try:
            return Draft(self._drafts(path), target.near if target and self._scratch is None else None)
        except FileNotFoundError:
            # The session was deleted, with the directory for drafts; its account raises the right error.
            self.account.require_room(0)
            raise

    def _drafts(self, path: ParsedPath) -> Handle:
        """Return the directory where drafts get their names and `sweep_drafts` finds them."""
        scratch = self._scratch
        return self._lookup.top(path) if scratch is None else scratch.drafts

    def sweep_drafts(self, now: float) -> None:
        """Remove the drafts that killed writers left at the top, if permissions allow it."""
        with suppress(OSError):
            top = Handle(self._lookup.open(_TOP, _LIST))
            sweep_abandoned(top.fd, now)


def _is_same_mount(directory: Handle, scratch: Scratch) -> bool:
    """Whether a rename from the scratch directories into the root can work."""
    return syscalls.mount_id_unchecked(directory.fd) == syscalls.mount_id_unchecked(scratch.drafts.fd)

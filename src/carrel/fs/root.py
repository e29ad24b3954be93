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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from carrel.errors import (
    CarrelError,
    ChangedError,
    EscapeError,
    HostDeniedError,
    UnavailableError,
)
from carrel.fs import _sys, tree
from carrel.fs._barred import Barred
from carrel.fs._beneath import PARENT, Beneath, Made, Target, entry, require_write_bit, unmake
from carrel.fs._content import FileReader, append_all, copy_all, not_a_file, read_on, too_large
from carrel.fs._draft import Draft, rename_without_replacing, replace_by_link, sweep
from carrel.fs._resolve import Resolver
from carrel.fs._translate import translate, translated
from carrel.fs._version import locked, replace_version, version_of
from carrel.fs.api import Confinement, Existing, Links, Parents, Unreadable
from carrel.fs.handle import Handle
from carrel.fs.platform import require_platform
from carrel.fs.scratch import Scratch
from carrel.paths.rel import Where, leads_out, parse
from carrel.values import Change, FileInfo, FileKind, Limits

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_NOCTTY


class Root:
    """All files beneath one directory."""

    def __init__(
        self,
        directory: Handle,
        *,
        label: str = "",
        scratch: Scratch | None = None,
        confinement: Confinement | None = None,
        barred: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        """Take over an open directory.

        Paths in answers begin with *label*; *confinement* demands one way of resolving; the places in
        *barred*, given by the names that lead to them, belong to another rule.
        """
        resolver = Resolver(confinement, Barred(directory, barred) if barred else None)
        self._beneath = Beneath(directory, resolver, label)
        self._scratch = scratch if scratch and _same_mount(directory, scratch) else None
        self._publishing = Lock()

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        label: str = "",
        scratch: Scratch | None = None,
        confinement: Confinement | None = None,
        barred: tuple[tuple[str, ...], ...] = (),
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
        return cls(Handle(fd), label=label, scratch=scratch, confinement=confinement, barred=barred)

    @property
    def confinement(self) -> str:
        """Which way of resolving is in force."""
        return self._beneath.resolver.confinement.value

    def close(self) -> None:
        """End all use; the descriptor closes when the last running operation is done."""
        self._beneath.close()
        self._scratch = None

    # Reading

    @translated
    def read(self, where: Where, *, limit: int | None, offset: int = 0, length: int | None = None) -> bytes:
        """Content of a regular file, whole or a window of it."""
        flags = _READ | os.O_DIRECTORY if where.must_dir else _READ
        fd = self._beneath.open(where, flags)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise not_a_file(found, where)
            wanted = max(0, found.st_size - offset)
            if length is not None:
                wanted = min(wanted, length)
            if limit is not None and wanted > limit:
                raise too_large("read_bytes", limit, wanted, where)
            if not wanted and offset:
                return b""
            if offset:
                os.lseek(fd, offset, os.SEEK_SET)
            data = os.read(fd, wanted + 1)
            if len(data) == wanted or length is not None:
                return data[:wanted]
            return read_on(fd, data, limit, where)
        finally:
            os.close(fd)

    @translated
    def reader(self, where: Where) -> FileReader:
        """Open a regular file to be read by chunks."""
        flags = _READ | os.O_DIRECTORY if where.must_dir else _READ
        handle = Handle(self._beneath.open(where, flags))
        found = os.fstat(handle.fd)
        if not stat.S_ISREG(found.st_mode):
            raise not_a_file(found, where)
        return FileReader(handle, tree.info_of(self._beneath.shown(where), found), where)

    @translated
    def stat(self, where: Where, links: Links) -> FileInfo:
        """What is there; a link that is kept shows its text."""
        flags = os.O_PATH
        if where.must_dir:
            flags |= os.O_DIRECTORY
        elif links is Links.KEEP:
            flags |= os.O_NOFOLLOW
        fd = self._beneath.open(where, flags)
        try:
            found = os.fstat(fd)
            target = None
            if stat.S_ISLNK(found.st_mode):
                target = os.fsdecode(os.readlink(b"", dir_fd=fd))
            return tree.info_of(self._beneath.shown(where), found, target)
        finally:
            os.close(fd)

    @translated
    def list(self, where: Where, *, limit: int | None) -> builtins.list[FileInfo]:
        """The entries of a directory, sorted by name."""
        fd = self._beneath.open(where, _LIST)
        try:
            return tree.scan(fd, self._beneath.prefix(where), limit)
        finally:
            os.close(fd)

    @translated
    def walk(
        self, where: Where, limits: Limits, *, unreadable: Unreadable = Unreadable.SKIP
    ) -> Iterator[FileInfo]:
        """Everything beneath a directory, parents first, never through a link."""
        top = Handle(self._beneath.open(where, _LIST))
        visit = tree.Visit(
            self._beneath.resolver.open,
            depth=limits.depth,
            entries=limits.walk_entries,
            listing=limits.list_entries,
            unreadable=unreadable,
        )
        return _visited(visit, top, self._beneath.prefix(where), where)

    @translated
    def host_path(self, where: Where) -> str:
        """Where *where* lies on the host now, for a caller that must have a path; it need not exist."""
        rest: tuple[str, ...] = ()
        try:
            held = Handle(self._beneath.open(where, os.O_PATH))
        except FileNotFoundError:
            known, held = self._beneath.longest_prefix(where, where.parts)
            rest = where.parts[known:]
            if ".." in rest:
                raise
        return os.path.join(os.readlink(f"/proc/self/fd/{held.fd}"), *rest)

    # Writing

    @translated
    def write(
        self,
        where: Where,
        data: Iterable[bytes],
        *,
        existing: Existing,
        parents: Parents,
        expect: str | None = None,
        mode: int | None = None,
    ) -> Change:
        """Store *data* at once or not at all, through a link at the end if it stays inside."""
        target = self._beneath.target(where, existing, parents)
        with self._drafted(target) as draft:
            if expect is not None and expect != version_of(target.before):
                raise ChangedError(f"{where.asked!r} was changed meanwhile", path=where.asked)
            for piece in data:
                draft.write(piece)
            return self._publish(draft, target, existing, mode, expect)

    @translated
    def append(self, where: Where, data: bytes, *, limit: int | None) -> Change:
        """Add to a regular file that has no other name."""
        flags = _APPEND | os.O_DIRECTORY if where.must_dir else _APPEND
        fd = self._beneath.open(where, flags)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise not_a_file(found, where)
            require_write_bit(found, where)
            if found.st_nlink != 1:
                raise HostDeniedError(
                    f"{where.asked!r} has other names (hard links); appending would change them too",
                    path=where.asked,
                )
            if limit is not None and found.st_size + len(data) > limit:
                raise too_large("file_bytes", limit, found.st_size + len(data), where)
            append_all(fd, data, found.st_size)
            return Change(
                before_bytes=found.st_size, info=tree.info_of(self._beneath.shown(where), os.fstat(fd))
            )
        finally:
            os.close(fd)

    @translated
    def copy(self, where: Where, target: Where, *, existing: Existing, limit: int | None) -> Change:
        """Copy one regular file within this root."""
        source = self.reader(where)
        size = source.info.size_bytes
        if limit is not None and size > limit:
            raise too_large("file_bytes", limit, size, where)
        place = self._beneath.target(target, existing, Parents.MAKE)
        with self._drafted(place) as draft:
            copy_all(source, draft, limit, where)
            return self._publish(draft, place, existing, source.info.mode)

    @translated
    def mkdir(self, where: Where, *, parents: Parents) -> builtins.list[str]:
        """Make a directory and, if wanted, those above it."""
        if where.dotted:
            os.close(self._beneath.open(where, PARENT))
            return []
        made: builtins.list[Made] = []
        parent = self._beneath.parent_for_writing(where, parents, made)
        paths = [directory.path for directory in made]
        try:
            os.mkdir(where.name, 0o777, dir_fd=parent.fd)
        except FileExistsError:
            if self._is_directory(where):
                return paths
            raise
        except OSError:
            unmake(made)
            raise
        return [*paths, self._beneath.shown(where)]

    def _is_directory(self, where: Where) -> bool:
        try:
            os.close(self._beneath.open(where, PARENT))
        except OSError:
            return False
        return True

    @translated
    def link(self, where: Where, target: str, *, existing: Existing = Existing.REFUSE) -> None:
        """Make a link that leads neither to an absolute path nor, read as text, out of the root."""
        if leads_out(where, target):
            raise EscapeError(
                f"a link at {where.asked!r} would lead out: it escapes session workspace", path=where.asked
            )
        parent = self._beneath.parent(where)
        text = os.fsencode(target)
        if existing is Existing.REPLACE:
            if where.must_dir:
                raise translate(errno.ENOTDIR, where)
            replace_by_link(text, self._names(where), parent, where.name)
            return
        if where.must_dir and not entry(parent, where.name):
            raise translate(errno.ENOENT, where)
        os.symlink(text, where.name, dir_fd=parent.fd)

    # Removing and moving

    @translated
    def remove(self, where: Where) -> FileInfo:
        """Remove a file, a link (never its target) or an empty directory."""
        parent = self._beneath.parent(where)
        info = self._beneath.require_entry(parent, where)
        if info.kind is FileKind.DIRECTORY:
            os.rmdir(where.name, dir_fd=parent.fd)
        else:
            os.unlink(where.name, dir_fd=parent.fd)
        return info

    @translated
    def remove_tree(self, where: Where) -> FileInfo:
        """Remove whatever is there, with everything in it; in the trash first where there is one."""
        parent = self._beneath.parent(where)
        info = self._beneath.require_entry(parent, where)
        if info.kind is not FileKind.DIRECTORY:
            os.unlink(where.name, dir_fd=parent.fd)
            return info
        scratch = self._scratch
        if scratch is None:
            tree.remove_tree(self._beneath.resolver.open, parent.fd, where.name)
            return info
        token = os.urandom(12).hex().encode()
        self._rename_unlocked(parent, where.name, scratch.trash, token)
        tree.remove_tree(self._beneath.resolver.open, scratch.trash.fd, token)
        return info

    def _rename_unlocked(self, parent: Handle, name: bytes, trash: Handle, token: bytes) -> None:
        """Move a directory to the trash although its own mode may forbid moving it."""
        try:
            os.rename(name, token, src_dir_fd=parent.fd, dst_dir_fd=trash.fd)
        except PermissionError:
            tree.unlock(self._beneath.resolver.open, parent.fd, name)
            os.rename(name, token, src_dir_fd=parent.fd, dst_dir_fd=trash.fd)

    @translated
    def move(self, where: Where, target: Where, *, existing: Existing) -> FileInfo:
        """Rename within this root; a link moves as a link."""
        parent = self._beneath.parent(where)
        info = self._beneath.require_entry(parent, where)
        self._move_to(parent, where, info, target, existing=existing)
        return info

    def _move_to(
        self, parent: Handle, source: Where, info: FileInfo, target: Where, *, existing: Existing
    ) -> None:
        target_parent = self._beneath.parent(target)
        if target.must_dir and info.kind is not FileKind.DIRECTORY:
            raise translate(errno.ENOTDIR, target)
        try:
            if existing is Existing.REPLACE:
                os.rename(source.name, target.name, src_dir_fd=parent.fd, dst_dir_fd=target_parent.fd)
            else:
                rename_without_replacing(parent.fd, source.name, target_parent.fd, target.name)
        except OSError as error:
            number = error.errno
        else:
            return
        raise translate(number, source if number == errno.ENOENT else target)

    def _publish(
        self,
        draft: Draft,
        target: Target,
        existing: Existing,
        mode: int | None,
        expect: str | None = None,
    ) -> Change:
        """Put a finished draft in its place and say what changed."""
        before = target.before
        keep = mode if before is None else before.st_mode
        if keep is not None and (keep ^ os.fstat(draft.fd).st_mode) & 0o777:
            os.fchmod(draft.fd, keep & 0o777)
        held = None if expect is None else locked(target)
        with self._publishing:
            if existing is Existing.REFUSE:
                draft.create(target.parent, target.where.name)
            elif expect is None:
                draft.replace(target.parent, target.where.name)
            else:
                before = replace_version(draft, target, expect, held)
        return Change(
            before_bytes=None if before is None else before.st_size,
            info=tree.info_of(self._beneath.shown(target.where), os.fstat(draft.fd)),
            made=tuple(directory.path for directory in target.made),
        )

    @contextmanager
    def _drafted(self, target: Target) -> Iterator[Draft]:
        """A draft for *target*; if it is not put in place, nothing stays behind."""
        names = self._names(target.where)
        try:
            draft = Draft(names, unnamed_in=target.parent if self._scratch is None else None)
            try:
                yield draft
            finally:
                draft.discard()
        except BaseException:
            unmake(target.made)
            raise

    def _names(self, where: Where) -> Handle:
        """The directory where drafts get their names."""
        scratch = self._scratch
        return self._beneath.use(where) if scratch is None else scratch.drafts

    def sweep_drafts(self, now: float) -> None:
        """Remove the drafts that killed writers left at the top, if we may."""
        with suppress(OSError):
            top = Handle(self._beneath.open(parse("."), _LIST))
            sweep(top.fd, now)


def _visited(visit: tree.Visit, top: Handle, prefix: str, where: Where) -> Iterator[FileInfo]:
    try:
        yield from visit.run(top, prefix)
    except OSError as error:
        if isinstance(error, CarrelError):
            raise
        number = error.errno
    else:
        return
    raise translate(number, where)


def _same_mount(directory: Handle, scratch: Scratch) -> bool:
    """Whether a rename from the scratch directories into the root can work."""
    return _sys.mount_id_unchecked(directory.fd) == _sys.mount_id_unchecked(scratch.drafts.fd)

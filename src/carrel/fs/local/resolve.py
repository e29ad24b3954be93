"""Turn a path into an open descriptor beneath a base directory: by the kernel, or name by name.

Both ways follow links that stay inside and fail with EXDEV for everything that leads out: an absolute link
(even one that points back inside), `..` above the base, a magic link, another mount. Neither checks first and
opens later. A path through a missing directory leads out, too, if a later `..` does.

Not covered: a hard link that someone on the host made to a file outside is that file; on Linux before 5.8,
without /proc, the walk does not detect a bind mount of the same file system.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from carrel.fs import syscalls
from carrel.fs.api import Confinement
from carrel.fs.errors import os_error
from carrel.fs.local.excluded_paths import ExcludedPaths
from carrel.fs.rules import MAX_LINKS, skip_missing

BENEATH = syscalls.RESOLVE_BENEATH | syscalls.RESOLVE_NO_MAGICLINKS | syscalls.RESOLVE_NO_XDEV
RETRIES = 128
"""Most times that openat2 may fail with EAGAIN, as when `..` races with a rename, before that is an error."""
SWAPS = 3
"""Most times that a name may turn out not to be the link that it seemed to be."""
STEPS = 20_000
"""Most names that one walk opens; a path through links can need far more than its length."""

_MAY_BE_LINK = (errno.ELOOP, errno.ENOTDIR)
"""Errors of opening a link as something else."""
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


Open = Callable[[int, bytes, int], int]
"""`open(base, path, flags)` returns a descriptor or raises OSError; *path* has no empty parts and no `.`"""


class Resolver:
    """Opens paths beneath a base; uses openat2 until the kernel turns out not to support it."""

    def __init__(self, demanded: Confinement | None = None, excluded: ExcludedPaths | None = None) -> None:
        """Use the *demanded* confinement, and never enter the *excluded* paths.

        openat2 cannot exclude paths, so the walk is used if there are any.
        """
        if excluded and demanded is not Confinement.NONE:
            demanded = Confinement.WALK
        self.confinement = demanded or Confinement.KERNEL
        self.excluded = excluded
        self._may_fall_back = demanded is None
        self.open: Open = self._kernel_open
        if demanded is Confinement.WALK:
            self.open = self._walk_open
        elif demanded is Confinement.NONE:
            self.open = unconfined_open

    def _kernel_open(self, base: int, path: bytes, flags: int) -> int:
        try:
            return kernel_open(base, path, flags)
        except OSError as error:
            if not (self._may_fall_back and _is_refused_by_kernel(error, base)):
                raise
        self.confinement = Confinement.WALK
        self.open = self._walk_open
        return self._walk_open(base, path, flags)

    def _walk_open(self, base: int, path: bytes, flags: int) -> int:
        return _Walk(base, flags | os.O_CLOEXEC, self.excluded).run(path)


def kernel_open(base: int, path: bytes, flags: int) -> int:
    """Open with one openat2, repeated while a concurrent rename makes it fail with EAGAIN."""
    flags |= os.O_CLOEXEC
    for _ in range(RETRIES):
        try:
            return syscalls.openat2_unchecked(base, path, flags, BENEATH)
        except BlockingIOError:
            continue
        except (FileNotFoundError, NotADirectoryError) as error:
            number = error.errno or errno.ENOENT
        _require_inside(base, path, flags)
        raise os_error(number)
    raise os_error(errno.EAGAIN)


def _require_inside(base: int, path: bytes, flags: int) -> None:
    """Raise EXDEV if *path*, part of which is missing, leads out after that part."""
    flags = flags & (os.O_NOFOLLOW | os.O_DIRECTORY) | os.O_PATH | os.O_CLOEXEC
    if b".." not in path and not _meets_link(base, path, flags):
        return
    try:
        os.close(_Walk(base, flags, None).run(path))
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise


def _meets_link(base: int, path: bytes, flags: int) -> bool:
    try:
        os.close(syscalls.openat2_unchecked(base, path, flags, BENEATH | syscalls.RESOLVE_NO_SYMLINKS))
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _is_refused_by_kernel(error: OSError, base: int) -> bool:
    """Whether openat2 itself is missing or filtered, rather than this one open refused."""
    if error.errno == errno.ENOSYS:
        return True
    if error.errno != errno.EPERM:
        return False
    try:
        os.close(syscalls.openat2_unchecked(base, b".", os.O_PATH | os.O_CLOEXEC, 0))
    except PermissionError:
        return True
    return False


def unconfined_open(base: int, path: bytes, flags: int) -> int:
    """Open without confinement, as the host would."""
    return os.open(path, flags | os.O_CLOEXEC, dir_fd=base)


class _Walk:
    """Resolves one path name by name, never letting the kernel follow a link."""

    def __init__(self, base: int, flags: int, excluded: ExcludedPaths | None) -> None:
        self._base = base
        self._excluded = excluded
        self._flags = flags
        self._mount = syscalls.mount_id_unchecked(base)
        self._current = base
        self._trail: list[bytes] = []
        self._todo: list[bytes] = []
        self._links = 0
        self._swaps = 0
        self._steps = 0
        self._missing = 0
        """The errno of the first name that was not a directory; after it, only EXDEV matters."""

    def run(self, path: bytes) -> int:
        self._push(path)
        try:
            fd = self._run()
        except OSError as error:
            if not self._missing or error.errno == errno.EXDEV:
                raise
        else:
            if not self._missing:
                return fd
            os.close(fd)
        finally:
            self._move_to(self._base)
        raise os_error(self._missing)

    def _run(self) -> int:
        while self._todo:
            name = self._todo.pop()
            if name == b"..":
                self._parent()
            elif self._todo:
                self._enter(name)
            else:
                fd = self._open_last(name)
                if fd is not None:
                    return fd
        return os.open(b".", self._flags, dir_fd=self._current)

    def _skip_missing(self, number: int) -> None:
        """Continue above a name that is not a directory, to see whether the path leads out from there."""
        if not skip_missing(self._todo, b".."):
            raise os_error(number)
        self._missing = self._missing or number
        self._flags = os.O_PATH | os.O_CLOEXEC | (self._flags & os.O_NOFOLLOW)

    def _push(self, path: bytes) -> None:
        """Put the parts of *path* before the remaining ones."""
        self._todo.extend(part for part in reversed(path.split(b"/")) if part not in (b"", b"."))

    def _move_to(self, fd: int) -> None:
        if self._current != self._base:
            os.close(self._current)
        self._current = fd

    def _parent(self) -> None:
        """Resolve `..` by walking again from the base: the directory may have been moved since."""
        ups = 1
        while self._todo and self._todo[-1] == b"..":
            self._todo.pop()
            ups += 1
        if ups > len(self._trail):
            raise os_error(errno.EXDEV)
        del self._trail[-ups:]
        self._todo.extend(reversed(self._trail))
        self._trail.clear()
        self._move_to(self._base)

    def _enter(self, name: bytes) -> None:
        try:
            fd = self._open_name(name, _DIRECTORY)
        except FileNotFoundError:
            self._skip_missing(errno.ENOENT)
            return
        except OSError as error:
            if error.errno not in _MAY_BE_LINK:
                raise
            number = error.errno
        else:
            self._trail.append(name)
            self._move_to(fd)
            return
        self._follow(name, number)

    def _open_last(self, name: bytes) -> int | None:
        """Open the last name with the requested flags, or follow it and return `None`."""
        keep_link = self._flags & os.O_NOFOLLOW
        try:
            fd = self._open_name(name, self._flags | os.O_NOFOLLOW)
        except OSError as error:
            if keep_link or error.errno not in _MAY_BE_LINK:
                raise
            number = error.errno
        else:
            if keep_link or not (self._flags & os.O_PATH and stat.S_ISLNK(os.fstat(fd).st_mode)):
                return fd
            os.close(fd)
            number = errno.ELOOP
        self._follow(name, number)
        return None

    def _open_name(self, name: bytes, flags: int) -> int:
        self._steps += 1
        if self._steps > STEPS:
            raise os_error(errno.ELOOP)
        fd = os.open(name, flags, dir_fd=self._current)
        try:
            if syscalls.mount_id_unchecked(fd) != self._mount:
                raise os_error(errno.EXDEV)
            if self._excluded is not None:
                self._excluded.require_enterable(os.fstat(fd))
        except OSError:
            os.close(fd)
            raise
        return fd

    def _follow(self, name: bytes, number: int) -> None:
        """Continue through the link *name*; if it is not a link, fail with the errno *number*.

        It takes the number, not the exception, which would keep every frame and their descriptors.
        """
        try:
            target = os.readlink(name, dir_fd=self._current)
        except OSError:
            target = b""
        if not target:
            if self._swaps >= SWAPS:
                self._skip_missing(number)
                return
            # It may have been a link a moment ago; look again.
            self._swaps += 1
            self._todo.append(name)
            return
        self._links += 1
        if self._links > MAX_LINKS:
            raise os_error(errno.ELOOP)
        if target.startswith(b"/"):
            raise os_error(errno.EXDEV)
        if not self._todo and target.endswith((b"/", b"/.")):
            self._flags |= os.O_DIRECTORY
        self._push(target)

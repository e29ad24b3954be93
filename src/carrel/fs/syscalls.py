"""System calls that Python does not offer, and raw calls that need care.

Every function here ends in `_unchecked`: it takes a name or a path as given, and the caller is responsible
for what that leads to.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from functools import lru_cache

RESOLVE_BENEATH = 0x08
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_XDEV = 0x01
RENAME_NOREPLACE = 0x01

_NR_OPENAT2 = 437
"""The same number on every architecture."""
_HOW_BYTES = 24

_libc = ctypes.CDLL(None, use_errno=True)

_openat2 = _libc.syscall
_openat2.restype = ctypes.c_long
_openat2.argtypes = (
    ctypes.c_long,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_size_t,
)

_renameat2 = getattr(_libc, "renameat2", None)
if _renameat2 is not None:
    _renameat2.restype = ctypes.c_int
    _renameat2.argtypes = (
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    )

_syncfs = _libc.syncfs
_syncfs.restype = ctypes.c_int
_syncfs.argtypes = (ctypes.c_int,)

_AT_EMPTY_PATH = 0x1000
_AT_STATX_DONT_SYNC = 0x4000
"""Do not ask a network server: mounts are known locally."""
_STATX_BTIME = 0x800
_STATX_MNT_ID = 0x1000
_Answer = ctypes.c_char * 256
_MOUNT = struct.Struct("=I140xQ")
"""Fields of `struct statx`: the result mask and the mount id."""
_BIRTH = struct.Struct("=I76xqI")
"""Fields of `struct statx`: the result mask, and the seconds and nanoseconds of the birth time."""
_statx = getattr(_libc, "statx", None)
if _statx is not None:
    _statx.restype = ctypes.c_int
    _statx.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p)


@lru_cache(maxsize=64)
def how(flags: int, resolve: int) -> bytes:
    """Return an `open_how` structure; its mode is 0, because nothing is created with it."""
    return struct.pack("QQQ", flags, 0, resolve)


def openat2_unchecked(base: int, path: bytes, flags: int, resolve: int) -> int:
    """Open *path* relative to *base* and return the descriptor."""
    while True:
        fd: int = _openat2(_NR_OPENAT2, base, path, how(flags, resolve), _HOW_BYTES)
        if fd >= 0:
            return fd
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))


LISTED_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Flags for opening a name that a directory listing returned."""


def open_listed_unchecked(directory: int, name: str) -> int:
    """Open one name without a slash in *directory*, never through a link, but possibly across a mount."""
    return os.open(name, LISTED_FILE, dir_fd=directory)


def renameat2_unchecked(source_dir: int, source: bytes, target_dir: int, target: bytes, flags: int) -> None:
    """Rename with flags; ENOSYS if the C library has no `renameat2`."""
    if _renameat2 is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    while _renameat2(source_dir, source, target_dir, target, flags) != 0:
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))


def mount_id_unchecked(fd: int) -> tuple[int, int]:
    """Return a key that differs between mounts: the kernel's mount id, or the device if there is no id.

    `st_dev` alone does not reveal a bind mount of the same file system. `statx` returns the id since
    Linux 5.8; before that, /proc/self/fdinfo has it, at the cost of three system calls.
    """
    if _statx is not None:
        found = _Answer()
        if _statx(fd, b"", _AT_EMPTY_PATH | _AT_STATX_DONT_SYNC, _STATX_MNT_ID, found) == 0:
            mask, mount = _MOUNT.unpack_from(found)
            if mask & _STATX_MNT_ID:
                return 1, mount
    try:
        info = os.open(f"/proc/self/fdinfo/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise
        return 0, os.fstat(fd).st_dev
    try:
        text = os.read(info, 1024)
    finally:
        os.close(info)
    for line in text.splitlines():
        if line.startswith(b"mnt_id:"):
            return 1, int(line[7:])
    return 0, os.fstat(fd).st_dev


def created_ns_unchecked(fd: int) -> int | None:
    """Return the creation time of *fd*, or `None` if the kernel or the file system does not record it."""
    if _statx is None:
        return None
    found = _Answer()
    if _statx(fd, b"", _AT_EMPTY_PATH | _AT_STATX_DONT_SYNC, _STATX_BTIME, found) != 0:
        return None
    mask, seconds, nanoseconds = _BIRTH.unpack_from(found)
    return seconds * 10**9 + nanoseconds if mask & _STATX_BTIME else None


def chmod_held_unchecked(fd: int, mode: int) -> None:
    """Change the mode of the entry that the `O_PATH` descriptor *fd* refers to, whatever its name is now."""
    try:
        os.chmod(f"/proc/self/fd/{fd}", mode)
    except FileNotFoundError:
        # There is no /proc, and no other way; the entry itself still exists.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def chown_held_unchecked(fd: int, user: int, group: int) -> None:
    """Change the owner of the entry that the `O_PATH` descriptor *fd* refers to."""
    try:
        os.chown(f"/proc/self/fd/{fd}", user, group)
    except FileNotFoundError:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def touch_held_unchecked(fd: int, modified_ns: int) -> None:
    """Set the modification time of the entry that the `O_PATH` descriptor *fd* refers to."""
    try:
        os.utime(f"/proc/self/fd/{fd}", ns=(modified_ns, modified_ns))
    except FileNotFoundError:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def link_held_unchecked(fd: int, target_dir: int, target: bytes) -> None:
    """Give the unnamed file *fd* a name; EEXIST if the name is taken."""
    os.link(f"/proc/self/fd/{fd}", target, dst_dir_fd=target_dir, follow_symlinks=True)


def syncfs_unchecked(fd: int) -> None:
    """Flush the whole file system that *fd* is on, and wait for it."""
    while _syncfs(fd) != 0:
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))

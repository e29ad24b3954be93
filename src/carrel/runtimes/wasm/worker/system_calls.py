"""The system calls that a worker process may make; a seccomp filter rejects all others.

An allow-list, because a list of dangerous calls is never complete. Other calls fail with `EPERM` instead of
killing the process: libraries try calls that they can do without, and killing the worker would take its other
interpreters with it. Calls newer than `NEWEST` fail with `ENOSYS`, so that libc falls back to the older one;
thus `clone3`, whose flags a filter cannot read, becomes `clone`. Calls with the numbers of another
architecture kill the process: no legitimate code in it makes any.
"""

from __future__ import annotations

import errno
import os
import struct
from typing import NamedTuple

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The supported machines, with the kernel's audit number for each."""
X32 = 0x40000000
"""Start of the numbers of x32, another ABI for the calls of x86_64."""
NEWEST = 434
"""The newest call that is rejected with `EPERM`; its number is the same on every machine."""

ALLOWED: dict[str, tuple[int | None, int | None]] = {
    # Open files, and the paths that Landlock leaves accessible
    "read": (0, 63),
    "write": (1, 64),
    "readv": (19, 65),
    "writev": (20, 66),
    "pread64": (17, 67),
    "pwrite64": (18, 68),
    "lseek": (8, 62),
    "close": (3, 57),
    "dup": (32, 23),
    "flock": (73, 32),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "stat": (4, None),
    "lstat": (6, None),
    "open": (2, None),
    "openat": (257, 56),
    "openat2": (437, 437),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
    "access": (21, None),
    "faccessat": (269, 48),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "rmdir": (84, None),
    # Memory
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    "membarrier": (324, 283),
    "memfd_create": (319, 279),
    # Threads and signals of the process itself
    "futex": (202, 98),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "getcpu": (309, 168),
    "restart_syscall": (219, 128),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    # Sockets that the process received
    "recvfrom": (45, 207),
    "recvmsg": (47, 212),
    "shutdown": (48, 210),
    "getsockopt": (55, 209),
    "getsockname": (51, 204),
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "epoll_wait": (232, None),
    "epoll_pwait": (281, 22),
    "eventfd2": (290, 19),
    # Time, randomness and its own identity
    "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "gettimeofday": (96, 169),
    "getrandom": (318, 278),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getppid": (110, 173),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
}
"""Calls that are allowed with any arguments: their numbers on x86_64 and on aarch64."""


class CheckedCall(NamedTuple):
    """A call that is allowed only with certain arguments."""

    numbers: tuple[int, int]
    argument: int
    """Index of the argument that is compared."""
    values: tuple[int, ...]
    """Its allowed values."""
    ignored: int = 0
    """Bits of it that are ignored."""
    zero: int | None = None
    """Index of another argument, which must be 0."""


def _checked(pid: int) -> dict[str, CheckedCall]:
    return {
        # Threads as libc creates them, no processes and no namespaces; musl adds CLONE_DETACHED.
        "clone": CheckedCall((56, 220), 0, (0x3D0F00,), ignored=0x400000),
        # On a connected socket, not to an address.
        "sendto": CheckedCall((44, 206), 4, (0,)),
        # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_ADD_SEALS; not F_SETOWN, a signal.
        "fcntl": CheckedCall((72, 25), 1, (0, 1, 2, 3, 4, 1030, 1033)),
        # FIONBIO, FIOCLEX, FIONCLEX, and TCGETS, with which Python checks for a terminal.
        "ioctl": CheckedCall((16, 29), 1, (0x5421, 0x5451, 0x5450, 0x5401)),
        # PR_SET_NAME
        "prctl": CheckedCall((157, 167), 0, (15,)),
        # Read its own limits.
        "prlimit64": CheckedCall((302, 261), 0, (0,), zero=2),
        # abort()
        "tgkill": CheckedCall((234, 131), 0, (pid,)),
    }


_LOAD, _AND, _JUMP, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x05, 0x15, 0x35, 0x06
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALL = 0xFFFFFFFF


def allowed_numbers(machine: str) -> set[int]:
    """Return the numbers of the calls of *machine* that are allowed, with any or certain arguments."""
    column = list(ARCHITECTURES).index(machine)
    rows = [*ALLOWED.values(), *(row.numbers for row in _checked(0).values())]
    return {number for row in rows if (number := row[column]) is not None}


def program(machine: str) -> bytes:
    """Return the filter for the calling process, as classic BPF."""
    column = list(ARCHITECTURES).index(machine)
    numbers = [number for row in ALLOWED.values() if (number := row[column]) is not None]
    steps = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUAL, ARCHITECTURES[machine], 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
        _step(_AT_LEAST, X32, 0, 1),
        _step(_RETURN, _KILL),
        *(_step(_EQUAL, number, len(numbers) - place, 0) for place, number in enumerate(numbers)),
        _step(_JUMP, 1),
        _step(_RETURN, _ALLOW),
    ]
    for row in _checked(os.getpid()).values():
        steps += _check(row, row.numbers[column])
    steps += [
        _step(_AT_LEAST, NEWEST + 1, 0, 1),
        _step(_RETURN, _REFUSE | errno.ENOSYS),
        _step(_RETURN, _REFUSE | errno.EPERM),
    ]
    return b"".join(steps)


def _check(row: CheckedCall, number: int) -> list[bytes]:
    """Allow the call *number* if its arguments match *row*; other calls fall through."""
    low, high = _ARGUMENTS + 8 * row.argument, _ARGUMENTS + 8 * row.argument + 4
    steps = [
        *_zero(high),
        _step(_LOAD, low),
        _step(_AND, _ALL & ~row.ignored),
        *(_step(_EQUAL, value, len(row.values) - place, 0) for place, value in enumerate(row.values)),
        _step(_RETURN, _REFUSE | errno.EPERM),
    ]
    if row.zero is not None:
        steps += [*_zero(_ARGUMENTS + 8 * row.zero), *_zero(_ARGUMENTS + 8 * row.zero + 4)]
    steps.append(_step(_RETURN, _ALLOW))
    return [_step(_EQUAL, number, 0, len(steps)), *steps]


def _zero(offset: int) -> list[bytes]:
    """Reject the call unless this half of an argument is 0."""
    return [_step(_LOAD, offset), _step(_EQUAL, 0, 1, 0), _step(_RETURN, _REFUSE | errno.EPERM)]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)

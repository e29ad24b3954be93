"""The code of somebody who broke out of the engine: it runs in a worker process and tries what it can.

Started like a worker, with the attack in the place of what serves the host. It says what came of it on
standard output, which a worker of ours does not have.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import platform
import resource
import signal
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from carrel.runtimes.wasm.worker import main as worker
from carrel.runtimes.wasm.worker.system_calls import NEWEST, allowed_numbers

NOBODY = 65534
LAST_CALL = 470
UNFILTERED = {335, 336}
"""uretprobe and uprobe of x86_64, which a kernel handles before any filter, by ending the process."""
X32 = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
MACHINE = platform.machine()
CLONE, TGKILL, FCNTL, IOCTL, PRCTL, PRLIMIT = {
    "x86_64": (56, 234, 72, 16, 157, 302),
    "aarch64": (220, 131, 25, 29, 167, 261),
}[MACHINE]
CLONE_VFORK, CLONE_THREAD, CLONE_NEWUSER = 0x4000, 0x3D0F00, 0x10000000


def call(number: int, *arguments: object) -> None:
    """Make a system call; raises what it fails with."""
    passed = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    if LIBC.syscall(ctypes.c_long(number), *passed) == -1:
        raise OSError(ctypes.get_errno(), "")


def forked() -> None:
    """Fork; a child that was had after all ends at once."""
    if not os.fork():
        os._exit(0)


def cloned(flags: int) -> None:
    before = os.getpid()
    call(CLONE, flags, 0, 0, 0, 0)
    if os.getpid() != before:
        os._exit(0)


def attacks(secret: Path, address: Path, victim: int, fd: int) -> dict[str, Callable[[], object]]:
    """By name, what is tried, also with *fd*, an open file of its own; each has to fail."""
    limits = struct.pack("<QQ", 0, 0)
    return {
        "read": secret.read_bytes,
        "write": lambda: secret.write_text("changed"),
        "truncate": lambda: os.truncate(secret, 0),
        "list": lambda: os.listdir(secret.parent),
        "make": lambda: secret.with_name("new").mkdir(),
        "remove": secret.unlink,
        "rename": lambda: secret.rename(secret.with_name("new")),
        "link": lambda: os.link(secret, os.environ["TMPDIR"] + "/link"),
        "symlink": lambda: os.symlink(secret, os.environ["TMPDIR"] + "/symlink"),
        "chmod": lambda: secret.chmod(0o777),
        "chown": lambda: os.chown(secret, os.getuid(), os.getgid()),
        "utime": lambda: os.utime(secret, (0, 0)),
        "setxattr": lambda: os.setxattr(secret, "user.x", b"x"),
        "fchmod": lambda: os.fchmod(fd, 0o777),
        "mknod": lambda: os.mknod(os.environ["TMPDIR"] + "/device"),
        "chdir": lambda: os.chdir("/"),
        "chroot": lambda: os.chroot("/"),
        "umask": lambda: call({"x86_64": 95, "aarch64": 166}[MACHINE], 0),
        "mount": lambda: call({"x86_64": 165, "aarch64": 40}[MACHINE], b"none", b"/tmp", b"tmpfs", 0, 0),
        "socket": socket.socket,
        "unix socket": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
        "socket pair": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM),
        "datagram": lambda: CONTROL.sendto(b"x", str(address)),
        "message": lambda: CONTROL.sendmsg([b"x"], [], 0, str(address)),
        "connect": lambda: CONTROL.connect(str(address)),
        "bind": lambda: CONTROL.bind(os.environ["TMPDIR"] + "/socket"),
        "signal": lambda: os.kill(victim, signal.SIGKILL),
        "signal to a thread": lambda: call(TGKILL, victim, victim, signal.SIGKILL),
        "signal to the group": lambda: os.killpg(os.getpgid(0), 0),
        "signal by fcntl": lambda: call(FCNTL, fd, 8, victim),
        "signal by ioctl": lambda: call(IOCTL, fd, 0x8901, struct.pack("i", victim)),
        "prlimit of another": lambda: call(PRLIMIT, victim, resource.RLIMIT_CPU, limits, None),
        "a limit of its own": lambda: call(PRLIMIT, 0, resource.RLIMIT_CORE, limits, None),
        "ptrace": lambda: call({"x86_64": 101, "aarch64": 117}[MACHINE], 16, victim, 0, 0),
        "process_vm_readv": lambda: call({"x86_64": 310, "aarch64": 270}[MACHINE], victim, 0, 0, 0, 0, 0),
        "process_vm_writev": lambda: call({"x86_64": 311, "aarch64": 271}[MACHINE], victim, 0, 0, 0, 0, 0),
        "pidfd_open": lambda: os.pidfd_open(victim),
        "priority": lambda: os.setpriority(os.PRIO_PROCESS, victim, 19),
        "affinity": lambda: os.sched_setaffinity(victim, [0]),
        "fork": forked,
        "clone": lambda: cloned(signal.SIGCHLD),
        "vfork": lambda: cloned(CLONE_VFORK | signal.SIGCHLD),
        "clone into a namespace": lambda: cloned(CLONE_NEWUSER | signal.SIGCHLD),
        "thread in a namespace": lambda: cloned(CLONE_NEWUSER | CLONE_THREAD),
        "clone3": lambda: call(435, bytes(64), 64),
        "unshare": lambda: call({"x86_64": 272, "aarch64": 97}[MACHINE], CLONE_NEWUSER),
        "setns": lambda: call({"x86_64": 308, "aarch64": 268}[MACHINE], fd, 0),
        "program": lambda: os.execv("/bin/true", ["true"]),
        "program by descriptor": lambda: os.execve(fd, ["true"], {}),
        "new session": os.setsid,
        "new group": lambda: os.setpgid(0, 0),
        "user": lambda: os.setuid(os.getuid()),
        "groups": lambda: os.setgroups([]),
        "bpf": lambda: call({"x86_64": 321, "aarch64": 280}[MACHINE], 0, 0, 0),
        "keyctl": lambda: call({"x86_64": 250, "aarch64": 219}[MACHINE], 0, -3, 0, 0, 0),
        "io_uring": lambda: call(425, 1, bytes(120)),
        "perf": lambda: call({"x86_64": 298, "aarch64": 241}[MACHINE], bytes(128), 0, -1, -1, 0),
        "userfaultfd": lambda: call({"x86_64": 323, "aarch64": 282}[MACHINE], 0),
        "shared memory": lambda: call({"x86_64": 29, "aarch64": 194}[MACHINE], 0, 4096, 0o1600),
        "death signal": lambda: call(PRCTL, 1, 0, 0, 0, 0),
        "dumpable": lambda: call(PRCTL, 4, 1, 0, 0, 0),
        "seccomp": lambda: call(PRCTL, 22, 1, 0, 0, 0),
        "capset": lambda: call(
            {"x86_64": 126, "aarch64": 91}[MACHINE], struct.pack("<Ii", 0x20080522, 0), bytes(24)
        ),
        "landlock": lambda: call(444, None, 0, 1),
        "terminal": lambda: call(IOCTL, 0, 0x5412, b"x"),
    }


NAMES = sorted(attacks(Path(), Path(), 0, -1))


def attempt(what: Callable[[], object]) -> str | None:
    """The name of the error; `None` if it worked."""
    try:
        what()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error.errno))
    return None


def sweep() -> list[int]:
    """The calls that are not allowed and yet are not refused; arguments do no harm, should one be made."""
    wanted = {number: errno.EPERM if number <= NEWEST else errno.ENOSYS for number in range(LAST_CALL)}
    found = []
    for number in sorted(wanted.keys() - allowed_numbers(MACHINE) - UNFILTERED):
        try:
            call(number, *[-1] * 6)
            found.append(number)
        except OSError as error:
            if error.errno != wanted[number]:
                found.append(number)
    return found


def other_architecture(way: str) -> None:
    """Make getpid by the numbers of i386 or of x32, which ends the process."""
    if way == "x32":
        call(X32 + 39)
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20; int 0x80; ret
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()


def attack(self: worker.WorkerServer) -> None:
    """Stand in for what a worker does for its host."""
    try:
        try_everything()
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def try_everything() -> None:
    """Attack, and tell what came of it."""
    way = sys.argv[1]
    if way in ("x32", "i386"):
        other_architecture(way)
    fd = os.open(os.environ["TMPDIR"] + "/file", os.O_CREAT | os.O_RDWR)
    tried = {name: attempt(what) for name, what in attacks(*PLACES, int(sys.argv[6]), fd).items()}
    # Only what has a filter may be asked for everything.
    missed = sweep() if tried["socket"] == "EPERM" else None
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(json.dumps({"tried": tried, "missed": missed, "status": status}), flush=True)


def become(user: str) -> None:
    """Go on as that user; what is needed was loaded before."""
    if user == "nobody" and os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        LIBC.prctl(4, 1, 0, 0, 0)  # for /proc/self


if __name__ == "__main__":
    PLACES = Path(sys.argv[3]), Path(sys.argv[4])
    CONTROL, _HOST = socket.socketpair()
    become(sys.argv[2])
    worker.WorkerServer.run = attack  # type: ignore[method-assign]  # what an attacker would do
    worker.main(os.dup(CONTROL.fileno()), sys.argv[5])

"""The process that workers are forked from, with everything they need imported and one thread.

It forks when it is told to, tells how a worker ended, and ends with its host: at the end of its socket, or
when it finds that it has another parent. Its workers end with it, by `PR_SET_PDEATHSIG`, whatever they do.
That signal is sent at the end of the thread that forked, which here is the only one. For this process itself
it would be wrong, because any thread of the host may start it.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import resource
import signal
import socket
from struct import Struct

from carrel.sandbox.workers.worker import ShellWorker
from carrel.shell.command.table import COMMANDS
from carrel.values import MIB

ORDER = Struct("<BQ")
"""What to do, and the process that it is about."""
FORK, WAIT = 1, 2
FORKED = Struct("<Q")
"""The id of a new process."""
ENDED = Struct("<iQ")
"""The wait status of a process, and the most bytes by which its memory has grown."""
RESERVE_BYTES = 32 * MIB
"""What a worker that met its limit may still take, to say so."""

_PARENT_SECONDS = 5.0
"""How often to look whether the host is still there, if nothing is heard from it."""
_ADDRESS_TIMES = 4
"""So many times its memory limit a worker may reserve as addresses, for kernels that count nothing else."""
_PR_SET_PDEATHSIG = 1
_PAGE_BYTES = resource.getpagesize()
_libc = ctypes.CDLL(None, use_errno=True)


def main(fd: int, memory_bytes: int, modules: list[str]) -> None:
    """Serve the host at the other end of *fd*; workers may grow by *memory_bytes*, with *modules* loaded."""
    for command in COMMANDS.values():
        command.load()
    for name in modules:
        importlib.import_module(name)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What is there stays in pages that all workers share.
    gc.collect()
    gc.freeze()
    host = socket.socket(fileno=fd)
    host.settimeout(_PARENT_SECONDS)
    parent = os.getppid()
    first_bytes = _pages()[1] * _PAGE_BYTES
    while os.getppid() == parent:
        try:
            order, fds, _, _ = socket.recv_fds(host, ORDER.size, 2)
        except TimeoutError:
            continue
        if not order:
            return
        what, pid = ORDER.unpack(order)
        if what == WAIT:
            _, status, used = os.wait4(pid, 0)
            host.send(ENDED.pack(status, max(0, used.ru_maxrss * 1024 - first_bytes)))
        else:
            _fork(host, fds, memory_bytes)


def _fork(host: socket.socket, fds: list[int], memory_bytes: int) -> None:
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        try:
            host.close()
            _work(parent, fds, memory_bytes)
        finally:
            os._exit(1)
    for each in fds:
        os.close(each)
    pidfd = os.pidfd_open(pid)
    socket.send_fds(host, [FORKED.pack(pid)], [pidfd])
    os.close(pidfd)


def _work(parent: int, fds: list[int], memory_bytes: int) -> None:
    """Be a worker, until the host hangs up."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        return
    pages = _pages()
    limit = pages[5] * _PAGE_BYTES + memory_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit + RESERVE_BYTES))
    most = pages[0] * _PAGE_BYTES + _ADDRESS_TIMES * memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    line, control = (socket.socket(fileno=each) for each in fds)
    ShellWorker(line, control).run()
    os._exit(0)


def _pages() -> list[int]:
    """How many pages this process has: all addresses, those in memory, ..., and of data and stacks."""
    with open("/proc/self/statm", "rb") as file:
        return [int(word) for word in file.read().split()]

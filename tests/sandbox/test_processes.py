"""Guests run in processes of their own, which end with their host and die alone."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from carrel.runtimes.result import SandboxResult, TrapReason
from carrel.runtimes.wasm.worker.lockdown import has_seccomp
from carrel.sandbox.sandbox import BaseSandbox
from tests.sandbox.house import House, said

SECONDS = 60
"""How long a program of these tests may take."""
BEGIN = """
import os, sys, time
from carrel.sandbox.factory import create_session_sandbox, get_session_sandbox
def out(sandbox, code):
    result = sandbox.execute(code)
    assert result.success, result.stderr
    return result.stdout.strip()
def make(stateful=False):
    return create_session_sandbox(workspace_root=sys.argv[1], stateful=stateful)[1]
"""


class Place:
    """What the program of a test may leave behind: files, worker processes, and their directories."""

    def __init__(self, temporary: Path, guests: Path) -> None:
        temporary.mkdir()
        self.temporary = temporary
        self._guests = guests
        self._before = self._stale()

    def workers(self) -> list[int]:
        """The worker processes of the program and of its children, which have its path."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                words = Path("/proc", name, "cmdline").read_bytes()
                if b"carrel.runtimes.wasm.worker.main" in words and os.fsencode(self.temporary) in words:
                    found.append(int(name))
        return found

    def is_clean(self) -> bool:
        """Whether nothing is left."""
        return not self.workers() and not os.listdir(self.temporary) and self._stale() <= self._before

    def _stale(self) -> set[str]:
        """The directories of workers that nobody has locked, by whatever program."""
        found = set()
        for path in self._guests.glob("worker-*"):
            with suppress(OSError):
                fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
                with suppress(OSError):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    found.add(path.name)
                os.close(fd)
        return found


@pytest.fixture
def place(tmp_path: Path, guest_cache: Path) -> Place:
    """Where the program of a test has its temporary files."""
    return Place(tmp_path / "temporary", guest_cache / "guest")


@pytest.fixture
def start(place: Place, house: House) -> Callable[[str], subprocess.Popen[str]]:
    """Starts a program that uses guests."""

    def run(code: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", BEGIN + code, str(house.root)]
        paths = os.pathsep.join([str(place.temporary), *filter(None, sys.path)])
        environ = {**os.environ, "TMPDIR": str(place.temporary), "PYTHONPATH": paths}
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it hears SIGINT even if we do not
        try:
            return subprocess.Popen(
                command,
                env=environ,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                stdin=subprocess.PIPE,
            )
        finally:
            signal.signal(signal.SIGINT, before)

    return run


Start = Callable[[str], subprocess.Popen[str]]


def ended(program: subprocess.Popen[str]) -> str:
    """The output of a program that ended well."""
    out, err = program.communicate(timeout=SECONDS)
    assert (program.returncode, err) == (0, ""), err
    return out


def wait_for(condition: Callable[[], bool]) -> None:
    """Return when *condition* is true; the time limit of a test is the only one."""
    while not condition():
        time.sleep(0.002)


# The end of the host


def test_a_program_that_ends_leaves_nothing(start: Start, place: Place) -> None:
    assert ended(start("print(out(make(), 'print(1)'), out(make(True), 'print(2)'))")) == "1 2\n"
    assert place.is_clean()


def test_a_program_that_fails_while_a_guest_runs_leaves_nothing(start: Start, place: Place) -> None:
    code = "make().execute('print(1)\\nwhile True: pass', on_output=lambda *a: 1 / 0)"
    program = start(code)
    _, err = program.communicate(timeout=SECONDS)
    assert "ZeroDivisionError" in err
    assert place.is_clean()


def test_a_program_that_is_interrupted_leaves_nothing(start: Start, place: Place) -> None:
    program = start(
        "make().execute('print(1)\\nwhile True: pass', on_output=lambda *a: print('begun', flush=True))"
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "begun\n"
    program.send_signal(signal.SIGINT)
    _, err = program.communicate(timeout=SECONDS)
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert place.is_clean()


@pytest.mark.parametrize(
    "work",
    ["any(iter(int, 1))", "[1 for _ in iter(int, 1)]", "import time; time.sleep(100)", "input()"],
)
def test_the_workers_of_a_program_that_is_killed_end_by_themselves(
    start: Start, place: Place, work: str
) -> None:
    code = f"""
def begun(*_):
    print("begun", flush=True)
make(True).execute("print(1); {work}", stdin=sys.stdin.buffer, on_output=begun)
"""
    program = start(code)
    assert program.stdout is not None
    assert program.stdout.readline() == "begun\n"
    assert place.workers()
    program.kill()
    program.communicate(timeout=SECONDS)
    wait_for(place.is_clean)


def test_a_worker_outlives_the_thread_that_started_it(start: Start, place: Place) -> None:
    """So the kernel must not be asked for a signal at the end of its parent, which is that thread."""
    code = """
import threading
kept = make(True)
starter = threading.Thread(target=out, args=(kept, "x = 'still here'"))
starter.start()
starter.join()
# The thread itself ends a moment later than Python's part of it.
while os.path.exists(f"/proc/self/task/{starter.native_id}"):
    time.sleep(0.001)
print(out(kept, "print(x)"))
"""
    assert ended(start(code)) == "still here\n"
    assert place.is_clean()


# Forks


def test_a_child_that_was_forked_has_guests_of_its_own(start: Start, place: Place) -> None:
    code = """
kept = make(True)
out(kept, "x = 'parent'")
child = os.fork()
if not child:
    assert out(make(), "print('child')") == "child"
    assert kept.execute("x").metadata["state"] == "new"
    out(kept, "x = 'child'")
    sys.exit(0)
print(out(make(), "print('meanwhile')"))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(out(kept, "print(x)"), out(make(), "print('after')"))
"""
    assert ended(start(code)) == "meanwhile\nparent after\n"
    assert place.is_clean()


def test_a_child_that_ends_at_once_takes_nothing_along(start: Start, place: Place) -> None:
    code = """
kept = make(True)
out(kept, "x = 1")
for end in (os._exit, sys.exit):
    child = os.fork()
    if not child:
        end(0)
    os.waitpid(child, 0)
    print(out(kept, "print(x)"), out(make(), "print('fine')"), flush=True)
"""
    assert ended(start(code)) == "1 fine\n1 fine\n"
    assert place.is_clean()


def test_a_child_does_not_keep_the_guests_of_its_parent(start: Start, place: Place) -> None:
    code = """
import threading
def pause(stream, data):
    children.append(os.fork())
    if not children[-1]:
        os.read(stay, 1)
        os._exit(0)
children = []
stay, go = os.pipe()
assert make().execute("print(1)", on_output=pause).success
from carrel.sandbox.engines import engines
engines().close()
print("closed", flush=True)
sys.stdin.readline()
os.write(go, b"x")
os.waitpid(children[0], 0)
"""
    program = start(code)
    assert program.stdout is not None
    assert program.stdout.readline() == "closed\n"
    wait_for(lambda: not place.workers())
    assert program.communicate("\n", timeout=SECONDS) == ("", "")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_many_processes_work_at_once(start: Start, place: Place, tmp_path: Path, method: str) -> None:
    (tmp_path / "work.py").write_text(
        "from carrel.sandbox.factory import create_session_sandbox\n"
        "def work(root, n):\n"
        "    return create_session_sandbox(workspace_root=root)[1].execute(f'print({n})').stdout\n"
    )
    code = f"""
import multiprocessing
sys.path.insert(0, {str(tmp_path)!r})
from work import work
print(out(make(), "print('before')"))
if __name__ == "__main__":
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        print(sorted(pool.starmap(work, [(sys.argv[1], n) for n in range(4)])))
        pool.close()
        pool.join()
"""
    assert ended(start(code)) == "before\n['0\\n', '1\\n', '2\\n', '3\\n']\n"
    wait_for(lambda: not place.workers())


# A worker that dies


def own_workers() -> list[int]:
    """The worker processes of this process."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        found += [int(pid) for pid in (task / "children").read_text().split()]
    return [
        pid
        for pid in found
        if b"carrel.runtimes.wasm.worker.main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def kill_workers(number: signal.Signals) -> None:
    """End all worker processes of this process, which it has not waited for yet."""
    killed = own_workers()
    for pid in killed:
        os.kill(pid, number)
    wait_for(lambda: not {*killed} & {*own_workers()})


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT])
def test_a_worker_that_dies_takes_only_its_call_along(house: House, number: signal.Signals) -> None:
    sandbox, other = house.new(), house.new(stateful=True)
    other.execute("x = 1\nopen('kept', 'w').write('x')")
    killed: list[threading.Thread] = []

    def kill(_stream: str, _data: bytes) -> None:
        if not killed:
            killed.append(threading.Thread(target=kill_workers, args=(number,)))
            killed[0].start()

    result = sandbox.execute(
        "with open('a', 'w') as f: f.write('x')\nprint('begun', flush=True)\nwhile True: pass", on_output=kill
    )
    killed[0].join()
    assert (result.success, result.exit_code, result.trap_reason) == (False, None, TrapReason.ENGINE)
    assert result.stdout == "begun\n"
    assert result.files_created == ["a"]
    assert "EngineCrash: the engine failed" in result.stderr
    assert said(sandbox.execute("print(open('a').read())")) == "x\n"
    again = other.execute("print(open('kept').read())")
    assert said(again) == "x\n"
    assert again.metadata["state"] == "restarted"


def test_a_worker_that_died_between_calls_is_replaced(sandbox: BaseSandbox) -> None:
    assert said(sandbox.execute("print(1)")) == "1\n"
    kill_workers(signal.SIGKILL)
    results: list[SandboxResult] = [sandbox.execute(f"print({n})") for n in range(3)]
    assert [said(result) for result in results] == ["0\n", "1\n", "2\n"]


def test_a_worker_has_nothing_of_its_host(sandbox: BaseSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_SECRET", "secret")
    kill_workers(signal.SIGKILL)
    sandbox.execute("pass")
    for pid in own_workers():
        assert b"HOST_SECRET" not in Path(f"/proc/{pid}/environ").read_bytes()
        assert os.readlink(f"/proc/{pid}/cwd") == "/"


def test_a_worker_has_given_up_what_it_does_not_need(sandbox: BaseSandbox) -> None:
    sandbox.execute("pass")
    for pid in own_workers():
        status = Path(f"/proc/{pid}/status").read_text()
        assert "NoNewPrivs:\t1\n" in status
        assert f"Seccomp:\t{2 if has_seccomp() else 0}\n" in status


def test_a_worker_that_cannot_be_started_is_an_error(start: Start, place: Place) -> None:
    code = """
import shutil
from carrel.errors import SandboxExecutionError
sandbox = make()
shutil.rmtree(os.environ["TMPDIR"])
try:
    sandbox.execute("pass")
except SandboxExecutionError as error:
    print(error)
os.mkdir(os.environ["TMPDIR"])
print(out(sandbox, "print('now')"))
"""
    # Python looks for its temporary directory once; this one knows it already.
    found = ended(start(f"import tempfile\ntempfile.gettempdir()\n{code}"))
    assert found == "no worker process could be started: No such file or directory\nnow\n"
    assert str(place.temporary) not in found

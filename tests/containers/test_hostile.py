"""Programs that would take everything, stay forever or get out: each is contained, and nobody notices."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from carrel.config.settings import ContainerSettings
from carrel.containers import kill as kill_module
from carrel.containers.engine import Engine
from carrel.containers.kill import users_inside, users_listed
from carrel.containers.manager import Containers
from carrel.containers.spec import Bind
from carrel.errors import CarrelError
from carrel.runtimes.call import RunOutcome
from carrel.runtimes.container import quota_watch
from carrel.runtimes.container.run import ContainerRun
from carrel.runtimes.result import TrapReason
from carrel.sandbox.container import ContainerSandbox
from carrel.sessions.manager import WorkspaceManager
from carrel.values import MIB, Limits, Usage
from tests.contained import Contained, Shared, said
from tests.containers.conftest import Make
from tests.containers.test_container import run
from tests.requirements import requirement

pytestmark = pytest.mark.attack

WRITER = "while :; do echo x >>log; sleep 0.01; done"
"""Notices that it was left alive."""
COMMANDS = "cat /proc/[0-9]*/cmdline 2>/dev/null; true"
"""Prints the commands of all processes of the container."""


def is_calm(contained: Contained, sandbox: ContainerSandbox) -> bool:
    """Whether nothing is left of what ran."""
    return kill_module.is_idle(contained.container(sandbox))


# Taking everything


def test_a_fork_bomb_ends_and_other_sessions_go_on(contained: Contained) -> None:
    bomb, other = contained.new("bomb"), contained.new("other")
    said(other.run(["true"]))
    said(bomb.run(["true"]))
    reasons: list[TrapReason | None] = []
    begun = threading.Event()

    def explode() -> None:
        code = (
            "import os\nprint('begun', flush=True)\nwhile True:\n    try: os.fork()\n    except OSError: pass"
        )
        result = bomb.execute(code, timeout_seconds=1.5, on_output=lambda name, data: begun.set())
        reasons.append(result.trap_reason)

    thread = threading.Thread(target=explode)
    thread.start()
    begun.wait()
    assert said(other.run(["echo", "fine"])) == "fine\n"
    thread.join()
    assert reasons == [TrapReason.TIMEOUT]
    assert is_calm(contained, bomb)
    assert said(bomb.run(["echo", "again"])) == "again\n"


def test_a_fork_bomb_of_a_shell_ends_too(shared_container: Shared) -> None:
    contained, sandbox = shared_container.contained, shared_container.empty()
    result = sandbox.run(["sh", "-c", ":() { : | : & }; :; while :; do :; done"], timeout_seconds=0.5)
    assert not result.success
    said(sandbox.run(["true"]))
    assert is_calm(contained, sandbox)


def test_a_memory_hog_is_ended_alone(contained: Contained) -> None:
    hog, other = contained.new(), contained.new()
    said(other.run(["true"]))
    result = hog.execute("x = []\nwhile True: x.append(bytearray(10**6))", timeout_seconds=60)
    assert result.trap_reason is TrapReason.MEMORY
    assert said(other.run(["echo", "fine"])) == "fine\n"
    assert said(hog.run(["echo", "again"])) == "again\n"


def test_temporary_files_are_memory_and_end_where_it_does(contained: Contained) -> None:
    sandbox = contained.new()
    result = sandbox.run(["sh", "-c", "head -c 1000000000 /dev/zero >/tmp/fill; ls -l /tmp/fill"])
    assert "No space left" in result.stderr
    assert not list(contained.files(sandbox).iterdir())


@pytest.mark.parametrize(
    "script",
    [
        "i=0; while :; do i=$((i+1)); head -c 100000 /dev/zero >f$i; done",
        "i=0; while :; do i=$((i+1)); truncate -s 1M s$i; done",
        "while :; do mkdir -p d; cd d; head -c 100000 /dev/zero >f; done",
        "mkdir -p a/b; i=0; while :; do i=$((i+1)); head -c 99999 /dev/zero >a/b/$i; mv a/b c; mv c a/b;done",
    ],
    ids=["many files", "sparse files", "deep", "moved about"],
)
def test_a_disk_filler_is_ended_soon_after_the_quota(contained: Contained, script: str) -> None:
    limit = 5 * MIB
    sandbox = contained.new(limits=Limits(disk_bytes=limit, file_bytes=2 * MIB))
    result = sandbox.run(["sh", "-c", script], timeout_seconds=60)
    assert result.trap_reason is TrapReason.QUOTA, result.stderr
    assert f"> {limit} bytes limit" in str(result.metadata["message"])
    assert is_calm(contained, sandbox)
    with contained.open(sandbox) as workspace:
        used = workspace.usage().disk_bytes
        assert used > limit
        with pytest.raises(CarrelError, match="quota"):
            workspace.write("more", "x")
        for info in workspace.list():
            workspace.remove(info.path, recursive=True)
        assert workspace.recount().disk_bytes == 0
    said(sandbox.run(["sh", "-c", "echo x >f"]))


def test_blocks_that_are_reserved_without_a_size_count(contained: Contained) -> None:
    limit = 5 * MIB
    sandbox = contained.new(limits=Limits(disk_bytes=limit))
    # Several files, because in memory the largest size of a file holds for blocks too.
    code = (
        "import ctypes, errno, time\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "for name in 'abcdefgh':\n    file = open(name, 'w')\n"
        "    while libc.fallocate(file.fileno(), 1, ctypes.c_long(0), ctypes.c_long(2 << 20)):\n"
        # It is interrupted when the container is frozen to be counted.
        "        if ctypes.get_errno() != errno.EINTR: raise OSError(ctypes.get_errno(), 'fallocate')\n"
        "time.sleep(1000)"
    )
    result = sandbox.execute(code, timeout_seconds=60)
    assert result.trap_reason is TrapReason.QUOTA, result.stderr
    with contained.open(sandbox) as workspace:
        assert workspace.usage().disk_bytes > limit
        for info in workspace.list():
            workspace.remove(info.path)
        assert workspace.usage().disk_bytes == 0
    said(sandbox.run(["true"]))


def test_files_that_are_moved_about_cannot_hide_for_long(contained: Contained) -> None:
    limit = 5 * MIB
    sandbox = contained.new(limits=Limits(disk_bytes=limit, file_bytes=2 * MIB))
    code = (
        "import os\nnames = [f'd{i}' for i in range(40)]\nfor top in 'ab': os.mkdir(top)\n"
        "for name in names:\n    os.mkdir(f'a/{name}')\n    for _ in range(40):\n"
        "        open(f'a/{name}/{_}', 'w').truncate(5_000)\n"
        "while True:\n    for x, y in ('ab', 'ba'):\n"
        "        for name in names: os.rename(f'{x}/{name}', f'{y}/{name}')"
    )
    result = sandbox.execute(code, timeout_seconds=60)
    assert result.trap_reason is TrapReason.QUOTA
    assert is_calm(contained, sandbox)


def test_nothing_is_frozen_for_a_look_before_the_program_has_begun(
    shared_container: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine would wait for the frozen beginning of a program for ever, and so would all who ask it."""
    monkeypatch.setattr(quota_watch, "_MIN_PAUSE_SECONDS", 0)
    monkeypatch.setattr(quota_watch, "_FROZEN_EVERY", 1)
    sandbox = shared_container.empty()
    for _ in range(5):
        said(sandbox.run(["true"]))
    assert said(sandbox.run(["sh", "-c", "echo on; sleep 0.1; echo still"])) == "on\nstill\n"


def test_one_that_makes_too_many_entries_is_ended(contained: Contained) -> None:
    sandbox = contained.new(limits=Limits(entries=500))
    result = sandbox.execute(
        "i = 0\nwhile True:\n    i += 1\n    open(f'f{i}', 'w').close()", timeout_seconds=60
    )
    assert result.trap_reason is TrapReason.QUOTA
    assert "entries > 500 limit" in result.stderr


def test_one_huge_file_ends_at_the_limit_exactly(contained: Contained) -> None:
    sandbox = contained.new(limits=Limits(disk_bytes=5 * MIB, file_bytes=2 * MIB))
    result = sandbox.run(["sh", "-c", "head -c 1000000000 /dev/zero >huge"])
    assert not result.success
    assert (contained.files(sandbox) / "huge").stat().st_size == 2 * MIB


def test_a_flood_of_output_is_read_to_its_end_and_not_kept(shared_container: Shared) -> None:
    name = str(shared_container.empty().session_id)
    sandbox = shared_container.contained.get(name, stdout_max_bytes=1000, stderr_max_bytes=500)
    script = "head -c 50000000 /dev/zero & head -c 50000000 /dev/zero >&2; wait; exit 5"
    result = sandbox.run(["sh", "-c", script], timeout_seconds=100)
    assert (result.exit_code, len(result.stdout), len(result.stderr)) == (5, 1000, 500)
    assert result.metadata["stdout_truncated"]
    assert result.metadata["stderr_truncated"]


# Staying forever


@requirement("CT-8")
@pytest.mark.parametrize(
    "code",
    [
        "import signal, time\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\nprint('on', flush=True)\ntime.sleep(1000)",
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n"
        "    while True:\n        open('log', 'a').write('x')\nprint('on', flush=True)\ntime.sleep(1000)",
        "import os, signal\nif os.fork(): print('on', flush=True)\nelse: os.setsid()\n"
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "import ctypes, threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\n"
        "print('on', flush=True)\nctypes.CDLL(None).syscall(60, 0)",
        "import os, time\ntry:\n    while os.fork(): pass\nexcept OSError: print('on', flush=True)\n"
        "time.sleep(1000)",
    ],
    ids=[
        "ignores signals",
        "in a session of its own",
        "stopped",
        "only a thread is left",
        "no room for another",
    ],
)
def test_when_time_is_up_everything_that_was_started_ends(shared_container: Shared, code: str) -> None:
    contained, sandbox = shared_container.contained, shared_container.empty()
    result = sandbox.execute(code, timeout_seconds=1)
    assert (result.trap_reason, result.timed_out, result.stdout) == (TrapReason.TIMEOUT, True, "on\n")
    assert is_calm(contained, sandbox)
    assert said(sandbox.run(["echo", "again"])) == "again\n"


class SlowDisk:
    """Lets a second pass with every directory that is read, by the clock of this process."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.is_slow = True
        self.read = 0
        """How many were."""
        self._scandir = os.scandir
        patch.setattr(os, "scandir", self._scan)
        monotonic = time.monotonic
        patch.setattr(time, "monotonic", lambda: monotonic() + self.read)

    def _scan(self, directory: int) -> object:
        self.read += self.is_slow
        return self._scandir(directory)


def test_what_is_looked_at_before_a_program_begins_belongs_to_its_time(
    contained: Contained, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = contained.new()
    said(sandbox.run(["true"]))
    top = contained.files(sandbox)
    for number in range(100):
        (top / str(number)).mkdir()
    disk = SlowDisk(monkeypatch)
    result = sandbox.run(["touch", "begun"], timeout_seconds=20)
    assert result.trap_reason is TrapReason.TIMEOUT
    assert not (top / "begun").exists()
    assert disk.read < 30


def test_what_is_looked_at_after_a_program_has_ended_belongs_to_its_time(
    contained: Contained, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not seen by then is not told; the next one counts everything."""
    sandbox = contained.new()
    disk, run = SlowDisk(monkeypatch), ContainerRun.run
    disk.is_slow = False

    def slow_afterwards(self: ContainerRun, timeout_seconds: float) -> RunOutcome:
        ending = run(self, timeout_seconds)
        disk.is_slow = True
        return ending

    monkeypatch.setattr(ContainerRun, "run", slow_afterwards)
    script = "for i in $(seq 100); do mkdir $i; echo x >$i/f; done; echo made"
    result = sandbox.run(["sh", "-c", script], timeout_seconds=20)
    assert said(result) == "made\n"
    assert disk.read < 30
    assert result.metadata["changes_complete"] is False
    with contained.open(sandbox) as workspace:
        assert workspace.usage() == Usage(disk_bytes=200, entries=200)


def test_temporary_files_outlive_a_timeout(shared_container: Shared) -> None:
    """Everything is ended, and the container is not."""
    sandbox = shared_container.empty()
    result = sandbox.run(["sh", "-c", "echo x >/tmp/kept; sleep 1000 & sleep 1000"], timeout_seconds=0.5)
    assert result.trap_reason is TrapReason.TIMEOUT
    assert said(sandbox.run(["cat", "/tmp/kept"])) == "x\n"


def test_a_flood_on_both_streams_ends_without_a_restart(shared_container: Shared) -> None:
    """The engine does little else for a container while nobody takes what comes out of it."""
    sandbox = shared_container.empty()
    said(sandbox.run(["sh", "-c", "echo x >/tmp/kept"]))
    for _ in range(3):
        result = sandbox.run(["sh", "-c", "yes & yes >&2 & yes & yes >&2"], timeout_seconds=1)
        assert result.trap_reason is TrapReason.TIMEOUT
    assert said(sandbox.run(["cat", "/tmp/kept"])) == "x\n"


def test_a_daemon_that_is_left_behind_ends_with_its_command(shared_container: Shared) -> None:
    contained, sandbox = shared_container.contained, shared_container.empty()
    code = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.closerange(0, 3)\n"
        "    if os.fork(): os._exit(0)\n    while True:\n        open('log', 'a').write('x')\n"
        "while not os.path.exists('log'): time.sleep(0.01)\nprint('left')"
    )
    result = sandbox.execute(code)
    assert (result.stdout, result.exit_code, result.files_created) == ("left\n", 0, ["log"])
    assert is_calm(contained, sandbox)


def test_one_that_holds_the_output_open_does_not_hold_the_call(shared_container: Shared) -> None:
    contained, sandbox = shared_container.contained, shared_container.empty()
    result = sandbox.run(["sh", "-c", "echo out; sleep 1000 & exit 4"])
    assert (result.stdout, result.exit_code) == ("out\n", 4)
    assert is_calm(contained, sandbox)


def test_one_that_closes_its_output_still_has_to_end(shared_container: Shared) -> None:
    contained, sandbox = shared_container.contained, shared_container.empty()
    result = sandbox.run(["sh", "-c", "exec >&- 2>&-; sleep 0.1; exit 6"])
    assert result.exit_code == 6
    result = sandbox.run(["sh", "-c", "exec >&- 2>&-; sleep 1000"], timeout_seconds=0.5)
    assert result.trap_reason is TrapReason.TIMEOUT
    assert is_calm(contained, sandbox)


def test_cancelling_ends_everything(shared_container: Shared) -> None:
    contained, sandbox = shared_container.contained, shared_container.empty()
    begun = threading.Event()
    results = []
    script = f"sh -c '{WRITER}' & echo on; wait"
    thread = threading.Thread(
        target=lambda: results.append(
            sandbox.run(["sh", "-c", script], on_output=lambda name, data: begun.set())
        )
    )
    thread.start()
    begun.wait()
    assert sandbox.cancel() == 1
    thread.join()
    assert (results[0].trap_reason, results[0].stdout) == (TrapReason.CANCELLED, "on\n")
    assert is_calm(contained, sandbox)


@pytest.mark.parametrize("is_left", [False, True], ids=["its own time", "left behind"])
def test_one_that_kills_whoever_comes_to_end_it_ends_with_the_container(
    shared_container: Shared, is_left: bool
) -> None:
    """It would kill what asks the kernel to end all of its user before that is asked."""
    contained, sandbox = shared_container.contained, shared_container.empty()
    code = (
        "import os, signal, time\n"
        f"if {is_left} and os.fork():\n    time.sleep(1000)\n"
        "while True:\n    try: os.kill(-1, signal.SIGKILL)\n    except OSError: pass"
    )
    assert not sandbox.execute(code, timeout_seconds=1).success
    assert is_calm(contained, sandbox)
    assert said(sandbox.run(["echo", "again"])) == "again\n"


def test_one_that_ends_all_it_can_ends_only_its_own_call(shared_container: Shared) -> None:
    sandbox = shared_container.empty()
    assert not sandbox.run(["sh", "-c", "kill -9 -1; kill -9 1; sleep 0.1; kill -9 $$"]).success
    assert said(sandbox.run(["echo", "again"])) == "again\n"


def test_what_keeps_a_container_running_is_out_of_reach(shared_container: Shared) -> None:
    """A program that could stop or replace it could take its place, and outlive its run there."""
    code = (
        "import ctypes, os, resource\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def seize(pid):\n"
        "    if libc.ptrace(0x4206, pid, None, None): raise OSError(ctypes.get_errno(), '')\n"
        "acts = (lambda pid: os.kill(pid, 9), seize,\n"
        "    lambda pid: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)))\n"
        "for pid in sorted(int(name) for name in os.listdir('/proc') if name.isdigit()):\n"
        "    for act in acts if pid != os.getpid() else ():\n"
        "        try: act(pid); print('done to', pid)\n"
        "        except OSError as error: print(error.errno)"
    )
    assert said(shared_container.empty().execute(code)).split() == ["1"] * 6


def test_calm_is_asked_by_whose_processes_are_there_not_by_how_many(make: Make) -> None:
    container = make(command=("sleep", "1000"))
    stream = container.exec(["sh", "-c", "echo on; exec sleep 1000"])
    assert stream.receive(time.monotonic() + 60) is not None
    for users in (users_listed, users_inside):
        assert users(container, container.state()) == ["65533", "65532"]
    assert not kill_module.is_idle(container)
    kill_module.kill_all(container)
    assert kill_module.is_idle(container)
    for users in (users_listed, users_inside):
        assert users(container, container.state()) == ["65533"]
    stream.close()


def test_a_container_that_is_killed_meanwhile_is_told_and_started_again(contained: Contained) -> None:
    sandbox = contained.new()
    said(sandbox.run(["true"]))

    def kill(name: str, data: bytes) -> None:
        contained.container(sandbox).kill()

    result = sandbox.run(["sh", "-c", "echo on; sleep 1000"], on_output=kill)
    assert result.trap_reason is TrapReason.ENGINE
    assert "its container stopped" in result.stderr
    assert said(sandbox.run(["echo", "again"])) == "again\n"
    result = sandbox.run(
        ["sh", "-c", "echo on; sleep 1000"],
        on_output=lambda name, data: contained.container(sandbox).remove(),
    )
    assert result.trap_reason is TrapReason.ENGINE
    assert said(sandbox.run(["echo", "again"])) == "again\n"


def test_one_that_a_killed_process_left_is_swept(contained: Contained) -> None:
    sandbox = contained.new("left")
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(contained.root), contained.address, str(contained.settings.image)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.stdout is not None
    with child, child.stdout:
        assert child.stdout.readline() == b"on\n"
        locks = contained.root / ".carrel" / "containers"
        with Engine.connect(contained.address) as engine:
            keeper = Containers(engine, locks)
            assert keeper.sweep() == []
            child.send_signal(signal.SIGKILL)
            child.wait()
            assert keeper.known() == ["left"]
            assert keeper.sweep() == ["left"]
            assert keeper.known() == []
    size = (contained.files(sandbox) / "log").stat().st_size
    with contained.open(sandbox) as workspace:
        assert workspace.usage().disk_bytes == size > 0
    assert said(sandbox.run(["cat", "log"])) == "x\n" * (size // 2)


def test_what_a_killed_process_left_running_ends_before_the_next_call(contained: Contained) -> None:
    sandbox = contained.new("left")
    said(sandbox.run(["true"]))
    kill_while_it_runs(contained)
    assert "log" not in said(sandbox.run(["sh", "-c", COMMANDS]))


def test_what_a_killed_process_left_running_ends_before_its_files_are_counted(contained: Contained) -> None:
    sandbox = contained.new("left")
    said(sandbox.run(["true"]))
    with contained.open(sandbox) as workspace:
        kill_while_it_runs(contained)
        used = workspace.usage().disk_bytes
        assert is_calm(contained, sandbox)
        assert used == (contained.files(sandbox) / "log").stat().st_size > 0


def test_while_the_engine_is_away_what_may_still_run_is_counted_again_and_again(
    contained: Contained, tmp_path: Path
) -> None:
    sandbox = contained.new("left")
    said(sandbox.run(["true"]))
    kill_while_it_runs(contained)
    away = ContainerSettings(address=f"unix://{tmp_path}/away")
    log = contained.files(sandbox) / "log"
    with WorkspaceManager(contained.root, containers=away) as manager, manager.open("left") as workspace:
        before = workspace.usage().disk_bytes
        while log.stat().st_size == before:
            pass
        assert workspace.usage().disk_bytes > before
    with contained.open(sandbox) as workspace:
        assert workspace.usage().disk_bytes == log.stat().st_size
    assert is_calm(contained, sandbox)


def kill_while_it_runs(contained: Contained) -> None:
    """Let another process run a program in the session `left`, and kill that process."""
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(contained.root), contained.address, str(contained.settings.image)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.stdout is not None
    with child, child.stdout:
        assert child.stdout.readline() == b"on\n"
        child.send_signal(signal.SIGKILL)


_CHILD = f"""
import sys
from pathlib import Path
from carrel.config.settings import ContainerSettings
from carrel.runtimes.container.runtime import ContainerRuntime
from carrel.sandbox.container import ContainerSandbox
from carrel.sandbox.workspace_source import SessionSource
from carrel.sessions.manager import WorkspaceManager
root, address, image = sys.argv[1:]
settings = ContainerSettings(image=image, address=address, memory_bytes={128 * MIB})
runtime = ContainerRuntime(settings, state=lambda: Path(root))
sandbox = ContainerSandbox(SessionSource(WorkspaceManager(Path(root)), "left"), engine=runtime)
def tell(name, data):
    print("on", flush=True)
sandbox.run(["sh", "-c", "echo x >>log; echo on; {WRITER}"], on_output=tell)
"""


# Getting out


def test_links_that_a_program_makes_lead_nobody_out(shared_container: Shared, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("host")
    contained, sandbox = shared_container.contained, shared_container.empty()
    script = (
        f"ln -s /etc/passwd abs; ln -s ../../../../../../etc/passwd up; ln -s {secret} secret; ln -s / root;"
        " ln -s ../.carrel state; mkfifo pipe; ln -s /proc/self/root magic"
    )
    said(sandbox.run(["sh", "-c", script]))
    with contained.open(sandbox) as workspace:
        for path in ("abs", "up", "secret", "root/etc/passwd", "state/registry.db", "magic/etc/passwd"):
            with pytest.raises(CarrelError) as raised:
                workspace.read(path)
            assert raised.value.code == "path.escape"
            with pytest.raises(CarrelError):
                workspace.write(path, "x")
        with pytest.raises(CarrelError):
            workspace.read("pipe")
    assert sandbox.run(["cat", "secret"]).exit_code == 1
    assert secret.read_text() == "host"


def test_a_program_is_locked_in(shared_container: Shared) -> None:
    sandbox = shared_container.empty()
    status = said(sandbox.run(["cat", "/proc/self/status"]))
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert {fields[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    assert "0" not in fields["Uid"].split()
    code = (
        "for name in ('/x', '/etc/x', '/usr/x'):\n"
        "    try: open(name, 'w')\n    except OSError as error: print(error.errno)"
    )
    assert said(sandbox.execute(code)).split() == ["30"] * 3
    assert "PermissionError" in sandbox.execute("import os; os.setuid(0)").stderr
    assert sandbox.run(["sh", "-c", "mount -t tmpfs x /workspace"]).exit_code != 0
    assert sandbox.run(["sh", "-c", "mknod /tmp/sda b 8 0"]).exit_code != 0


def test_an_image_declares_no_volume_and_no_check_of_its_own(
    engine: Engine, make: Make, tmp_path: Path
) -> None:
    declared = ["VOLUME /data /workspace", "HEALTHCHECK --interval=1s CMD touch /data/checked"]
    image = engine.api.commit(make().id, changes=declared)["Id"]
    try:
        container = make(image=image, tmp_bytes=MIB, mount=Bind(source=str(tmp_path)))
        found = engine.api.inspect_container(container.id)
        assert [mount["Type"] for mount in found["Mounts"]] == ["bind"]
        assert found["State"].get("Health") is None
        script = "head -c 2000000 /dev/zero >/data/f; stat -c %s /data/f"
        assert run(container, "sh", "-c", script)[1] == b"1048576\n"
        container.remove()
    finally:
        engine.api.remove_image(image, force=True)


def test_there_is_no_network(shared_container: Shared) -> None:
    sandbox = shared_container.empty()
    assert said(sandbox.run(["ls", "/sys/class/net"])) == "lo\n"
    code = "import socket; socket.create_connection(('1.1.1.1', 53), 2)"
    assert "Network is unreachable" in sandbox.execute(code).stderr


def test_a_program_sees_no_other_session_and_no_path_of_the_host(contained: Contained) -> None:
    first, second = contained.new("first"), contained.new("second")
    said(first.run(["sh", "-c", "echo mine >f; echo mine >/tmp/f"]))
    assert said(second.run(["ls", "-A", "/workspace", "/tmp"])) == "/tmp:\n\n/workspace:\n"
    seen = said(second.run(["sh", "-c", "env; ls /workspace/.. ; ls -A ../workspace"]))
    assert str(contained.root) not in seen
    assert ".carrel" not in seen


def test_a_program_that_shuts_its_directories_hides_nothing(contained: Contained) -> None:
    sandbox = contained.new(limits=Limits(disk_bytes=5 * MIB))
    script = "mkdir -p d/e; head -c 100000 /dev/zero >d/e/f; chmod 000 d/e/f d/e d"
    result = sandbox.run(["sh", "-c", script])
    assert result.files_created == ["d/e/f"]
    with contained.open(sandbox) as workspace:
        assert workspace.usage().disk_bytes == 100000
        workspace.remove("d", recursive=True)
        assert workspace.usage().entries == 0


def test_a_tree_deeper_than_any_path_is_counted_and_goes(contained: Contained) -> None:
    sandbox = contained.new(limits=Limits(entries=100_000))
    down = "import os\nfor _ in range(500):\n    os.mkdir('d' * 50); os.chdir('d' * 50)\n"
    code = f"{down}open('f', 'w').write('x')"
    result = sandbox.execute(code)
    said(result)
    assert result.metadata["changes_complete"] is False
    with contained.open(sandbox) as workspace:
        assert workspace.usage().entries == 501
        workspace.remove("d" * 50, recursive=True)
        assert workspace.usage().entries == 0


def test_files_of_the_gate_are_given_to_the_program_and_back(shared_container: Shared) -> None:
    contained, sandbox = shared_container.contained, shared_container.empty()
    with contained.open(sandbox) as workspace:
        workspace.write("d/f", "gate")
        said(sandbox.run(["sh", "-c", "echo more >>d/f; chmod 600 d/f; chmod 700 d"]))
        assert workspace.read_text("d/f") == "gatemore\n"
        workspace.write("d/f", "again")
        workspace.append("d/f", b"!")
    assert said(sandbox.run(["cat", "d/f"])) == "again!"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_with_another_name_outside_stays_the_hosts(shared_container: Shared, tmp_path: Path) -> None:
    contained, sandbox = shared_container.contained, shared_container.empty()
    secret = tmp_path / "secret"
    secret.write_text("host")
    os.link(secret, contained.files(sandbox) / "linked")
    (contained.files(sandbox) / "link").symlink_to(secret)
    result = sandbox.run(["sh", "-c", "echo x >>linked"])
    assert result.exit_code != 0
    assert result.metadata["files_kept_back"] == ["linked"]
    assert (secret.read_text(), secret.stat().st_uid) == ("host", 0)


def test_the_engine_of_another_host_is_noticed(contained: Contained, tmp_path: Path) -> None:
    """A directory of the same path but another one, which is what another host would have."""
    sandbox = contained.new("moved")
    elsewhere = contained.root / "moved"
    os.rename(elsewhere, tmp_path / "real")
    elsewhere.mkdir()
    from carrel.sandbox.workspace_source import OpenWorkspaceSource
    from carrel.workspace.workspace import Workspace

    del sandbox
    with Workspace.open(tmp_path / "real") as workspace:
        opened = ContainerSandbox(OpenWorkspaceSource(workspace), engine=contained.runtime)
        # The gate goes on with the directory that it holds, and the engine goes by the name.
        os.rename(tmp_path / "real", tmp_path / "away")
        (tmp_path / "real").mkdir()
        workspace.host_path = lambda path: tmp_path / "real"  # type: ignore[method-assign]
        with pytest.raises(CarrelError, match="another") as raised:
            opened.run(["true"])
    assert raised.value.code == "container.elsewhere"

"""Workers are bounded, fair to tenants, kept for a while, and gone when the service is."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from carrel.errors import StoppingError
from carrel.sandbox.workers.pool import IDLE_SECONDS, ShellWorkers
from carrel.sandbox.workers.process import WorkerProcess
from carrel.shell.budget import Budget, Meter, Stopped
from carrel.values import MIB
from tests.service.conftest import Monotonic

TOP = str(Path(__file__).resolve().parents[3])


@pytest.fixture
def clock() -> Monotonic:
    return Monotonic()


@pytest.fixture
def pool(clock: Monotonic) -> Iterator[ShellWorkers]:
    made = ShellWorkers(4, 64 * MIB, clock=clock)
    yield made
    made.close()


def meter() -> Meter:
    return Meter(Budget(seconds=0.2))


def test_a_tenant_has_half_of_them_and_its_last_worker_is_lent_again(pool: ShellWorkers) -> None:
    with pool.lease("a", meter()) as first, pool.lease("a", meter()) as second:
        assert first.pid != second.pid
        with pytest.raises(Stopped) as stopped, pool.lease("a", meter()):
            pass
        assert stopped.value.code == "limit.time"
        with pool.lease("b", meter()) as other:
            assert other.tenant == "b"
    with pool.lease("a", meter()) as again:
        assert again is first


def test_an_idle_worker_makes_room_and_a_busy_one_does_not(pool: ShellWorkers) -> None:
    with ExitStack() as stack:
        busy = [stack.enter_context(pool.lease(tenant, meter())) for tenant in "ab"]
        for tenant in "cd":
            with pool.lease(tenant, meter()):
                pass
        assert sorted(pool.pids()) == ["a", "b", "c", "d"]
        with pool.lease("e", meter()):
            assert sorted(pool.pids()) == ["a", "b", "d", "e"]
            with pool.lease("f", meter()):
                with pytest.raises(Stopped), pool.lease("g", meter()):
                    pass
                assert all(each.is_alive() for each in busy)


def test_a_worker_that_is_idle_for_long_is_ended(pool: ShellWorkers, clock: Monotonic) -> None:
    with pool.lease("a", meter()) as worker:
        pass
    pool.end_idle()
    assert worker.is_alive()
    clock.now += IDLE_SECONDS + 1
    pool.end_idle()
    assert not pool.pids()
    assert not _exists(worker.pid)


def test_one_that_was_killed_meanwhile_is_replaced(pool: ShellWorkers) -> None:
    with pool.lease("a", meter()) as worker:
        pass
    os.kill(worker.pid, signal.SIGKILL)
    _gone(worker.pid)
    with pool.lease("a", meter()) as other:
        assert other.is_alive()


def test_all_end_with_the_pool(pool: ShellWorkers) -> None:
    with pool.lease("a", meter()) as busy, pool.lease("b", meter()) as idle:
        pool.close()
        assert not _exists(busy.pid)
        assert not _exists(idle.pid)
    with pytest.raises(StoppingError), pool.lease("a", meter()):
        pass


def test_a_fork_that_comes_after_the_close_leaves_no_process(
    pool: ShellWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork = pool._zygote.fork

    def late(tenant: str) -> WorkerProcess:
        pool.close()
        return fork(tenant)

    monkeypatch.setattr(pool._zygote, "fork", late)
    with pool.lease("a", meter()) as worker:
        assert not worker.is_alive()
    assert pool._zygote._process is None


CHILD = """
import sys
from carrel.sandbox.shell import Shell
from carrel.sandbox.workers.pool import ShellWorkers
from carrel.sandbox.workers.runner import SessionRunner
from carrel.sessions.manager import WorkspaceManager

workers = ShellWorkers(4, 2**26, preload=["tests.sandbox.workers.unmetered"])
manager = WorkspaceManager(sys.argv[1])
with manager.create("s") as workspace:
    shell = Shell(workspace, runner=SessionRunner(workers, manager, "s", "host"))
    shell.run("hang", on_output=lambda *_: print(*workers.pids()[sys.argv[1]], flush=True))
"""


def test_a_service_that_is_killed_leaves_no_worker_behind(tmp_path: Path) -> None:
    words = [sys.executable, "-c", CHILD, str(tmp_path)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, TOP])}
    ) as child:
        assert child.stdout is not None
        worker = int(child.stdout.readline())
        zygote = int(Path(f"/proc/{worker}/stat").read_text().split()[3])
        pids = [worker, zygote]
        handles = [os.pidfd_open(pid) for pid in pids]
        child.kill()
    for handle in handles:
        _ended(handle)


def _exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _gone(pid: int) -> None:
    _ended(os.pidfd_open(pid))


def _ended(handle: int) -> None:
    """Wait until the process of *handle* has ended."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    try:
        assert poll.poll(30_000)
    finally:
        # One that goes on for ever would do so after the test.
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.close(handle)

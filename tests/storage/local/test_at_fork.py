"""What must be closed before a fork: also what somebody is about to open while it goes on."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

from carrel.sessions.manager import WorkspaceManager
from carrel.storage.local.at_fork import ForkGuard
from tests.sessions.children import in_process, paused


class Closed:
    """Notes how it is treated."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def before_fork(self) -> bool:
        self.calls.append("before")
        return True

    def after_fork_in_parent(self) -> None:
        self.calls.append("parent")

    def after_fork_in_child(self) -> None:
        self.calls.append("child")


class Crowded(Closed):
    """Lets another thread come with something new while a fork waits for it."""

    def __init__(self, forks: ForkGuard) -> None:
        super().__init__()
        self._forks = forks
        self.late = Closed()
        self.thread = Thread(target=forks.watch, args=(self.late,), daemon=True)
        self.was_late_kept_out = False

    def before_fork(self) -> bool:
        self._forks.watch(self)  # a call that runs meanwhile may open anew what is watched already
        self.thread.start()
        self.thread.join(0.1)
        self.was_late_kept_out = self.thread.is_alive()
        return super().before_fork()


def test_what_is_new_waits_until_a_fork_is_over() -> None:
    forks = ForkGuard()
    one = Crowded(forks)
    forks.watch(one)
    child = os.fork()
    if not child:
        os._exit(one.calls != ["before", "parent", "child"])
    one.thread.join()
    assert one.was_late_kept_out
    assert one.calls == ["before", "parent"]
    assert os.waitpid(child, 0)[1] == 0


def test_a_forked_child_keeps_no_session_in_use(tmp_path: Path) -> None:
    manager = WorkspaceManager(tmp_path / "sessions")
    workspace = manager.create("s1")
    with paused(lambda stop: stop()):
        assert manager.status("s1").in_use
        workspace.close()
        assert not manager.status("s1").in_use


def test_a_forked_child_neither_ends_nor_renews_the_lease_of_its_parent(tmp_path: Path) -> None:
    manager = WorkspaceManager(tmp_path / "sessions")
    workspace = manager.create("s1")
    lease = next((tmp_path / "sessions").rglob("lease"))
    os.utime(lease, ns=(5, 5))
    in_process(workspace.close)
    assert lease.stat().st_mtime_ns == 5
    assert manager.status("s1").in_use
    workspace.close()
    assert lease.stat().st_mtime_ns > 5

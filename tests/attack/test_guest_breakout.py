"""Code that broke out of the engine finds itself in a worker process that can do next to nothing."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carrel.runtimes.wasm.worker.lockdown import has_seccomp, landlock_version
from tests.attack import broken_out
from tests.attack.privilege import IS_ROOT, NOBODY, USERS, User, missing

pytestmark = [pytest.mark.attack, pytest.mark.timeout(60)]

BY_LANDLOCK = {"read", "write", "list", "make", "remove"}
"""Held by Landlock alone: a worker makes these calls on files of its own."""


class Victim:
    """What somebody who broke out would like to reach: a file, a socket and a process of the same user."""

    def __init__(self, user: User) -> None:
        self._base = Path(tempfile.mkdtemp())
        self._base.chmod(0o755)
        self._user = user
        self.secret, self.address = self._base / "outside" / "secret", self._base / "outside" / "socket"
        self.directory, self.own = self._base / "guest", self._base / "guest" / "own"
        for path in (self.secret.parent, self.directory, self.own):
            path.mkdir()
        self.secret.write_text("secret")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(str(self.address))
        owner = NOBODY if user is User.NOBODY and IS_ROOT else None
        if owner is not None:
            for path in (self.secret, self.address, self.secret.parent, self.directory, self.own):
                os.chown(path, owner, owner)
        self.process = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, cwd="/", user=owner, group=owner)

    def seen(self) -> tuple[object, ...]:
        """All that an attack could have changed."""
        found = self.secret.stat()
        kept = (found.st_mode, found.st_uid, found.st_mtime, found.st_nlink, os.listxattr(self.secret))
        return self.secret.read_text(), sorted(os.listdir(self.secret.parent)), kept, self.process.poll()

    def attacked(self, way: str = "all") -> subprocess.CompletedProcess[bytes]:
        """Let somebody break out of an engine, in a worker process of its own."""
        arguments = [way, self._user, self.secret, self.address, self.directory, self.process.pid]
        return subprocess.run(
            [sys.executable, broken_out.__file__, *map(str, arguments)],
            capture_output=True,
            cwd="/",
            env={"TMPDIR": str(self.own), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            check=False,
        )

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.socket.close()
        shutil.rmtree(self._base)


@pytest.fixture(scope="module", params=USERS)
def victim(request: pytest.FixtureRequest) -> Iterator[Victim]:
    made = Victim(request.param)
    yield made
    made.close()


@pytest.fixture(scope="module")
def told(victim: Victim) -> dict[str, Any]:  # Any: whatever JSON can say
    """What came of every attack."""
    before = victim.seen()
    done = victim.attacked()
    assert done.returncode == 0, done.stderr.decode()
    assert victim.seen() == before
    with pytest.raises(BlockingIOError):
        victim.socket.recv(1)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("name", broken_out.NAMES)
def test_every_attack_fails(told: dict[str, Any], name: str) -> None:
    if name in BY_LANDLOCK and not landlock_version():
        missing("Landlock")
    if name not in BY_LANDLOCK and not has_seccomp():
        missing("seccomp")
    assert told["tried"][name] in ("EPERM", "EACCES", "ENOSYS")


def test_every_call_that_is_not_in_the_table_is_refused(told: dict[str, Any]) -> None:
    if not has_seccomp():
        missing("seccomp")
    assert told["missed"] == []


def test_no_capability_is_left(told: dict[str, Any]) -> None:
    status = told["status"]
    sets = ["CapInh", "CapPrm", "CapEff", "CapAmb"]
    # Whoever has no capability cannot empty the bounding set, and needs not to.
    assert {name: int(status[name], 16) for name in sets} == dict.fromkeys(sets, 0)
    assert status["NoNewPrivs"] == "1"


def test_root_has_no_way_to_a_capability() -> None:
    if not IS_ROOT:
        missing("root")
    victim = Victim(User.ROOT)
    try:
        told = json.loads(victim.attacked().stdout)
    finally:
        victim.close()
    assert int(told["status"]["CapBnd"], 16) == 0


@pytest.mark.skipif(platform.machine() != "x86_64", reason="it has one way to make calls")
@pytest.mark.parametrize("way", ["x32", "i386"])
def test_the_calls_of_another_architecture_end_the_process(victim: Victim, way: str) -> None:
    if not has_seccomp():
        missing("seccomp")
    assert victim.attacked(way).returncode == -signal.SIGSYS

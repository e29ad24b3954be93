"""What a worker process gave up is refused to it, as far as this kernel can."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from carrel.runtimes.wasm.worker.lockdown import has_seccomp, landlock_version

SCRIPT = """
import json, os, socket, subprocess, sys
from pathlib import Path
from carrel.runtimes.wasm.worker.lockdown import lock_down

directory, own, secret = map(Path, sys.argv[1:])
os.symlink(secret, own / "link")
lock_down(directory, own)

def attempt(what):
    try:
        what()
    except OSError as error:
        return error.errno
    return None

print(json.dumps({
    "read": attempt(lambda: secret.read_text()),
    "list": attempt(lambda: os.listdir(secret.parent)),
    "write": attempt(lambda: secret.write_text("changed")),
    "make": attempt(lambda: secret.with_name("new").mkdir()),
    "through": attempt(lambda: (own / "link").read_text()),
    "signal": attempt(lambda: os.kill(os.getppid(), 0)),
    "program": attempt(lambda: subprocess.run(["/bin/true"])),
    "socket": attempt(lambda: socket.socket()),
    "udp": attempt(lambda: socket.socket(type=socket.SOCK_DGRAM)),
    "guest": attempt(lambda: (directory / "guest").read_text()),
    "own": attempt(lambda: (own / "file").write_text("mine")),
    "import": attempt(lambda: __import__("sqlite3")),
}))
"""
FILES = {"read": 13, "list": 13, "write": 13, "make": 13, "through": 13}
CALLS = {"program": 1, "socket": 1, "udp": 1}
FREE = ("guest", "own", "import")
SIGNALS_SINCE = 6


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int | None]:
    base = tmp_path_factory.mktemp("lockdown")
    for name in ("directory", "own", "outside"):
        (base / name).mkdir()
    (base / "directory" / "guest").write_text("compiled")
    secret = base / "outside" / "secret"
    secret.write_text("secret")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(base / "directory"), str(base / "own"), str(secret)],
        capture_output=True,
        check=True,
        cwd="/",
    )
    assert secret.read_text() == "secret"
    assert sorted(path.name for path in secret.parent.iterdir()) == ["secret"]
    answer: dict[str, int | None] = json.loads(done.stdout)
    return answer


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
@pytest.mark.parametrize("name", FILES)
def test_no_file_outside_can_be_had(outcomes: dict[str, int | None], name: str) -> None:
    assert outcomes[name] == FILES[name]


@pytest.mark.skipif(landlock_version() < SIGNALS_SINCE, reason="this kernel's Landlock knows no signals")
def test_no_other_process_can_be_signalled(outcomes: dict[str, int | None]) -> None:
    assert outcomes["signal"] == 1


@pytest.mark.skipif(not has_seccomp(), reason="this machine's system calls are not in the table")
@pytest.mark.parametrize("name", CALLS)
def test_no_socket_and_no_program(outcomes: dict[str, int | None], name: str) -> None:
    assert outcomes[name] == CALLS[name]


@pytest.mark.parametrize("name", FREE)
def test_what_a_worker_needs_is_left(outcomes: dict[str, int | None], name: str) -> None:
    assert outcomes[name] is None

"""Another process that has the lock of a session."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_HOLD = """
import fcntl, sys
with open(sys.argv[1], "rb+") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held(root: Path, session_id: str) -> Iterator[Callable[[], None]]:
    """Keep a session of the sessions directory *root* locked; until what this gives is called, or the end."""
    ledger = root / ".carrel" / "sessions" / session_id / "ledger"
    command = [sys.executable, "-c", _HOLD, str(ledger)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"

        def release() -> None:
            process.communicate()

        try:
            yield release
        finally:
            if process.poll() is None:
                release()

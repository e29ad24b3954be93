"""How long others wait while one caller does its worst.

    .venv/bin/python -m bench._isolation [--seconds SECONDS] [--files FILES]

One `carrel serve` and three of its callers. One loads it with recounts, touches, refused paths, listings and
large JSON bodies, in a session whose lock is held every other moment. Another tenant reads a small file and
lists its sessions. Somebody asks for `/healthz`, which should be answered within 250 ms. Nothing is asserted,
and on a machine that is busy with other things the times say little.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread

from carrel.service.keys import Keys, NewKey

PLACE = "/api/v1/sessions/s"
NESTED = b'{"a":[' + b"[]," * 4_000_000 + b"[]]}"
HELD_SECONDS = 2.0


def main() -> None:
    """Measure, and print a line for each kind of request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--files", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        root = Path(directory, "sessions")
        root.mkdir(mode=0o700)
        keys = Keys(root)
        bad, good = (keys.create(NewKey(name=name, role="developer"))[1] for name in ("bad", "good"))
        command = [sys.executable, "-m", "carrel", "serve", "--port", "0"]
        environ = {
            **os.environ,
            "CARREL_SESSIONS_DIR": str(root),
            "CARREL_SERVE_GRPC": "0",
            "CARREL_SERVE_SHUTDOWN_SECONDS": "1",
            "CARREL_SERVE_RATE_PER_MINUTE": "100000000",
        }
        with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as server:
            try:
                assert server.stderr is not None
                port = _port(server)
                Thread(target=server.stderr.read, daemon=True).start()
                _measure(port, root, bad, good, given.seconds, given.files)
            finally:
                server.terminate()


def _port(server: subprocess.Popen[str]) -> int:
    assert server.stderr is not None
    for line in server.stderr:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
            return int(found[1])
    raise SystemExit("the service did not start")


def _measure(port: int, root: Path, bad: str, good: str, seconds: float, files: int) -> None:
    for key in (bad, good):
        _asked(port, key, "PUT", PLACE)
        _asked(port, key, "PUT", f"{PLACE}/files/f", b"text")
    session = root / ".carrel" / "tenants" / "bad" / "s"
    for number in range(files):
        (session / f"{number}").touch()
    # In a process of its own, so that it does not keep those waiting who measure.
    load = get_context("spawn").Process(target=_load, args=(port, root, bad), daemon=True)
    load.start()
    time.sleep(3)
    try:
        _ask(port, good, seconds)
    finally:
        load.kill()


def _load(port: int, root: Path, bad: str) -> None:
    over = Event()
    loads: list[tuple[int, Callable[[], object]]] = [
        (60, lambda: _operation(port, bad, "recount", {})),
        (8, lambda: _operation(port, bad, "touch", {"path": "f"})),
        (8, lambda: _operation(port, bad, "stat", {"path": "../x"})),
        (8, lambda: _asked(port, bad, "GET", f"{PLACE}/files")),
        (
            2,
            lambda: _asked(port, bad, "POST", f"{PLACE}/operations/list", NESTED),
        ),
        (1, lambda: _hold(root / ".carrel" / "tenants" / "bad" / ".carrel" / "sessions" / "s" / "ledger")),
    ]
    for count, load in loads:
        for _ in range(count):
            Thread(target=_again, args=(over, load), daemon=True).start()
    over.wait()


def _ask(port: int, good: str, seconds: float) -> None:
    over = Event()
    kinds: dict[str, Callable[[], object]] = {
        "/healthz": lambda: _asked(port, None, "GET", "/healthz"),
        "another tenant reads a file": lambda: _asked(port, good, "GET", f"{PLACE}/files/f"),
        "another tenant lists its sessions": lambda: _asked(port, good, "GET", "/api/v1/sessions"),
    }
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    askers = [Thread(target=_timed, args=(over, kinds[name], taken[name])) for name in kinds]
    for asker in askers:
        asker.start()
    time.sleep(seconds)
    over.set()
    for asker in askers:
        asker.join()
    for name, times in taken.items():
        times.sort()
        middle, last = times[len(times) // 2], times[len(times) * 99 // 100]
        print(
            f"{name}: {len(times)} requests, median {middle * 1000:.0f} ms, "
            f"99 % within {last * 1000:.0f} ms, longest {times[-1] * 1000:.0f} ms"
        )


def _again(over: Event, load: Callable[[], object]) -> None:
    while not over.is_set():
        with suppress(OSError, HTTPException):
            load()


def _timed(over: Event, ask: Callable[[], object], times: list[float]) -> None:
    while not over.is_set():
        began = time.perf_counter()
        ask()
        times.append(time.perf_counter() - began)
        time.sleep(0.05)


def _operation(port: int, key: str, name: str, arguments: dict[str, str]) -> int:
    return _asked(port, key, "POST", f"{PLACE}/operations/{name}", json.dumps(arguments).encode())


def _asked(port: int, key: str | None, method: str, path: str, body: bytes | None = None) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request(method, path, body, {} if key is None else {"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def _hold(ledger: Path) -> None:
    with ledger.open("rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        time.sleep(HELD_SECONDS)
    time.sleep(HELD_SECONDS)


if __name__ == "__main__":
    main()

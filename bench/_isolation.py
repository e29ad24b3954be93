"""How long others wait while one caller does its worst.

    .venv/bin/python -m bench._isolation [--seconds SECONDS] [NAME ...]

For each attack of `_hostile.py` there is a fresh `carrel serve`. While one caller makes it, somebody asks for
`/healthz`, which should be answered within 250 ms, and another tenant reads a file of 4 KiB. The first line
is the same without an attack. Nothing is asserted, and on a machine that is busy with other things the times
say little: the load is printed with each line.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread

from bench._hostile import ATTACKS, SESSION, TENANT, Target, attack
from carrel.service.authentication.key_store import KeyStore, NewKey

SPAWN = get_context("spawn")
IDLE = "idle"
WARM_SECONDS = 2.0
PAUSE_SECONDS = 0.02
CONFIGURATION = {"CARREL_SERVE_SHUTDOWN_SECONDS": "1", "CARREL_SERVE_RATE_PER_MINUTE": "100000000"}


def main() -> None:
    """Measure, and print a line for each attack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(ATTACKS)}")
    given = parser.parse_args()
    print(f"{'':22} {'/healthz, ms':>31}   {'read 4 KiB, ms':>31}  {'memory':>8}  load")
    print(f"{'attack':22}" + f" {'count':>6} {'median':>7} {'p99':>7} {'longest':>8}  " * 2)
    for name in given.names or (IDLE, *ATTACKS):
        _measure(name, given.seconds)


def _measure(name: str, seconds: float) -> None:
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory,
        _served(Path(directory)) as (
            target,
            good,
            process,
        ),
    ):
        # In a process of its own, so that it does not keep those waiting who measure.
        begun = SPAWN.Event()
        hostile = SPAWN.Process(target=attack, args=(name, target, begun), daemon=True)
        if name != IDLE:
            hostile.start()
            begun.wait()
        time.sleep(WARM_SECONDS)
        try:
            health, read = _times(target, good, seconds)
        finally:
            if name != IDLE:
                hostile.kill()
                hostile.join()
        peak = _memory(process, "VmHWM")
        print(
            f"{name:22}{_line(health)} {_line(read)}  {peak >> 20:4} MiB  {os.getloadavg()[0]:.1f}",
            flush=True,
        )


@contextmanager
def _served(directory: Path) -> Iterator[tuple[Target, str, int]]:
    root = directory / "sessions"
    root.mkdir(mode=0o700)
    keys = KeyStore(root)
    bad = tuple(
        keys.create(NewKey(name=f"{TENANT}{n}", role="developer", tenant=TENANT))[1] for n in range(2)
    )
    good = keys.create(NewKey(name="good", role="developer"))[1]
    keys.close()
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "carrel",
        "--sessions-dir",
        root,
        "serve",
        "--port",
        "0",
        "--grpc-port",
        "0",
    ]
    log = directory / "log"
    with (
        log.open("w") as told,
        subprocess.Popen(command, env=os.environ | CONFIGURATION, stderr=told) as server,
    ):
        try:
            port, grpc_port = _ports(server, log)
            target = Target(port, grpc_port, root, bad)
            for each in (target, Target(port, grpc_port, root, (good,))):
                each.ask("PUT", SESSION)
                each.ask("PUT", f"{SESSION}/files/f", b"0123456789abcdef" * 256)
            yield target, good, server.pid
        finally:
            server.kill()


def _ports(server: subprocess.Popen[bytes], log: Path) -> tuple[int, int]:
    while server.poll() is None:
        if found := re.search(r"serving http://[^ ]+:(\d+) grpc [^ ]+:(\d+)\n", log.read_text("utf-8")):
            return int(found[1]), int(found[2])
        time.sleep(0.05)
    raise SystemExit(f"the service did not start: {log.read_text('utf-8')}")


def _times(target: Target, good: str, seconds: float) -> tuple[list[float], list[float]]:
    over = Event()
    found: tuple[list[float], list[float]] = [], []
    asked: list[tuple[str, dict[str, str]]] = [
        ("/healthz", {}),
        (f"{SESSION}/files/f", {"Authorization": f"Bearer {good}"}),
    ]
    askers = [
        Thread(target=_ask, args=(over, target.port, path, headers, times))
        for (path, headers), times in zip(asked, found, strict=True)
    ]
    for asker in askers:
        asker.start()
    time.sleep(seconds)
    over.set()
    for asker in askers:
        asker.join()
    return found


def _ask(over: Event, port: int, path: str, headers: dict[str, str], times: list[float]) -> None:
    while not over.is_set():
        began = time.perf_counter()
        connection = HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                print(f"{path}: {answer.status}", file=sys.stderr)
        except (OSError, HTTPException) as error:
            print(f"{path}: {error!r}", file=sys.stderr)
        finally:
            connection.close()
        times.append(time.perf_counter() - began)
        time.sleep(PAUSE_SECONDS)


def _line(times: list[float]) -> str:
    ordered = sorted(each * 1000 for each in times)
    middle, last = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    return f" {len(ordered):6} {middle:7.1f} {last:7.1f} {ordered[-1]:8.1f}  "


def _memory(process: int, name: str = "VmRSS") -> int:
    """Memory of the service alone, in bytes."""
    lines = Path(f"/proc/{process}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    main()

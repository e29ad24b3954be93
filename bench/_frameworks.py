"""Requests per second and CPU per request: our own request paths compared with Starlette and the MCP SDK.

    .venv/bin/python -m bench._frameworks [--rounds ROUNDS] [--requests REQUESTS]

Both HTTP applications run on the same uvicorn, in a process of their own, on the same sessions, and do the
same: request id, admission, authentication, rate limit, the operation, metrics and a line of the access log.
The Starlette one uses its router, `Request`, `Response` and a middleware. Over standard streams, `carrel mcp`
answers tool calls by its fast path, or by the SDK when traces are configured. The ways take turns, and the
ratios are those of the medians. docs/adr/0020 has the results.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

from bench._load import Load
from bench._measure import order
from bench._stdio import Stdio
from bench._trees import TEXT
from carrel.fronts import event_loop

SESSION = "bench"
OWN, STARLETTE, FAST_PATH, SDK = "own", "starlette", "fast path", "sdk"
PATH = f"/api/v1/sessions/{SESSION}/files"
CONNECTIONS = 8
TICKS = os.sysconf("SC_CLK_TCK")

Measure = Callable[[int], float]
"""Makes that many requests and returns the seconds they took."""


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=3000, help="in each round of each way")
    parser.add_argument("--serve", choices=[OWN, STARLETTE], help=argparse.SUPPRESS)
    parser.add_argument("--dir", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        event_loop.run(_serve(given.serve, given.dir))
        return
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        sessions = Path(directory) / "sessions"
        _prepare(sessions)
        rows = _http(stack, sessions) | _mcp(stack, sessions)
        print(f"{'':12} {'way':10} {'requests/s':>11} {'CPU µs':>8} {'ratio':>6} {'CPU':>6}")
        for name, ways in rows.items():
            _race(name, ways, given.rounds, given.requests)


def _race(name: str, ways: Mapping[str, tuple[int, Measure]], rounds: int, requests: int) -> None:
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    cpu: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(rounds + 1):
        for way in order(list(ways), turn):
            process, measure = ways[way]
            before = _cpu_seconds(process)
            elapsed = measure(requests)
            if turn:
                seconds[way].append(elapsed / requests)
                cpu[way].append((_cpu_seconds(process) - before) / requests)
    ours = next(iter(ways))
    for way in ways:
        time, used = median(seconds[way]), median(cpu[way])
        time_ratio, cpu_ratio = time / median(seconds[ours]), used / median(cpu[ours])
        print(
            f"{name:12} {way:10} {1 / time:11.0f} {used * 1e6:8.0f} {time_ratio:6.2f} {cpu_ratio:6.2f}",
            flush=True,
        )


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _prepare(sessions: Path) -> None:
    from carrel.sessions.manager import WorkspaceManager

    with WorkspaceManager(sessions) as manager, manager.create(SESSION) as workspace:
        workspace.write("small.txt", TEXT.encode())


# HTTP


def _http(stack: ExitStack, sessions: Path) -> dict[str, dict[str, tuple[int, Measure]]]:
    head = f"HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(TEXT)}\r\n\r\n"
    requests = {
        "HTTP read": f"GET {PATH}/small.txt HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode(),
        "HTTP write": f"PUT {PATH}/w.txt {head}{TEXT}".encode(),
    }
    rows: dict[str, dict[str, tuple[int, Measure]]] = {name: {} for name in requests}
    for way in (OWN, STARLETTE):
        server = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "bench._frameworks", "--serve", way, "--dir", sessions],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        )
        stack.callback(server.kill)
        assert server.stdout is not None
        port = int(server.stdout.readline())
        for name, request in requests.items():
            load = stack.enter_context(Load(port, request, connections=CONNECTIONS))
            if load.status != 200:
                raise SystemExit(f"{name}, {way}: {load.status}")
            rows[name][way] = server.pid, load.seconds
    return rows


async def _serve(way: str, sessions: Path) -> None:
    """Run one of the two applications until the process is killed."""
    import uvicorn

    from bench import _starlette_app
    from carrel.fronts.http.app import Application
    from carrel.fronts.request_log import LOGGER, BufferedLogHandler
    from carrel.service.authentication.authenticator import Authenticator
    from carrel.service.authentication.key_store import KeyStore
    from carrel.service.rate_limit import RateLimiter
    from carrel.service.service import Service

    logger = logging.getLogger(LOGGER)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(BufferedLogHandler(sys.stderr))
    service = Service.from_env({"CARREL_SERVE_REQUIRE_KEY": "0"}, root=sessions, walled=False)
    async with service:
        callers, rates = Authenticator(service.settings, KeyStore(sessions)), RateLimiter(None)
        make = Application if way == OWN else _starlette_app.application
        config = uvicorn.Config(
            make(service, callers, rates),
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_keep_alive=600,
            http="httptools",
        )
        with socket.create_server(("127.0.0.1", 0)) as listener:
            print(listener.getsockname()[1], flush=True)
            await uvicorn.Server(config).serve(sockets=[listener])


# MCP


def _mcp(stack: ExitStack, sessions: Path) -> dict[str, dict[str, tuple[int, Measure]]]:
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "carrel",
        "--sessions-dir",
        sessions,
        "mcp",
        "--session",
        SESSION,
    ]
    command += ["--role", "developer"]
    calls: dict[str, tuple[str, dict[str, str]]] = {
        "MCP read": ("file_read", {"path": "small.txt"}),
        "MCP write": ("file_write", {"path": "w.txt", "content": TEXT}),
    }
    rows: dict[str, dict[str, tuple[int, Measure]]] = {name: {} for name in calls}
    for way, traces in ((FAST_PATH, "0"), (SDK, "1")):
        server = stack.enter_context(Stdio(command, sessions, {"CARREL_SERVE_TRACES": traces}))
        for name, (tool, arguments) in calls.items():
            rows[name][way] = server.pid, partial(_call, server, tool, arguments)
    return rows


def _call(server: Stdio, tool: str, arguments: Mapping[str, str], requests: int) -> float:
    started = perf_counter()
    for _ in range(requests):
        server.call(tool, arguments)
    return perf_counter() - started


if __name__ == "__main__":
    main()

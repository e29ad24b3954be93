"""Calls over HTTP, gRPC and MCP, compared with the same call in process and with others.

    .venv/bin/python -m bench.service [--quick] [--dir DIRECTORY] [--others DIRECTORY] [--json]

The service is one `carrel serve` and one `carrel mcp` on this machine, with everything on. Beside its HTTP
stands an empty route of Starlette in a process of its own, on the same kind of server; beside its MCP the
reference server for files, from npm. Nothing is asserted: the exit status is 0 unless something is broken.
README.md says how to read the result.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from time import sleep
from typing import Any

from bench import _machine
from bench._aims import Aim, Ceiling
from bench._children import Here
from bench._errors import BrokenError, UnmeasuredError
from bench._lines import environment, last_line
from bench._load import Load
from bench._measure import order
from bench._npm import NodeProgram
from bench._program import Given
from bench._program import run as program
from bench._rows import OURS, Figure, Row
from bench._stdio import Stdio
from bench._trees import TEXT
from bench._turns import Turns, take_turns
from carrel.sessions.manager import WorkspaceManager
from carrel.tools.toolbox import Toolbox
from carrel.values import Limits

SESSION = "bench"
HERE = "in process"
EMPTY = "empty Starlette route"
REFERENCE = NodeProgram("@modelcontextprotocol/server-filesystem", "2026.8.31", "dist/index.js")
OTHER = f"{REFERENCE.package.rpartition('/')[2]} {REFERENCE.version}"
READ, WRITE, LIST, SEARCH, LS, TURN = (
    "read 4 KiB",
    "write 4 KiB",
    "list 100 files",
    "search names",
    "ls",
    "Python",
)
CALL = "call"
"""The only kind of call."""
HTTP, GRPC, MCP, MANY = "HTTP", "gRPC", "MCP stdio", "HTTP, 8 at once"
CONFIGURATION = {"CARREL_SERVE_RATE_PER_MINUTE": "100000000", "CARREL_SERVE_SHUTDOWN_SECONDS": "1"}
EMPTY_ROUTE = """
import socket
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def empty(request):
    return Response(b"")

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
app = Starlette(routes=[Route("/", empty)])
config = uvicorn.Config(app, log_level="critical", access_log=False, loop="uvloop", http="httptools")
uvicorn.Server(config).run(sockets=[listener])
"""

Call = Callable[[], object]


class Bench:
    """A service, and its alternatives."""

    def __init__(self, given: Given) -> None:
        base, quick = given.base, given.quick
        self.base = base
        self.sessions = base / "sessions"
        self.host = self.sessions / SESSION
        self.others = given.others
        self.calls = 150 if quick else 1000
        self.turns = 5 if quick else 40
        self.load = 1500 if quick else 10_000
        self.directories = 3 if quick else 10

    def versions(self) -> Mapping[str, str]:
        """What both servers of HTTP are made of, and what runs the reference server."""
        reference = {REFERENCE.package: REFERENCE.version}
        return (
            _machine.packages("starlette", "uvicorn", "grpcio", "mcp")
            | _machine.programs(node="node")
            | reference
        )

    def run(self) -> Iterator[Row]:
        """Measure everything, one row after the other."""
        self._prepare()
        with ExitStack() as stack:
            workspace = stack.enter_context(WorkspaceManager(self.sessions).open(SESSION))
            self.workspace = workspace
            self.toolbox = stack.enter_context(Toolbox(workspace))
            self.reference_box = stack.enter_context(Toolbox(workspace, profile="mcp"))
            port, grpc_port = self._serve(stack)
            yield self._many(stack, port)
            yield from self._http(HTTPConnection("127.0.0.1", port))
            yield from self._grpc(grpc_port)
            yield from self._mcp(stack)

    def aims(self, rows: Sequence[Row]) -> list[Aim]:
        """The aims, and their results."""
        return [
            Ceiling("HTTP reads of 4 KiB at more than half of an empty route", READ, EMPTY, 2, MANY).judge(
                rows
            ),
            *(
                Ceiling(
                    f"{name} at least 3 times as quick as the reference server", name, OTHER, 1 / 3, MCP
                ).judge(rows)
                for name in (READ, WRITE, LIST, SEARCH)
            ),
        ]

    def _prepare(self) -> None:
        limits = Limits(disk_bytes=None, entries=None)
        with WorkspaceManager(self.sessions).create(SESSION, limits=limits, ttl_seconds=None) as workspace:
            workspace.write("small.txt", TEXT)
            for number in range(100):
                workspace.write(f"listed/file-{number}.txt", "")
            for directory in range(self.directories):
                for number in range(100):
                    workspace.write(f"tree/d{directory}/f{number}.txt", "x")

    def _serve(self, stack: ExitStack) -> tuple[int, int]:
        log = self.base / "serve.log"
        process = stack.enter_context(
            subprocess.Popen(
                [*_carrel(self.sessions), "serve", "--port", "0", "--grpc-port", "0", "--no-auth"],
                stderr=stack.enter_context(log.open("w")),
                env=environment(CONFIGURATION),
            )
        )
        stack.callback(process.terminate)
        while process.poll() is None:
            if found := re.search(r"serving http://[^ ]+:(\d+) grpc [^ ]+:(\d+)\n", log.read_text("utf-8")):
                return int(found[1]), int(found[2])
            sleep(0.05)
        raise BrokenError(f"the service did not begin: {last_line(log.read_text('utf-8'))}")

    def _many(self, stack: ExitStack, port: int) -> Row:
        """How long a request takes when the server is never without one."""
        process = stack.enter_context(
            subprocess.Popen([sys.executable, "-c", EMPTY_ROUTE], stdout=subprocess.PIPE, text=True)
        )
        stack.callback(process.kill)
        assert process.stdout is not None
        other = int(process.stdout.readline())
        samples: dict[str, list[float]] = {OURS: [], EMPTY: []}
        with (
            Load(port, _get(f"/api/v1/sessions/{SESSION}/files/small.txt")) as ours,
            Load(other, _get("/")) as empty,
        ):
            if (ours.status, empty.status) != (200, 200):
                raise BrokenError(f"the answers are {ours.status} and {empty.status}")
            loads = {OURS: ours, EMPTY: empty}
            for turn in range(8):
                for name in order(list(loads), turn):
                    samples[name].append(loads[name].seconds(self.load // 8) / (self.load // 8))
        process.kill()
        figures = {
            name: Figure(median(found) * 1e6, min(found) * 1e6, per_second=1 / min(found))
            for name, found in samples.items()
        }
        return Row(READ, MANY, figures, unit="µs")

    def _http(self, connection: HTTPConnection) -> Iterator[Row]:
        prefix = f"/api/v1/sessions/{SESSION}"

        def ask(method: str, target: str, body: bytes | None = None) -> bytes:
            connection.request(method, prefix + target, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
            if answer.status >= 300:
                raise BrokenError(f"{method} {target}: {answer.status} {content[:200]!r}")
            return content

        def tool(name: str, **arguments: Any) -> Call:  # Any: any JSON value
            body = json.dumps({"arguments": arguments, "context": {"role": "developer"}}).encode()
            return lambda: _succeeded(json.loads(ask("POST", f"/tools/{name}", body)))

        data = TEXT.encode()
        yield self._row(
            READ,
            HTTP,
            {
                OURS: lambda: ask("GET", "/files/small.txt"),
                HERE: lambda: self.workspace.read_with_info("small.txt"),
            },
        )
        yield self._row(
            WRITE,
            HTTP,
            {
                OURS: lambda: ask("PUT", "/files/w.txt", data),
                HERE: lambda: self.workspace.write("w.txt", data),
            },
        )
        yield self._row(LS, HTTP, {OURS: tool("bash", command="ls listed"), HERE: self._here(LS)})
        yield self._row(TURN, HTTP, {OURS: tool("python_executor", code="print(1)"), HERE: self._here(TURN)})

    def _grpc(self, port: int) -> Iterator[Row]:
        import grpc

        from carrel.remote.proto import carrel_v1_pb2 as messages
        from carrel.remote.proto.carrel_v1_pb2_grpc import SandboxServiceStub

        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = SandboxServiceStub(channel)

            def tool(name: str, **arguments: Any) -> Call:  # Any: any JSON value
                request = messages.CallToolRequest(
                    session_id=SESSION,
                    context=messages.Context(role="developer"),
                    name=name,
                    arguments_json=json.dumps(arguments),
                )

                def call() -> None:
                    answer = stub.CallTool(request)
                    if not answer.success:
                        raise BrokenError(f"{name}: {answer.error}")

                return call

            for name, ours in (
                (READ, tool("file_read", path="small.txt")),
                (WRITE, tool("file_write", path="w.txt", content=TEXT)),
                (LS, tool("bash", command="ls listed")),
                (TURN, tool("python_executor", code="print(1)")),
            ):
                yield self._row(name, GRPC, {OURS: ours, HERE: self._here(name)})

    def _here(self, name: str) -> Call:
        """The same call of a tool in this process."""
        calls: dict[str, tuple[str, dict[str, Any]]] = {
            READ: ("file_read", {"path": "small.txt"}),
            WRITE: ("file_write", {"path": "w.txt", "content": TEXT}),
            LS: ("bash", {"command": "ls listed"}),
            TURN: ("python_executor", {"code": "print(1)"}),
        }
        tool, arguments = calls[name]
        return lambda: _succeeded(self.toolbox.call(tool, arguments).to_dict())

    def _mcp(self, stack: ExitStack) -> Iterator[Row]:
        """The compatible set beside the reference server, and the tools that it has not."""
        sets = ("--profile", "mcp", "--profile", "agent")
        command = [*_carrel(self.sessions), "mcp", "--session", SESSION, "--role", "developer", *sets]
        ours = stack.enter_context(Stdio(command, self.base, CONFIGURATION))
        missing: dict[str, str] = {}
        reference: Stdio | None = None
        try:
            files = self.base / "reference"
            files.mkdir()
            subprocess.run(["cp", "-r", f"{self.host}/.", files], check=True)
            reference = stack.enter_context(Stdio([*REFERENCE.command(self.others), files], files))
        except UnmeasuredError as error:
            missing[OTHER] = str(error)
        shared: dict[str, tuple[str, dict[str, Any]]] = {
            READ: ("read_text_file", {"path": "small.txt"}),
            WRITE: ("write_file", {"path": "w.txt", "content": TEXT}),
            LIST: ("list_directory", {"path": "listed"}),
            SEARCH: ("search_files", {"path": "tree", "pattern": "**/f77*"}),
        }
        for name, (tool, arguments) in shared.items():
            ways: dict[str, Call] = {
                OURS: _called(ours, tool, arguments),
                HERE: _boxed(self.reference_box, tool, arguments),
            }
            if reference is not None:
                # It takes no path that is not absolute.
                there = arguments | {"path": str(self.base / "reference" / arguments["path"])}
                ways[OTHER] = _called(reference, tool, there)
            yield self._row(name, MCP, ways, missing)
        yield self._row(
            LS, MCP, {OURS: _called(ours, "bash", {"command": "ls listed"}), HERE: self._here(LS)}
        )
        turn = _called(ours, "python_executor", {"code": "print(1)"})
        yield self._row(TURN, MCP, {OURS: turn, HERE: self._here(TURN)})

    def _row(
        self, operation: str, detail: str, ways: Mapping[str, Call], missing: Mapping[str, str] | None = None
    ) -> Row:
        """Let *ways* take turns of a few calls, each of which is timed."""
        calls = self.turns if operation == TURN else self.calls // 20 if operation == SEARCH else self.calls
        batch = max(1, calls // 20)
        racing = {name: Here({CALL: _whatever(call)}) for name, call in ways.items()}
        turns = Turns(rounds=calls // batch, calls=batch)
        row = take_turns(operation, detail, racing, CALL, "", turns)
        return replace(row, missing={**(missing or {}), **row.missing})


def _carrel(sessions: Path) -> list[str | Path]:
    return [sys.executable, "-m", "carrel", "--sessions-dir", sessions]


def _whatever(call: Call) -> Callable[[str, int], object]:
    """The call, whatever code it is to run in whatever lane."""
    return lambda _code, _lane: call()


def _get(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def _called(server: Stdio, tool: str, arguments: Mapping[str, Any]) -> Call:
    return lambda: server.call(tool, arguments)


def _boxed(box: Toolbox, tool: str, arguments: Mapping[str, Any]) -> Call:
    return lambda: _succeeded(box.call(tool, arguments).to_dict())


def _succeeded(answer: Mapping[str, Any]) -> None:
    if not answer["success"]:
        raise BrokenError(str(answer["error"]))


if __name__ == "__main__":
    program("Measure what calls over HTTP, gRPC and MCP cost, side by side.", Bench)

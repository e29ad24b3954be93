"""Callers who do their worst to a service, each in its own way and without end."""

from __future__ import annotations

import fcntl
import io
import json
import os
import socket
import tarfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection, HTTPException
from itertools import cycle
from multiprocessing.synchronize import Event
from pathlib import Path
from threading import Thread

from carrel.values import MIB

API = "/api/v1/sessions"
SESSION = f"{API}/s"
TENANT = "bad"
MCP_VERSION = "2026-07-28"
HELD_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Target:
    """The service, and whose keys the hostile caller has."""

    port: int
    grpc_port: int
    root: Path
    keys: tuple[str, ...]
    """Of one tenant."""

    @property
    def sessions(self) -> Path:
        """The sessions of the tenant, on disk."""
        return self.root / ".carrel" / "tenants" / TENANT

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        key: int = 0,
    ) -> int:
        """Make one request on a connection of its own; the status."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            given = {"Authorization": f"Bearer {self.keys[key]}", **(headers or {})}
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            while answer.read(MIB):
                pass
            return answer.status
        finally:
            connection.close()

    def operate(self, name: str, arguments: Mapping[str, object], *, session: str = "s", key: int = 0) -> int:
        """Call one operation of a workspace."""
        return self.ask("POST", f"{API}/{session}/operations/{name}", json.dumps(arguments).encode(), key=key)

    def execute(self, **work: object) -> int:
        """Run a command or code, and wait for its end."""
        return self.ask("POST", f"{SESSION}/exec", json.dumps(work).encode())

    def send(self, method: str, path: str, body: bytes = b"", *headers: str) -> socket.socket:
        """Send a request, and leave its answer unread."""
        connection = socket.create_connection(("127.0.0.1", self.port))
        head = [
            f"{method} {path} HTTP/1.1",
            "Host: 127.0.0.1",
            f"Authorization: Bearer {self.keys[0]}",
            f"Content-Length: {len(body)}",
            *headers,
        ]
        connection.sendall("\r\n".join([*head, "", ""]).encode() + body)
        return connection


Attack = Callable[[Target], None]


def again(many: int, act: Callable[[int], object]) -> None:
    """Let *many* threads do the same again and again; each is given its number."""

    def without_end(number: int) -> None:
        while True:
            with suppress(OSError, HTTPException):
                act(number)

    for number in range(many):
        Thread(target=without_end, args=(number,), daemon=True).start()


# Sessions that are busy


def lock_the_ledger(target: Target) -> None:
    """Write small files into a session whose lock another process holds."""
    again(64, lambda number: target.ask("PUT", f"{SESSION}/files/w{number}", b"text"))
    ledger = target.sessions / ".carrel" / "sessions" / "s" / "ledger"

    def hold(_: int) -> None:
        with ledger.open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            time.sleep(HELD_SECONDS)

    again(1, hold)


def recount(target: Target) -> None:
    """Count one large session 60 times at once, and twenty smaller ones 200 times, by two keys."""
    _fill(target, "s", 10_000)
    for number in range(20):
        target.ask("PUT", f"{API}/r{number}")
        _fill(target, f"r{number}", 2_000)
    again(60, lambda number: target.operate("recount", {}))
    again(200, lambda number: target.operate("recount", {}, session=f"r{number % 20}", key=number % 2))


def ask_for_what_is_refused(target: Target) -> None:
    """Ask for a path outside; each is written down."""
    again(32, lambda number: target.operate("stat", {"path": "../x"}))


def list_many(target: Target) -> None:
    """List and search a directory of 10,000 files."""
    _fill(target, "s", 10_000)
    again(8, lambda number: target.ask("GET", f"{SESSION}/files"))
    again(8, lambda number: target.operate("glob", {"pattern": "**/*9*"}))


def _fill(target: Target, session: str, files: int) -> None:
    """Make so many files, quicker than by as many requests."""
    for number in range(files):
        (target.sessions / session / f"{number}").touch()
    target.operate("recount", {}, session=session)


# Large documents

DOCUMENTS = (
    b'{"a":[' + b"[]," * 4_000_000 + b"[]]}",
    b'{"a":[' + b"0," * 130_000 + b'"' + b"x" * 15 * MIB + b'"]}',
    b'{"a":"' + rb"\u00e9" * 2_500_000 + b'"}',
    b'{"a":"' + rb"\ud800" * 2_500_000 + b'"}',
    b'{"a":' + b"[" * 130_000 + b"]" * 130_000 + b"}",
    b'{"a":"' + b"x" * 15 * MIB + b'"',
)
"""Each less than 16 MiB: too many values, as many as may be, texts that take long to read, and no JSON."""


def send_documents(target: Target) -> None:
    """Send large JSON to operations and tools."""

    def send(number: int) -> None:
        path = "operations/list" if number % 2 else "tools/file_write"
        target.ask("POST", f"{SESSION}/{path}", DOCUMENTS[number % len(DOCUMENTS)])

    again(18, send)


def send_documents_over_grpc(target: Target) -> None:
    """Send messages of nearly 4 MiB: JSON for tools and operations, and many arguments."""
    import grpc

    from carrel.remote.proto import carrel_v1_pb2 as messages
    from carrel.remote.proto.carrel_v1_pb2_grpc import SandboxServiceStub, WorkspaceServiceStub

    channel = grpc.insecure_channel(f"127.0.0.1:{target.grpc_port}")
    sandbox, workspace = SandboxServiceStub(channel), WorkspaceServiceStub(channel)
    key = (("authorization", f"Bearer {target.keys[0]}"),)
    most = 4 * MIB - 2**10
    texts = [
        '{"a":[' + "[]," * (most // 3 - 10) + "[]]}",
        '{"a":[' + "0," * 130_000 + '"' + "x" * (most - 300_000) + '"]}',
        '{"a":"' + r"\u00e9" * (most // 6 - 10) + '"}',
        '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
    ]
    tools = [
        messages.CallToolRequest(session_id="s", name="file_write", arguments_json=text) for text in texts
    ]
    operations = [
        messages.CallRequest(session_id="s", operation="list", arguments_json=text) for text in texts
    ]
    programs = [
        messages.ExecutePythonStreamRequest(session_id="s", code="1", argv=[""] * (most // 2 - 20)),
        messages.ExecutePythonStreamRequest(
            session_id="s", code="1", env={str(number): "" for number in range(300_000)}
        ),
    ]
    calls: list[Callable[[], object]] = [
        *(partial(sandbox.CallTool, each, metadata=key) for each in tools),
        *(partial(workspace.Call, each, metadata=key) for each in operations),
        *(partial(_all_of, partial(sandbox.ExecutePythonStream, each, metadata=key)) for each in programs),
    ]

    def call(number: int) -> None:
        with suppress(grpc.RpcError):
            calls[number % len(calls)]()

    again(20, call)


def _all_of(stream: Callable[[], Iterable[object]]) -> None:
    for _ in stream():
        pass


def send_documents_over_mcp(target: Target) -> None:
    """Send large requests to `/mcp`, of both eras of the protocol."""
    begin = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"file_write","arguments":'
    meta = {"protocolVersion": MCP_VERSION, "clientCapabilities": {}}
    end = b',"_meta":' + json.dumps({f"io.modelcontextprotocol/{k}": v for k, v in meta.items()}).encode()
    newer = {"MCP-Protocol-Version": MCP_VERSION, "Mcp-Method": "tools/call", "Mcp-Name": "file_write"}

    def send(number: int) -> None:
        document = DOCUMENTS[number % len(DOCUMENTS)]
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        target.ask("POST", "/mcp", begin + document + end + b"}}", headers | (newer if number % 3 else {}))

    again(18, send)


def upload_archives(target: Target) -> None:
    """Upload archives of very many members."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        for number in range(9_000):
            archive.addfile(tarfile.TarInfo(f"m/{number}"))
    again(8, lambda number: target.ask("POST", f"{SESSION}/archive?overwrite=true", packed.getvalue()))


# Commands and code


def run_shell_bombs(target: Target) -> None:
    """Run command lines that take all the memory and time that they are given."""
    target.ask("PUT", f"{SESSION}/files/lines", b"ab\nc\n" * (8 * MIB // 5))
    lines = ("sort lines", "sed 's/./xx/g' lines", "grep -no . lines", "sort -n lines")
    again(8, lambda number: target.execute(command=lines[number % len(lines)]))


def run_spinning_code(target: Target) -> None:
    """Run code that never ends."""
    again(8, lambda number: target.execute(code="while True: pass"))


def run_code_that_opens_files(target: Target) -> None:
    """Run code that opens files without end, which the service does for it."""
    code = "while True:\n  with open('/workspace/f') as f: f.read()"
    again(8, lambda number: target.execute(code=code))


def leave_output(target: Target) -> None:
    """Let commands print 16 MiB, and go away."""
    target.ask("PUT", f"{SESSION}/files/large", b"0123456789abcde\n" * MIB)

    def run(number: int) -> None:
        with target.send(
            "POST", f"{SESSION}/exec", b'{"command":"cat large"}', "Accept: text/event-stream"
        ) as one:
            size = 0
            while size < 17 * MIB and (piece := one.recv(MIB)):
                size += len(piece)

    again(8, run)


def want_large_answers(target: Target) -> None:
    """Read 16 MiB of output in one answer, again and again."""
    target.ask("PUT", f"{SESSION}/files/large", b"0123456789abcde\n" * MIB)
    target.ask("PUT", f"{SESSION}/files/half", b"0123456789abcd\xff\n" * (MIB // 2))
    again(6, lambda number: target.execute(command="cat large"))
    again(
        4, lambda number: target.ask("GET", f"{SESSION}/files/half", headers={"Accept": "application/json"})
    )
    again(
        4, lambda number: target.ask("POST", f"{SESSION}/tools/file_read", b'{"arguments":{"path":"half"}}')
    )


def read_slowly(target: Target) -> None:
    """Ask for a large file on a hundred connections, and take a few bytes of it now and then."""
    target.ask("PUT", f"{SESSION}/files/large", os.urandom(64 * MIB))
    connections = [target.send("GET", f"{SESSION}/files/large") for _ in range(100)]
    turns = cycle(connections)

    def read(_: int) -> None:
        next(turns).recv(2**14)
        time.sleep(0.001)

    again(1, read)


ATTACKS: Mapping[str, Attack] = {
    "a locked ledger": lock_the_ledger,
    "260 recounts": recount,
    "refused paths": ask_for_what_is_refused,
    "large listings": list_many,
    "JSON over HTTP": send_documents,
    "JSON over gRPC": send_documents_over_grpc,
    "JSON over MCP": send_documents_over_mcp,
    "archives": upload_archives,
    "shell bombs": run_shell_bombs,
    "code that spins": run_spinning_code,
    "code that opens files": run_code_that_opens_files,
    "output left behind": leave_output,
    "large answers": want_large_answers,
    "slow readers": read_slowly,
}


def attack(name: str, target: Target, begun: Event) -> None:
    """Do one of them until the process is killed; say when it has begun."""
    ATTACKS[name](target)
    begun.set()
    while True:
        time.sleep(60)

"""Many clients at once for a while, some of whom go away in the middle; `make soak` runs it.

    PYTHONPATH=. SOAK_SECONDS=60 SOAK_CLIENTS=500 .venv/bin/python tests/soak.py

Every answer must be one that is declared: what was asked for, an error of ours, or that there is too much to
do. Memory and open descriptors of the service must not grow: they are looked at when it has been busy for a
third of the time, and at the end. The exit status says whether all of that held.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import grpc.aio

from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.remote.proto.carrel_v1_pb2_grpc import SandboxServiceStub
from tests.conformance.mcp_door import rendered
from tests.conformance.server import Server

SECONDS = float(os.environ.get("SOAK_SECONDS", "60"))
CLIENTS = int(os.environ.get("SOAK_CLIENTS", "500"))
SESSIONS = 20
ANSWER_SECONDS = 60
"""Whoever waits longer than that for an answer was forgotten."""
GROWTH = 1.15
GROWTH_BYTES = 24 * 2**20
"""What memory may grow by, in whichever way that is more: allocators keep some of what they were given."""
GROWTH_DESCRIPTORS = 16
BUSY = frozenset({429, 503})
"""There is too much to do, which is no error if it says when to come back."""
API = "/api/v1/sessions"
EVENTS = {"Accept": "text/event-stream"}
BLOCK = b"0123456789abcdef" * 256


class Wrong(Exception):
    """An answer that is not declared."""


class Gone(Exception):
    """The client went away, as it meant to."""


@dataclass(slots=True)
class Client:
    """One client with a connection of its own, which it may drop at any time."""

    port: int
    number: int
    sandbox: SandboxServiceStub
    """The same service over gRPC, by a channel that all share."""
    counted: Counter[str]
    wrong: list[str]
    _random: random.Random = field(init=False)
    _reader: asyncio.StreamReader | None = None
    _writer: asyncio.StreamWriter | None = None

    def __post_init__(self) -> None:
        self._random = random.Random(self.number)

    async def run(self, until: float) -> None:
        """Call one thing after the other until the time is over."""
        while time.monotonic() < until:
            name, call = self._random.choice(CALLS)
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    status = await call(self)
            except Gone:
                self.counted[f"{name}: went away"] += 1
                self.drop()
            except TimeoutError:
                self.wrong.append(f"{name}: no answer in {ANSWER_SECONDS} s")
                self.drop()
            except (OSError, asyncio.IncompleteReadError, ValueError, Wrong) as error:
                self.wrong.append(f"{name}: {error!r}")
                self.drop()
            else:
                self.counted[f"{name}: {status}"] += 1
        self.drop()

    def drop(self) -> None:
        """Go away at once, whatever was begun."""
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None

    @property
    def session(self) -> str:
        return f"soak-{self._random.randrange(SESSIONS)}"

    @property
    def path(self) -> str:
        return f"d{self._random.randrange(4)}/f{self._random.randrange(16)}"

    async def send(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        *,
        said: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a request; one that says more than it sends leaves the other side waiting."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = (
            f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body) if said is None else said}\r\n"
            + "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
            + "\r\n"
        )
        self._writer.write(head.encode() + body)
        await self._writer.drain()

    async def answer(self, *expected: int) -> int:
        """Read one answer, and check that it is declared."""
        status, headers = await self.head()
        body = await self._body(headers)
        if status in BUSY:
            if "retry-after" not in headers:
                raise Wrong(f"{status} without Retry-After")
            # As it was told, though not as long: the service is to be kept busy.
            await asyncio.sleep(self._random.random())
        elif status not in expected:
            raise Wrong(f"{status} {body[:200]!r}")
        if headers.get("connection") == "close":
            self.drop()
        return status

    async def head(self) -> tuple[int, dict[str, str]]:
        """Read the beginning of an answer."""
        assert self._reader is not None
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        return int(lines[0].split()[1]), headers

    async def some(self) -> None:
        """Read whatever comes next."""
        assert self._reader is not None
        await self._reader.read(1)

    async def _body(self, headers: dict[str, str]) -> bytes:
        assert self._reader is not None
        if headers.get("transfer-encoding") != "chunked":
            return await self._reader.readexactly(int(headers.get("content-length", 0)))
        body = b""
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            body += await self._reader.readexactly(size)
            await self._reader.readexactly(2)
        await self._reader.readexactly(2)
        return body


async def _read(client: Client) -> int:
    await client.send("GET", f"{API}/{client.session}/files/{client.path}")
    return await client.answer(200, 404)


async def _write(client: Client) -> int:
    await client.send("PUT", f"{API}/{client.session}/files/{client.path}", BLOCK)
    return await client.answer(200, 201, 204)


async def _list(client: Client) -> int:
    await client.send("GET", f"{API}/{client.session}/files?path=d1")
    return await client.answer(200, 404)


async def _operation(client: Client) -> int:
    body = json.dumps({"query": "cdef0", "path": "."}).encode()
    await client.send("POST", f"{API}/{client.session}/operations/search", body)
    return await client.answer(200)


async def _tool(client: Client) -> int:
    arguments = {"path": client.path, "content": "a few words"}
    body = json.dumps({"arguments": arguments, "context": {"role": "developer"}}).encode()
    await client.send("POST", f"{API}/{client.session}/tools/file_write", body)
    return await client.answer(200)


async def _refused(client: Client) -> int:
    await client.send("GET", f"{API}/{client.session}/files/%2e%2e%2f%2e%2e%2fetc%2fpasswd")
    return await client.answer(400)


async def _nonsense(client: Client) -> int:
    await client.send("POST", f"{API}/{client.session}/operations/stat", b"{not json")
    return await client.answer(400)


async def _command(client: Client) -> int:
    body = json.dumps({"command": "ls -R"}).encode()
    await client.send("POST", f"{API}/{client.session}/exec", body)
    return await client.answer(200)


async def _remove(client: Client) -> int:
    await client.send("DELETE", f"{API}/{client.session}/files/{client.path}")
    return await client.answer(200, 204, 404)


async def _short_session(client: Client) -> int:
    name = f"short-{client.number}"
    await client.send("PUT", f"{API}/{name}")
    await client.answer(200, 201)
    await client.send("DELETE", f"{API}/{name}")
    return await client.answer(200, 204, 404)


async def _changes(client: Client) -> int:
    await client.send("GET", f"{API}/{client.session}/changes?since=0")
    return await client.answer(200, 410)


async def _mcp(client: Client) -> int:
    arguments = {"session": client.session, "path": "."}
    message, headers = rendered("tools/call", {"name": "file_list", "arguments": arguments}, "file_list")
    await client.send("POST", "/mcp", json.dumps(message).encode(), headers=headers)
    return await client.answer(200)


async def _grpc(client: Client) -> int:
    request = messages.FileReadRequest(session_id=client.session, path=client.path)
    try:
        answer = await client.sandbox.FileRead(request)
    except grpc.aio.AioRpcError as error:
        if error.code() not in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE):
            raise Wrong(f"{error.code()} {error.details()}") from None
        return 503
    if answer.code not in ("", "path.missing"):
        raise Wrong(f"{answer.code} {answer.error}")
    return 200 if answer.success else 404


async def _leaves_grpc(client: Client) -> int:
    request = messages.ExecuteCommandStreamRequest(session_id=client.session, command="grep -rn cdef .")
    client.sandbox.ExecuteCommandStream(request).cancel()
    raise Gone


async def _leaves_a_write(client: Client) -> int:
    await client.send("PUT", f"{API}/{client.session}/files/half", BLOCK[:100], said=10**6)
    raise Gone


async def _leaves_an_archive(client: Client) -> int:
    await client.send("GET", f"{API}/{client.session}/archive?format=tar")
    await client.some()
    raise Gone


async def _leaves_a_command(client: Client) -> int:
    body = json.dumps({"command": "grep -rn cdef ."}).encode()
    await client.send("POST", f"{API}/{client.session}/exec", body, headers=EVENTS)
    await client.some()
    raise Gone


async def _leaves_changes(client: Client) -> int:
    await client.send("GET", f"{API}/{client.session}/changes?since=0", headers=EVENTS)
    await client.some()
    raise Gone


async def _leaves_at_once(client: Client) -> int:
    await client.send("POST", f"{API}/{client.session}/operations/search", b'{"query": "x"}')
    raise Gone


Call = Callable[[Client], Awaitable[int]]
_OFTEN: tuple[Call, ...] = (_read, _write, _list, _tool, _grpc, _mcp)
_RARE: tuple[Call, ...] = (
    *(_operation, _refused, _nonsense, _command, _remove, _short_session, _changes),
    *(_leaves_a_write, _leaves_an_archive, _leaves_a_command, _leaves_changes, _leaves_at_once, _leaves_grpc),
)
CALLS = [(call.__name__.strip("_"), call) for call in (*_OFTEN * 4, *_RARE)]


@dataclass(frozen=True, slots=True)
class Weight:
    """What the service holds."""

    memory_bytes: int
    descriptors: int

    @classmethod
    def of(cls, process: int) -> Weight:
        """That of a process; its workers hold no more than it lets them."""
        fields = dict(
            line.split(":", 1)
            for line in Path(f"/proc/{process}/status").read_text().splitlines()
            if ":" in line
        )
        return cls(int(fields["VmRSS"].split()[0]) * 1024, len(os.listdir(f"/proc/{process}/fd")))

    def __str__(self) -> str:
        return f"{self.memory_bytes / 2**20:.0f} MiB, {self.descriptors} descriptors"


async def soak(server: Server) -> list[str]:
    """Let all clients call; what was wrong."""
    counted: Counter[str] = Counter()
    wrong: list[str] = []
    channel = grpc.aio.insecure_channel(server.grpc_address)
    stub = SandboxServiceStub(channel)
    first = Client(server.port, -1, stub, counted, wrong)
    for number in range(SESSIONS):
        await first.send("PUT", f"{API}/soak-{number}")
        await first.answer(200, 201)
    first.drop()
    until = time.monotonic() + SECONDS
    clients = [Client(server.port, number, stub, counted, wrong) for number in range(CLIENTS)]
    running = asyncio.gather(*(client.run(until) for client in clients))
    await asyncio.sleep(SECONDS / 3)
    warm = Weight.of(server.process.pid)
    await asyncio.sleep(SECONDS * 2 / 3 - 1)
    busy = Weight.of(server.process.pid)
    await running
    await channel.close()
    after = await _settled(server.process.pid, warm)
    for name, count in sorted(counted.items()):
        print(f"{count:8} {name}")
    print(f"{sum(counted.values()) / SECONDS:,.0f} calls a second; {warm}, then {busy}, at the end {after}")
    if busy.memory_bytes > max(warm.memory_bytes * GROWTH, warm.memory_bytes + GROWTH_BYTES):
        wrong.append(f"memory grows: {warm}, then {busy}")
    if after.descriptors > warm.descriptors + GROWTH_DESCRIPTORS:
        wrong.append(f"descriptors stay open: {warm}, at the end {after}")
    return wrong


async def _settled(process: int, warm: Weight) -> Weight:
    """What it holds when everybody has gone, and it had some time to notice."""
    for _ in range(40):
        found = Weight.of(process)
        if found.descriptors < warm.descriptors - CLIENTS / 2:
            break
        await asyncio.sleep(0.25)
    return Weight.of(process)


def main() -> int:
    """Run it, and tell."""
    with tempfile.TemporaryDirectory(prefix="soak-") as directory:
        env = {"CARREL_SERVE_RATE_PER_MINUTE": "10000000"}
        with Server(Path(directory), env) as server:
            wrong = asyncio.run(soak(server))
            ended = server.stop()
        if ended != 0:
            wrong.append(f"it ended with {ended}: {server.said[-2000:]}")
        left = [path.name for path in Path(directory).glob(".carrel/sessions/*/.carrel-draft-*")]
        if left:
            wrong.append(f"unfinished files were left: {left[:5]}")
    for problem, count in Counter(wrong).most_common(30):
        print(f"{count:8} WRONG {problem}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Tests that await, and sandboxes for them."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any

from agents.sandbox.errors import SandboxError
from agents.sandbox.session import BaseSandboxSession, SandboxSession

from carrel.adapters.openai_agents import CarrelSandboxClient, CarrelSandboxSession
from carrel.workspace.workspace import Workspace

Test = Callable[..., Coroutine[Any, Any, None]]


def awaited(test: Test) -> Callable[..., None]:
    """Run a test that awaits."""

    @wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


@asynccontextmanager
async def started(client: CarrelSandboxClient, **files: bytes) -> AsyncIterator[SandboxSession]:
    async with await client.create() as sandbox:
        for name, data in files.items():
            await sandbox.write(Path(name), io.BytesIO(data))
        yield sandbox


def workspace_of(sandbox: SandboxSession) -> Workspace:
    inner = sandbox._inner
    assert isinstance(inner, CarrelSandboxSession)
    return inner.workspace


async def content(sandbox: BaseSandboxSession, path: str) -> bytes:
    with await sandbox.read(Path(path)) as stream:
        return bytes(stream.read())


def code_of(error: SandboxError) -> object:
    return error.context["code"]

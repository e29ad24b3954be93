"""Let a thread run a command line, so that the event loop never waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from threading import Event

from carrel.adapters.pydantic_ai.script import Script
from carrel.sandbox.sandbox import call_threads
from carrel.shell.result import ShellResult
from carrel.shell.shell import BareShell


async def run(shell: BareShell, script: Script) -> ShellResult:
    """Run *script* in a *shell* of its own; a task that is cancelled stops it first."""
    run = _Run(shell, script)
    running = asyncio.get_running_loop().run_in_executor(call_threads(), partial(copy_context().run, run.run))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        run.stop()
        await asyncio.wait([running])
        raise


class _Run:
    """One run, which can be stopped from another thread, also before it has begun."""

    def __init__(self, shell: BareShell, script: Script) -> None:
        self._shell = shell
        self._script = script
        self._is_stopped = Event()
        self._stops: list[Callable[[], object]] = []

    def run(self) -> ShellResult:
        if self._script.parameters:
            result = self._shell.run(self._script.parameters)
            if not result.success:
                return result
        return self._shell.run(self._script.line, on_start=self._begun)

    def stop(self) -> None:
        self._is_stopped.set()
        for stop in self._stops:
            stop()

    def _begun(self, stop: Callable[[], object]) -> None:
        # In this order: either whoever stops finds this, or this finds that it was stopped.
        self._stops.append(stop)
        if self._is_stopped.is_set():
            stop()

"""Async objects with the interface of the blocking ones, so that one test can use both."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any

from carrel import AsyncClient


class Driven:
    """A wrapper that runs the coroutines of an object and iterates its async iterators."""

    def __init__(self, runner: asyncio.Runner, wrapped: Any) -> None:  # Any: any object with coroutines
        self._runner = runner
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        return self._driven(getattr(self._wrapped, name))

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, *exception: object) -> None:
        self._runner.run(self._wrapped.__aexit__(*exception))

    def _driven(self, value: Any) -> Any:
        if inspect.isroutine(value):
            return lambda *args, **kwargs: self._driven(value(*args, **kwargs))
        if inspect.iscoroutine(value):
            return self._driven(self._runner.run(value))
        if isinstance(value, AsyncIterator):
            return self._items(value)
        return Driven(self._runner, value) if type(value).__name__.startswith("Async") else value

    def _items(self, source: AsyncIterator[Any]) -> Iterator[Any]:
        async def following() -> tuple[Any, ...]:
            return (await anext(source),)

        while True:
            try:
                (item,) = self._runner.run(following())
            except StopAsyncIteration:
                return
            yield item


class DrivenClient(Driven):
    """An `AsyncClient` with the methods of `Client`."""

    def __init__(self, url: str, key: str | None = None, timeout: float = 60.0) -> None:
        super().__init__(asyncio.Runner(), AsyncClient(url, key=key, timeout=timeout))

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._runner.close()

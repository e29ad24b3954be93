"""Large JSON documents: values are counted before decoding, and conversion runs in a thread."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from carrel.errors import LimitError
from carrel.process import PROCESS
from carrel.values import MIB

MAX_BYTES = 16 * MIB
"""Maximum size of a JSON document."""
MAX_VALUES = 2**17
"""Maximum number of values in a document: decoding them holds the interpreter lock in any thread."""
_LARGE_BYTES = 2**17
"""Size from which documents are decoded and encoded in a thread."""

T = TypeVar("T")


class ValueCounter:
    """Counts the values of a JSON document from its bytes, without decoding it.

    A comma, an opening bracket or an opening brace outside of strings begins a value, so the count is
    approximate, and never far below the actual number.
    """

    __slots__ = ("_is_in_string", "_pending", "count")

    def __init__(self) -> None:
        self.count = 0
        self._is_in_string = False
        self._pending = b""
        """A backslash at the end of the last piece, whose escaped character is in the next one."""

    def add(self, piece: bytes) -> None:
        """Count the next *piece* of the document.

        Raises:
            LimitError: The document has more than `MAX_VALUES`.
        """
        data = self._pending + piece
        self._pending = data[-1:] if (len(data) - len(data.rstrip(b"\\"))) % 2 else b""
        data = data.removesuffix(self._pending)
        # With escapes removed, every quote begins or ends a string.
        parts = data.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        outside = b"".join(parts[self._is_in_string :: 2])
        self._is_in_string ^= len(parts) % 2 == 0
        self.count += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        if self.count > MAX_VALUES:
            message = f"the JSON contains too many values: the limit is {MAX_VALUES}"
            raise LimitError("body", limit=MAX_VALUES, asked=self.count, message=message)


class ConversionThread:
    """The thread of this process in which large documents are converted, one at a time.

    A conversion holds the interpreter lock for tens of milliseconds; several at once would keep the event
    loop waiting for all of them. It does not run in the pool that tenants share: while it waited there for
    the turn of its tenant, the documents of all others would wait too.
    """

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(1, thread_name_prefix="carrel-json")

    def close(self) -> None:
        """Let the thread end after its last document."""
        self.executor.shutdown(wait=False)
        self.abandon()

    def abandon(self) -> None:
        """Start empty in a forked child, which has none of its parent's threads."""
        self.executor = ThreadPoolExecutor(1, thread_name_prefix="carrel-json")


async def convert_document(size_bytes: int, convert: Callable[[], T]) -> T:
    """Return the result of *convert*, which decodes or encodes a document; in a thread if it is large."""
    if size_bytes < _LARGE_BYTES:
        return convert()
    executor = PROCESS.get(ConversionThread).executor
    return await asyncio.get_running_loop().run_in_executor(executor, _without_collection, convert)


def _without_collection(convert: Callable[[], T]) -> T:
    # Collecting garbage among that many new objects takes several times as long as creating them.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return convert()
    finally:
        if was_enabled:
            gc.enable()

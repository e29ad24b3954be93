"""Documents of clients are counted before they are decoded, whatever their pieces."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from carrel.errors import LimitError
from carrel.fronts.json_document import MAX_VALUES, ValueCounter, convert_document

DOCUMENT = {"a": [1, [], {}, 'x",[{', "\\", '\\"', "é,"], "b": {"c": "{[,"}}
COUNT = 2 + 6 + 2 + 1 + 1
"""Objects, commas and lists."""


@pytest.mark.parametrize("size", range(1, 8))
def test_a_document_counts_the_same_in_pieces_of_any_size(size: int) -> None:
    data = json.dumps(DOCUMENT).encode()
    count = ValueCounter()
    for start in range(0, len(data), size):
        count.add(data[start : start + size])
    assert count.count == COUNT


@pytest.mark.parametrize("value", [b"[],", b"0,", b'"",', b"{},", b'{"a":0},', b"[" * 2])
def test_more_values_than_allowed_are_refused(value: bytes) -> None:
    with pytest.raises(LimitError, match="too many values") as caught:
        ValueCounter().add(b"[" + value * (MAX_VALUES + 1))
    assert caught.value.code == "limit.body"


def test_a_string_is_no_value_after_the_first_however_long() -> None:
    count = ValueCounter()
    count.add(b'["' + rb"[,\"\\" * MAX_VALUES + b'"]')
    assert count.count == 1


def test_large_documents_are_converted_one_at_a_time() -> None:
    running: list[int] = []
    most: list[int] = []

    def convert() -> None:
        running.append(1)
        most.append(len(running))
        threading.Event().wait(0.01)  # long enough for another one to begin, if it could
        running.pop()

    async def convert_all() -> None:
        await asyncio.gather(*(convert_document(2**20, convert) for _ in range(4)))

    asyncio.run(convert_all())
    assert most == [1, 1, 1, 1]


def test_large_documents_do_not_wait_for_threads_of_the_service() -> None:
    release = threading.Event()

    async def convert() -> int:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, release.wait)
        try:
            return await convert_document(2**20, lambda: 1)
        finally:
            release.set()
            await busy

    assert asyncio.run(convert()) == 1

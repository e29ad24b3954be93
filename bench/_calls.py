"""Time calls: here, or in a child that is given this file as text.

So nothing of ours may be imported here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import perf_counter
from typing import TypedDict

Call = Callable[[str, int], object]
"""Runs code in the lane of that number, and raises if that fails."""


class Timed(TypedDict):
    """What calls took."""

    seconds: list[float]
    """Each of them."""
    elapsed_seconds: float
    """All of them together."""


def timed(call: Call, code: str, *, calls: int, threads: int) -> Timed:
    """Make so many calls in each of so many threads, each with a lane of its own."""
    if threads == 1:
        seconds = _lane(call, code, calls, 0)
        return {"seconds": seconds, "elapsed_seconds": sum(seconds)}
    barrier = Barrier(threads + 1)

    def work(lane: int) -> list[float]:
        barrier.wait()
        return _lane(call, code, calls, lane)

    with ThreadPoolExecutor(threads) as pool:
        lanes = [pool.submit(work, lane) for lane in range(threads)]
        barrier.wait()
        started = perf_counter()
        seconds = [each for lane in lanes for each in lane.result()]
        return {"seconds": seconds, "elapsed_seconds": perf_counter() - started}


def _lane(call: Call, code: str, calls: int, lane: int) -> list[float]:
    seconds = []
    for _ in range(calls):
        started = perf_counter()
        call(code, lane)
        seconds.append(perf_counter() - started)
    return seconds


def serve(ways: Mapping[str, Call]) -> None:
    """Do what the lines of standard input say, until they end; nothing else gets into the answers."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        order = json.loads(line)
        call = ways[order["way"]]
        answer: object
        try:
            answer = timed(call, order["code"], calls=order["calls"], threads=order["threads"])
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)

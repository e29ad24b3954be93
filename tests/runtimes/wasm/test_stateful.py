"""Interpreters of stateful sessions end by themselves when nobody uses them."""

from __future__ import annotations

import threading
from typing import cast

import pytest

from carrel.runtimes.wasm.interpreter import InterpreterHandle
from carrel.runtimes.wasm.stateful import StatefulInterpreters


class Closed:
    """What is kept of an interpreter: that it can be closed."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def close(self) -> None:
        self.event.set()


@pytest.mark.timeout(60)
def test_an_idle_one_ends_though_nobody_asks_for_it() -> None:
    kept, interpreter = StatefulInterpreters(idle_seconds=0.01), Closed()
    kept.put("one", cast("InterpreterHandle", interpreter))
    interpreter.event.wait()
    assert kept.take("one") is None
    assert kept.why_lost("one") == "it was idle"
    kept.close()


def test_a_tenant_loses_none_to_one_that_has_more() -> None:
    kept = StatefulInterpreters(max_count=4)
    small, large = [Closed() for _ in range(2)], [Closed() for _ in range(9)]
    for number, each in enumerate(small):
        kept.put(("small", number), cast("InterpreterHandle", each), tenant="small")
    for number, each in enumerate(large):
        kept.put(("large", number), cast("InterpreterHandle", each), tenant="large")
    assert [each.event.is_set() for each in small] == [False, False]
    assert [each.event.is_set() for each in large] == [True] * 7 + [False] * 2
    late = Closed()
    kept.put("late", cast("InterpreterHandle", late), tenant="late")
    assert not late.event.is_set()
    kept.close()

"""Interpreters of stateful sessions end by themselves when nobody uses them."""

from __future__ import annotations

import threading
from typing import cast

import pytest

from carrel.runtimes.interpreter import Interpreter
from carrel.runtimes.stateful import StatefulInterpreters


class Closed:
    """What is kept of an interpreter: that it can be closed."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def close(self) -> None:
        self.event.set()


@pytest.mark.timeout(60)
def test_an_idle_one_ends_though_nobody_asks_for_it() -> None:
    kept, interpreter = StatefulInterpreters(idle_seconds=0.01), Closed()
    kept.put("one", cast("Interpreter", interpreter))
    interpreter.event.wait()
    assert kept.take("one") is None
    assert kept.why_gone("one") == "it was idle"
    kept.close()

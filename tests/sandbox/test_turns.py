"""Calls of one session run one after another, those of different sessions at the same time."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from carrel.runtimes.result import TrapReason
from carrel.runtimes.wasm import runtime
from tests.requirements import requirement
from tests.sandbox.house import House, pipe, said

COUNT = """
from pathlib import Path
counter = Path("counter")
value = int(counter.read_text()) if counter.exists() else 0
for _ in range(20):  # every look is a chance for another call to come between
    counter.exists()
counter.write_text(str(value + 1))
print({number})
"""
FOREVER = "print('begun', flush=True)\nwhile True: pass"


@requirement("E-46")
@pytest.mark.parametrize("stateful", [False, True])
def test_calls_of_one_session_do_not_meet(house: House, stateful: bool) -> None:
    house.new("one")
    sandboxes = [house.get("one", stateful=stateful) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda n: sandboxes[n].execute(COUNT.format(number=n)), range(4)))
    assert [said(result) for result in results] == [f"{n}\n" for n in range(4)]
    assert (house.root / "one" / "counter").read_text() == "4"


@pytest.mark.parametrize("stateful", [False, True])
def test_many_sessions_work_at_once(house: House, stateful: bool) -> None:
    sandboxes = [house.new(stateful=stateful) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(2):
            results = list(threads.map(lambda n: sandboxes[n].execute(COUNT.format(number=n)), range(4)))
            assert [said(result) for result in results] == [f"{n}\n" for n in range(4)]
    for sandbox in sandboxes:
        assert (house.files(sandbox) / "counter").read_text() == "2"


def test_two_sessions_really_run_at_the_same_time(house: House) -> None:
    one, two = house.new("one"), house.new("two")
    with ThreadPoolExecutor(1) as thread:
        begun = threading.Event()
        running = thread.submit(one.execute, FOREVER, on_output=lambda _stream, _data: begun.set())
        begun.wait()
        assert said(two.execute("print('done')")) == "done\n"
        assert one.cancel() == 1
        assert running.result().trap_reason is TrapReason.CANCELLED


def test_a_call_that_never_gets_its_turn_ends_with_its_time(house: House) -> None:
    one = house.new("one")
    with ThreadPoolExecutor(1) as thread:
        begun = threading.Event()
        running = thread.submit(one.execute, FOREVER, on_output=lambda _stream, _data: begun.set())
        begun.wait()
        waiting = house.get("one").execute("open('made', 'w')", timeout_seconds=0.05)
        one.cancel()
        running.result()
    assert waiting.trap_reason is TrapReason.TIMEOUT
    assert waiting.files_created == []


@pytest.mark.timeout(60)
def test_the_time_of_a_call_includes_its_waiting(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = house.new("one"), house.get("one")
    begun, waits, ahead = threading.Event(), threading.Event(), [0.0]

    def clock() -> float:
        now = time.monotonic() + ahead[0]
        waits.set()
        return now

    with pipe() as (source, sink), ThreadPoolExecutor(2) as threads:
        code = "print('begun', flush=True)\ninput()"
        first = threads.submit(one.execute, code, stdin=source, on_output=lambda _stream, _data: begun.set())
        begun.wait()
        monkeypatch.setattr(runtime, "time", SimpleNamespace(monotonic=clock))
        second = threads.submit(two.execute, "while True: pass", timeout_seconds=3600)
        try:
            waits.wait()
            ahead[0] = 3599.9
            sink.write(b"\n")
            assert first.result().success
            waited = second.result()
        finally:
            two.cancel()
    assert waited.trap_reason is TrapReason.TIMEOUT
    assert "longer than 3600 s" in waited.stderr

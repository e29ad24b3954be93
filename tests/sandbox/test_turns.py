"""Calls of one session run one after another, those of different sessions at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from carrel.runtimes.result import TrapReason
from tests.requirements import requirement
from tests.sandbox.house import House, said

COUNT = """
from pathlib import Path
import time
counter = Path("counter")
value = int(counter.read_text()) if counter.exists() else 0
time.sleep(0.02)
counter.write_text(str(value + 1))
print({number})
"""


@requirement("E-46")
@pytest.mark.parametrize("stateful", [False, True])
def test_calls_of_one_session_do_not_meet(house: House, stateful: bool) -> None:
    house.new("one")
    sandboxes = [house.get("one", stateful=stateful) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda n: sandboxes[n].execute(COUNT.format(number=n)), range(8)))
    assert [said(result) for result in results] == [f"{n}\n" for n in range(8)]
    assert (house.root / "one" / "counter").read_text() == "8"


@pytest.mark.parametrize("stateful", [False, True])
def test_many_sessions_work_at_once(house: House, stateful: bool) -> None:
    sandboxes = [house.new(stateful=stateful) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(3):
            results = list(threads.map(lambda n: sandboxes[n].execute(COUNT.format(number=n)), range(8)))
            assert [said(result) for result in results] == [f"{n}\n" for n in range(8)]
    for sandbox in sandboxes:
        assert (house.files(sandbox) / "counter").read_text() == "3"


def test_two_sessions_really_run_at_the_same_time(house: House) -> None:
    one, two = house.new("one"), house.new("two")
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(one.execute, "import time; time.sleep(100)", timeout_seconds=60)
        assert said(two.execute("print('done')")) == "done\n"
        assert not running.done()
        while not one.cancel():
            pass
        assert running.result().trap_reason is TrapReason.CANCELLED


def test_a_call_that_never_gets_its_turn_ends_with_its_time(house: House) -> None:
    one = house.new("one")
    with ThreadPoolExecutor(1) as thread:
        begun = threading.Event()
        code = "import time; print('begun', flush=True); time.sleep(100)"
        running = thread.submit(one.execute, code, on_output=lambda _stream, _data: begun.set())
        assert begun.wait(60)
        waiting = house.get("one").execute("open('made', 'w')", timeout_seconds=0.3)
        one.cancel()
        running.result()
    assert waiting.trap_reason is TrapReason.TIMEOUT
    assert waiting.files_created == []


def test_the_time_of_a_call_includes_its_waiting(house: House) -> None:
    one = house.new("one")
    with ThreadPoolExecutor(1) as thread:
        begun = threading.Event()
        code = "import time; print('begun', flush=True); time.sleep(1)"
        running = thread.submit(one.execute, code, on_output=lambda _stream, _data: begun.set())
        assert begun.wait(60)
        waiting = house.get("one").execute("print('begun')\nwhile True: pass", timeout_seconds=1.5)
        running.result()
    assert waiting.trap_reason is TrapReason.TIMEOUT
    assert waiting.stdout == "begun\n"
    assert waiting.duration_ms < 2_400
    assert "longer than 1.5 s" in waiting.stderr

"""A call can be stopped from outside, whatever it does, and the sandbox can be used again."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable

import pytest

from carrel.runtimes.result import SandboxResult, TrapReason
from carrel.sandbox.sandbox import BaseSandbox
from tests.sandbox.house import House, said

WORK = {
    "computes": "print('begun', flush=True)\nwhile True: pass",
    "sleeps": "import time\nprint('begun', flush=True)\ntime.sleep(100)",
    "prints": "while True: print('begun')",
    "works on files": "import os\nprint('begun', flush=True)\nwhile True: os.listdir()",
    "catches all": """
print("begun", flush=True)
while True:
    try:
        while True: pass
    except BaseException: pass
""",
}


def when_begun(action: Callable[[], object]) -> Callable[[str, bytes], None]:
    """Has another thread do *action* when the first output comes."""
    threads: list[threading.Thread] = []

    def listen(_stream: str, _data: bytes) -> None:
        if not threads:
            threads.append(threading.Thread(target=action))
            threads[0].start()

    return listen


@pytest.mark.parametrize("work", WORK)
def test_another_thread_stops_a_script(sandbox: BaseSandbox, work: str) -> None:
    result = sandbox.execute(WORK[work], on_output=when_begun(sandbox.cancel))
    assert (result.success, result.exit_code) == (False, None)
    assert result.trap_reason is TrapReason.CANCELLED
    assert result.stdout.startswith("begun\n")
    assert "Cancelled: the call was cancelled" in result.stderr
    assert said(sandbox.execute("print('again')")) == "again\n"


def test_one_call_can_be_stopped_alone(house: House, sandbox: BaseSandbox) -> None:
    stops: list[Callable[[], object]] = []

    def stop_second() -> None:
        assert second.execute("print(1)", on_start=lambda stop: stop()).trap_reason is TrapReason.CANCELLED
        stops[0]()

    second = house.get(sandbox.session_id)
    result = sandbox.execute(WORK["computes"], on_start=stops.append, on_output=when_begun(stop_second))
    assert result.trap_reason is TrapReason.CANCELLED
    assert said(sandbox.execute("print('again')")) == "again\n"


def test_another_thread_stops_a_script_that_waits_for_input(sandbox: BaseSandbox) -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb"):
        result = sandbox.execute("input('begun')", stdin=source, on_output=when_begun(sandbox.cancel))
    assert result.trap_reason is TrapReason.CANCELLED
    assert result.stdout == "begun"


def test_a_call_that_waits_for_its_turn_is_stopped_too(house: House) -> None:
    first = house.new("one")
    second = house.get("one")
    waited: list[SandboxResult] = []

    def wait_and_stop() -> None:
        waiting = threading.Thread(target=lambda: waited.append(second.execute("open('made', 'w')")))
        waiting.start()
        while not second.cancel():
            pass
        waiting.join()
        first.cancel()

    result = first.execute(WORK["sleeps"], on_output=when_begun(wait_and_stop))
    assert result.trap_reason is TrapReason.CANCELLED
    assert waited[0].trap_reason is TrapReason.CANCELLED
    assert waited[0].files_created == []


def test_there_may_be_nothing_to_stop(sandbox: BaseSandbox) -> None:
    assert sandbox.cancel() == 0
    assert said(sandbox.execute("print('fine')")) == "fine\n"


def test_closing_stops_what_runs(house: House) -> None:
    sandbox = house.new()
    result = sandbox.execute(WORK["computes"], on_output=when_begun(sandbox.close))
    assert result.trap_reason is TrapReason.CANCELLED


# Exceptions of the caller


def test_an_exception_of_the_listener_is_raised_and_stops_the_script(sandbox: BaseSandbox) -> None:
    def listen(_stream: str, _data: bytes) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sandbox.execute("print('x')\nwhile True: pass", on_output=listen)
    assert sandbox.cancel() == 0
    assert said(sandbox.execute("print('again')")) == "again\n"


def test_an_interrupt_of_the_caller_stops_the_script(sandbox: BaseSandbox) -> None:
    def interrupt(_stream: str, _data: bytes) -> None:
        threading.Thread(target=signal.pthread_kill, args=(main, signal.SIGINT)).start()

    main = threading.main_thread().ident
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests hear none
    try:
        with pytest.raises(KeyboardInterrupt):
            sandbox.execute("print('x')\nwhile True: pass", on_output=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert said(sandbox.execute("print('again')")) == "again\n"


# Awaiting


def test_a_call_can_be_awaited(sandbox: BaseSandbox) -> None:
    told: list[tuple[str, bytes]] = []

    async def work() -> SandboxResult:
        return await sandbox.aexecute("print('x')", on_output=lambda *each: told.append(each))

    assert said(asyncio.run(work())) == "x\n"
    assert told == [("stdout", b"x\n")]


def test_many_calls_can_be_awaited_at_once(house: House) -> None:
    async def work() -> list[SandboxResult]:
        return await asyncio.gather(*(house.new().aexecute(f"print({n})") for n in range(8)))

    assert [said(result) for result in asyncio.run(work())] == [f"{n}\n" for n in range(8)]


def test_a_task_that_is_cancelled_stops_its_script(sandbox: BaseSandbox) -> None:
    async def work() -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(
            sandbox.aexecute(WORK["computes"], on_output=lambda _stream, _data: begun.set())
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert sandbox.cancel() == 0
    assert said(sandbox.execute("print('again')")) == "again\n"


def test_a_task_that_takes_too_long_stops_its_script(sandbox: BaseSandbox) -> None:
    async def work() -> None:
        async with asyncio.timeout(0.3):
            await sandbox.aexecute("while True: pass")

    with pytest.raises(TimeoutError):
        asyncio.run(work())
    assert sandbox.cancel() == 0

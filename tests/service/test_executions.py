"""What runs is bounded, can be watched, left and found again, and ends when nobody wants it."""

from __future__ import annotations

import asyncio
import gc
from typing import Any
from weakref import ref

import pytest

from carrel.errors import CarrelError, LimitError, RequestError, RoleDeniedError, UnknownRequestError
from carrel.runtimes.result import TrapReason
from carrel.service import executions
from carrel.service.execution_request import CodeRequest, CommandRequest
from carrel.service.executions import Execution, ExecutionResult, OutputChunk
from carrel.service.principal import Principal
from carrel.service.service import Service
from carrel.service.sessions.info import NewSession
from carrel.shell.result import ShellResult
from tests.service.conftest import OPERATOR, READER, STRANGER, WRITER, House

SLEEP = CodeRequest(code="import time\nprint('begun', flush=True)\ntime.sleep(60)")


async def printed(execution: Any, after: int = 0) -> bytes:
    return b"".join([piece.data async for piece in execution.events(after)])


def test_a_command_is_watched_and_tells_its_result(house: House) -> None:
    async def work(service: Service) -> tuple[bytes, Any]:
        await service.sessions.ensure(OPERATOR, "s1")
        await service.call(OPERATOR, "s1", "write", {"path": "a.txt", "data": "one\ntwo\n"})
        execution = await service.start(OPERATOR, "s1", CommandRequest(command="cat a.txt none"))
        return await printed(execution), await execution.result()

    seen, result = house.run(work)
    assert seen == b"one\ntwo\ncat: none: No such file or directory\n"
    assert (result.stdout, result.exit_code) == (b"one\ntwo\n", 1)
    assert result.stderr == b"cat: none: No such file or directory\n"


def test_a_reader_that_comes_back_goes_on_at_its_offset(house: House) -> None:
    async def work(service: Service) -> list[bytes]:
        await service.sessions.ensure(OPERATOR, "s1")
        execution = await service.start(OPERATOR, "s1", CommandRequest(command="echo abcdef"))
        await execution.result()
        found = service.execution(OPERATOR, "s1", execution.id)
        return [await printed(found, after) for after in (0, 3, 6, 7, 100)]

    assert house.run(work) == [b"abcdef\n", b"def\n", b"\n", b"", b""]


def test_a_named_shell_remembers_where_it_is_and_others_do_not(house: House) -> None:
    async def work(service: Service) -> list[Any]:
        await service.sessions.ensure(OPERATOR, "s1")
        said = []
        for command, shell in (("mkdir d", None), ("cd d", "x"), ("pwd", "x"), ("pwd", None), ("pwd", "y")):
            execution = await service.start(OPERATOR, "s1", CommandRequest(command=command, shell=shell))
            said.append((await execution.result()).stdout)
        return said[2:]

    assert house.run(work) == [b"/workspace/d\n", b"/workspace\n", b"/workspace\n"]


def test_code_runs_on_the_files_of_the_session_and_can_be_cancelled(house: House) -> None:
    async def work(service: Service) -> tuple[Any, Any]:
        await service.sessions.ensure(OPERATOR, "s1")
        await service.call(OPERATOR, "s1", "write", {"path": "a.txt", "data": "from a file"})
        execution = await service.start(OPERATOR, "s1", CodeRequest(code="print(open('a.txt').read())"))
        first = await execution.result()
        execution = await service.start(OPERATOR, "s1", SLEEP)
        async for piece in execution.events():
            assert piece.data == b"begun\n"
            execution.cancel()
        return first, await execution.result()

    first, second = house.run(work)
    assert first.stdout == "from a file\n"
    assert second.trap_reason is TrapReason.CANCELLED


def test_what_nobody_reads_any_more_is_cancelled_unless_somebody_comes_back(house: House) -> None:
    async def work(service: Service) -> Any:
        await service.sessions.ensure(OPERATOR, "s1")
        left = await service.start(OPERATOR, "s1", SLEEP)
        read = await service.start(OPERATOR, "s1", CodeRequest(code="pass"))
        for execution in (left, read):
            with execution.attached():
                pass
        with read.attached():
            return await asyncio.gather(left.result(), read.result())

    left, read = house.run(work, resume_seconds=0.05)
    assert left.trap_reason is TrapReason.CANCELLED
    assert read.success


def test_no_more_run_than_may(house: House) -> None:
    async def work(service: Service) -> list[LimitError]:
        for caller in (OPERATOR, WRITER):
            await service.sessions.ensure(caller, "s1")
        refused = []
        running = [await service.start(OPERATOR, "s1", SLEEP) for _ in range(2)]
        with pytest.raises(LimitError) as caught:
            await service.start(OPERATOR, "s1", SLEEP)
        refused.append(caught.value)
        running.append(await service.start(WRITER, "s1", SLEEP))
        for call in (
            lambda: service.start(WRITER, "s1", SLEEP),
            lambda: service.call_tool(WRITER, "s1", "bash", {"command": "ls"}),
        ):
            with pytest.raises(LimitError) as caught:
                await call()
            refused.append(caught.value)
        for each in running:
            each.cancel()
            await each.result()
        await asyncio.sleep(0)
        assert (await service.call_tool(WRITER, "s1", "bash", {"command": "ls"})).success
        return refused

    refused = house.run(work, executions=3, executions_per_caller=2)
    assert "serve.executions_per_caller allows no more" in refused[0].message
    assert "serve.executions allows no more" in refused[1].message
    assert [(error.code, error.limit) for error in refused] == [
        ("limit.executions", 2),
        ("limit.executions", 3),
        ("limit.executions", 3),
    ]
    assert all(error.retry_after_seconds for error in refused)


@pytest.mark.parametrize("work_of_reader", [CodeRequest(code="1"), CommandRequest(command="python -c 1")])
def test_a_role_without_code_runs_none(house: House, work_of_reader: CodeRequest | CommandRequest) -> None:
    async def work(service: Service) -> Any:
        await service.sessions.ensure(WRITER, "s1")
        execution = await service.start(READER, "s1", work_of_reader)
        return await execution.result()

    if isinstance(work_of_reader, CodeRequest):
        with pytest.raises(RoleDeniedError, match="'python_executor'"):
            house.run(work)
    else:
        assert house.run(work).stderr == b"python: command not allowed here\n"


def test_a_role_that_may_not_write_changes_nothing_by_a_command(house: House) -> None:
    async def work(service: Service) -> tuple[Any, list[Any]]:
        await service.sessions.ensure(WRITER, "s1")
        execution = await service.start(READER, "s1", CommandRequest(command="touch a"))
        return await execution.result(), await service.call(WRITER, "s1", "list", {})

    result, listed = house.run(work)
    assert result.exit_code != 0
    assert listed == []


def test_only_who_started_it_finds_it(house: House) -> None:
    async def work(service: Service) -> None:
        for name in ("s1", "s2"):
            await service.sessions.ensure(WRITER, name)
        execution = await service.start(WRITER, "s1", CommandRequest(command="ls"))
        for caller, session in ((READER, "s1"), (OPERATOR, "s1"), (WRITER, "s2")):
            with pytest.raises(UnknownRequestError):
                service.execution(caller, session, execution.id)
        await execution.result()

    house.run(work)


def test_what_cannot_be_run_at_all_is_an_error(house: House) -> None:
    async def work(service: Service) -> None:
        await service.sessions.ensure(OPERATOR, "s1")
        execution = await service.start(OPERATOR, "s1", CodeRequest(file="none.py"))
        assert await printed(execution) == b""
        await execution.result()

    with pytest.raises(CarrelError) as caught:
        house.run(work)
    assert caught.value.code == "path.missing"


def test_a_service_that_ends_cancels_what_runs(house: House) -> None:
    async def work(service: Service) -> Execution:
        await service.sessions.ensure(OPERATOR, "s1")
        execution: Execution = await service.start(OPERATOR, "s1", SLEEP)
        return execution

    assert house.run(work).is_done


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (CodeRequest, "exactly one"),
        (lambda: CodeRequest(code="1", file="a.py"), "exactly one"),
        (lambda: CodeRequest(code="1", timeout_seconds=0), "timeout_seconds"),
        (lambda: CommandRequest(command="ls", timeout_seconds=float("nan")), "timeout_seconds"),
        (lambda: CommandRequest(command="ls", timeout_seconds=-1), "timeout_seconds"),
    ],
)
def test_work_that_makes_no_sense_is_refused(make: Any, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        make()


def test_output_that_came_in_drops_is_told_in_larger_pieces() -> None:
    async def work() -> list[OutputChunk]:
        execution = Execution("s1", resume_seconds=1)
        for _ in range(5):
            execution.on_output("stdout", b"ab")
        execution.on_output("stderr", b"c")
        execution.on_output("stdout", b"d" * 20_000)
        execution.begin(_nothing)
        return [piece async for piece in execution.events()]

    pieces = asyncio.run(work())
    assert [(piece.stream, len(piece.data), piece.offset) for piece in pieces] == [
        ("stdout", 10, 10),
        ("stderr", 1, 11),
        ("stdout", 20_000, 20_011),
    ]


class _Ahead(asyncio.SelectorEventLoop):
    """A loop whose clock can be put forward."""

    seconds = 0.0

    def time(self) -> float:
        return super().time() + self.seconds


def test_the_time_to_come_back_begins_anew_for_whoever_came_back() -> None:
    async def work() -> list[bool]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, _Ahead)
        execution, never, stopped = Execution("s1", resume_seconds=100), asyncio.Event(), asyncio.Event()

        async def run() -> ShellResult:
            await never.wait()
            return await _nothing()

        execution.on_start(stopped.set)
        execution.begin(run)
        seen = []
        for seconds in (0, 60):
            loop.seconds = seconds
            with execution.attached():
                await asyncio.sleep(0)
        for seconds in (110, 170):
            loop.seconds = seconds
            for _ in range(3):
                await asyncio.sleep(0)
            seen.append(stopped.is_set())
        never.set()
        await execution.result()
        return seen

    with asyncio.Runner(loop_factory=_Ahead) as runner:
        assert runner.run(work()) == [False, True]


async def _nothing() -> ShellResult:
    return ShellResult(stdout=b"", stderr=b"", exit_code=0)


def test_whoever_comes_back_has_the_whole_time_to_come_back_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forever() -> ExecutionResult:
        await asyncio.Event().wait()
        raise AssertionError

    async def work() -> list[int]:
        loop = asyncio.get_running_loop()
        now = loop.time()
        monkeypatch.setattr(loop, "time", lambda: now)
        execution = Execution("s1", resume_seconds=100)
        execution.begin(forever)
        stops: list[int] = []
        execution.on_start(lambda: stops.append(1))
        counts = []
        for seconds in (60, 60, 60, 101):
            if seconds == 60:
                with execution.attached():
                    pass
            now += seconds
            for _ in range(3):
                await asyncio.sleep(0)
            counts.append(len(stops))
        return counts

    assert asyncio.run(work()) == [0, 0, 0, 1]


def _printing(size: int) -> CommandRequest:
    return CommandRequest(command=f"head -c {size} big")


async def _prepared(service: Service, *callers: Principal) -> None:
    for caller in callers:
        await service.sessions.create(caller, NewSession(session_id="s1"))
        await service.call(caller, "s1", "write", {"path": "big", "data": "x" * 100})


async def _ran(service: Service, caller: Principal, size: int) -> Execution:
    """A command that has ended and is remembered."""
    execution = await service.start(caller, "s1", _printing(size))
    await execution.wait()
    while len(service.executions):
        await asyncio.sleep(0)
    return execution


def _is_kept(service: Service, caller: Principal, execution: Execution) -> bool:
    try:
        return service.execution(caller, "s1", execution.id) is execution
    except UnknownRequestError:
        return False


@pytest.mark.parametrize("limit", ["KEPT_BYTES", "KEPT_BYTES_OF_CALLER"])
def test_only_so_much_output_is_kept(house: House, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(executions, limit, 150)

    async def work(service: Service) -> None:
        await _prepared(service, WRITER, STRANGER)
        other = await _ran(service, STRANGER, 60)
        mine = [await _ran(service, WRITER, size) for size in (60, 60, 60, 100)]
        assert [_is_kept(service, WRITER, one) for one in mine] == [False, False, False, True]
        assert _is_kept(service, STRANGER, other) == (limit == "KEPT_BYTES_OF_CALLER")
        with pytest.raises(UnknownRequestError, match="no longer kept"):
            await mine[0].result()
        assert (await mine[-1].result()).stdout == b"x" * 100
        # One that is larger than all that is kept is still told to who waits for it.
        large = await _ran(service, WRITER, 100)
        assert (await large.result()).stdout == b"x" * 100

    house.run(work)


def test_a_reader_is_told_that_the_rest_is_gone(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions, "KEPT_BYTES_OF_CALLER", 150)

    async def work(service: Service) -> None:
        await _prepared(service, WRITER)
        execution = await _ran(service, WRITER, 100)
        with execution.attached():
            reader = execution.events()
            assert (await anext(reader)).data == b"x" * 100
            unread = await _ran(service, WRITER, 20)
            # Those whom nobody reads go first.
            await _ran(service, WRITER, 45)
            assert not _is_kept(service, WRITER, unread)
            assert _is_kept(service, WRITER, execution)
            await _ran(service, WRITER, 100)
            with pytest.raises(UnknownRequestError, match="no longer kept"):
                await anext(reader)

    house.run(work)


def test_nothing_is_left_of_an_execution_that_is_forgotten(house: House) -> None:
    async def work(service: Service) -> None:
        await _prepared(service, WRITER)
        execution = await _ran(service, WRITER, 100)
        gone = ref(execution)
        service.executions._drop(execution.id)
        del execution
        # The thread in which it ran lets go of it in a moment; a cycle would wait for the collector.
        while gone() is not None:
            await asyncio.sleep(0)

    gc.disable()
    try:
        house.run(work)
    finally:
        gc.enable()

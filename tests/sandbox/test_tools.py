"""Guest code calls functions of the program, as if they were its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.runtimes.host_tools import Tools
from carrel.runtimes.result import SandboxResult, TrapReason
from carrel.sandbox.sandbox import BaseSandbox
from tests.sandbox.house import House, said
from tests.sessions.stand_ins import Events

PRICES = {"apple": 3, "pear": 4}


def price(name: str, count: int = 1) -> int:
    """The price of *count* pieces of fruit."""
    return PRICES[name] * count


def tried(call: str) -> str:
    """Code that prints the exception of a call."""
    return f"try:\n    print({call})\nexcept BaseException as error:\n    print(type(error).__name__, error)"


def test_code_calls_functions_of_the_program(sandbox: BaseSandbox) -> None:
    code = "total = price('apple') + price('pear', count=2)\nprint(total, echo([1, 2.5, None, {'a': 'é'}]))"
    result = sandbox.execute(code, tools={"price": price, "echo": lambda value: value})
    assert said(result) == "11 [1, 2.5, None, {'a': 'é'}]\n"


def test_a_script_that_is_a_file_calls_them_too(sandbox: BaseSandbox, house: House) -> None:
    (house.files(sandbox) / "main.py").write_text("print(price('apple'))")
    assert said(sandbox.execute_file("main.py", tools={"price": price})) == "3\n"


@pytest.mark.parametrize(
    ("call", "printed"),
    [
        ("price('plum')", "KeyError 'plum'"),
        ("price(5)", """TypeError price(): 'name' must fit {"type": "string"}, not 5"""),
        ("price()", "TypeError price(): missing a required argument: 'name'"),
        ("price(object())", "TypeError Object of type object is not JSON serializable"),
        ("fail()", "RuntimeError Custom: of the program"),
        ("ends()", "RuntimeError WithTwo: 1 2"),
    ],
)
def test_what_goes_wrong_is_an_exception_in_the_code(sandbox: BaseSandbox, call: str, printed: str) -> None:
    class Custom(Exception):
        pass

    class WithTwo(Exception):
        def __init__(self) -> None:
            super().__init__("1 2")

    def raising(error: Exception) -> Callable[[], None]:
        def fail() -> None:
            raise error

        return fail

    tools: Tools = {"price": price, "fail": raising(Custom("of the program")), "ends": raising(WithTwo())}
    assert said(sandbox.execute(tried(call), tools=tools)).splitlines()[0] == printed


@pytest.mark.attack
@pytest.mark.parametrize(
    "request_",
    [
        "b'tool ' + json.dumps(['other', [], {}]).encode()",
        "b'tool ' + json.dumps(['__init__', [], {}]).encode()",
        "b'tool ' + json.dumps(['price', [['apple']], {}]).encode()",
        "b'tool'",
        "b'tool \\xff'",
        "b'tool ' + b'[' * 10**6",
        "b'tool ' + b' ' * 2**25",
    ],
)
def test_code_that_speaks_to_the_host_itself_reaches_no_more(sandbox: BaseSandbox, request_: str) -> None:
    code = f"import _host, json\nanswer = json.loads(_host.call({request_}))\nprint(sorted(answer))\n"
    code += "print(price('apple'))"
    assert said(sandbox.execute(code, tools={"price": price})) == "['error', 'message']\n3\n"


def test_without_functions_there_is_nothing_to_call(sandbox: BaseSandbox) -> None:
    code = "import _host, json\nprint(json.loads(_host.call(b'tool [\"price\", [], {}]'))['error'])"
    nothing: tuple[Tools | None, ...] = (None, {})
    for tools in nothing:
        assert said(sandbox.execute(code, tools=tools)) == "NameError\n"
        assert said(sandbox.execute(tried("price('apple')"), tools=tools)).startswith("NameError")


def test_a_function_that_code_has_kept_works_only_while_it_is_given(house: House) -> None:
    kept = house.new("kept", stateful=True)
    assert said(kept.execute("f = price; print(f('apple'))", tools={"price": price})) == "3\n"
    assert "cannot be called here" in said(kept.execute(tried("f('apple')"), tools={"echo": lambda: 1}))
    assert "no tools to call" in said(kept.execute(tried("f('apple')")))
    assert said(kept.execute("print(f('pear'))", tools={"price": price})) == "4\n"


def test_a_call_that_takes_too_long_is_an_exception(sandbox: BaseSandbox) -> None:
    may_return = threading.Event()
    tools = {"wait": lambda: may_return.wait(60)}
    result = sandbox.execute(tried("wait()"), tools=tools, tool_timeout_seconds=0.05)
    may_return.set()
    assert said(result) == "TimeoutError the tool did not answer within 0.05 s\n"


def test_the_time_of_the_run_includes_its_calls(sandbox: BaseSandbox) -> None:
    may_return = threading.Event()
    result = sandbox.execute(
        tried("wait()"), tools={"wait": lambda: may_return.wait(60)}, timeout_seconds=0.5
    )
    may_return.set()
    assert (result.trap_reason, result.stdout) == (TrapReason.TIMEOUT, "")


def test_a_run_that_waits_for_a_call_is_stopped(sandbox: BaseSandbox) -> None:
    may_return = threading.Event()

    def wait() -> None:
        sandbox.cancel()
        may_return.wait(60)

    result = sandbox.execute(tried("wait()"), tools={"wait": wait})
    may_return.set()
    assert (result.trap_reason, result.stdout) == (TrapReason.CANCELLED, "")


def test_a_function_sees_the_context_of_the_caller(sandbox: BaseSandbox) -> None:
    caller: ContextVar[str] = ContextVar("caller")
    caller.set("ann")

    def who() -> str:
        return caller.get()

    assert said(sandbox.execute("print(who())", tools={"who": who})) == "ann\n"


def test_a_function_may_use_the_same_session(sandbox: BaseSandbox, house: House) -> None:
    def note(text: str) -> None:
        (house.files(sandbox) / "note").write_text(text)

    code = "note('hello')\nprint(open('note').read())"
    assert said(sandbox.execute(code, tools={"note": note})) == "hello\n"


def test_output_and_files_keep_their_order_around_a_call(sandbox: BaseSandbox) -> None:
    seen: list[str] = []
    code = "print('before')\nmark()\nprint('after')"
    result = sandbox.execute(
        code,
        tools={"mark": lambda: seen.append("mark")},
        on_output=lambda stream, data: seen.append(data.decode()),
    )
    assert said(result) == "before\nafter\n"
    assert seen == ["before\n", "mark", "after\n"]


def test_a_coroutine_function_runs_in_the_event_loop_of_the_caller(sandbox: BaseSandbox) -> None:
    async def double(value: float) -> float:
        await asyncio.sleep(0)
        return value * 2

    async def run() -> SandboxResult:
        loop = asyncio.get_running_loop()

        async def is_here() -> bool:
            return asyncio.get_running_loop() is loop

        return await sandbox.aexecute(
            "print(double(4), is_here())", tools={"double": double, "is_here": is_here}
        )

    assert said(asyncio.run(run())) == "8.0 True\n"
    with pytest.raises(TypeError, match="'double' is a coroutine function"):
        sandbox.execute("double(4)", tools={"double": double})


def test_a_coroutine_that_takes_too_long_is_cancelled(sandbox: BaseSandbox) -> None:
    async def run() -> SandboxResult:
        is_cancelled = asyncio.Event()

        async def hang() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                is_cancelled.set()

        result = await sandbox.aexecute(tried("hang()"), tools={"hang": hang}, tool_timeout_seconds=0.05)
        await is_cancelled.wait()
        return result

    assert said(asyncio.run(run())).startswith("TimeoutError")


def test_every_call_is_logged_without_its_values(house: House) -> None:
    events = Events()
    sandbox = house.new(logger=SandboxLogger(events))
    sandbox.execute("price('apple')\n" + tried("price('secret')"), tools={"price": price})
    calls = events.named("execution.tool")
    assert [(each["tool"], each.get("error"), each["session_id"]) for each in calls] == [
        ("price", None, sandbox.session_id),
        ("price", "KeyError", sandbox.session_id),
    ]
    assert "secret" not in repr(calls)


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ({"tools": {"a b": price}}, ValueError),
        ({"tools": {"f": lambda *args: None}}, TypeError),
        ({"tools": {"f": price}, "tool_timeout_seconds": 0}, ValueError),
    ],
)
def test_what_cannot_be_offered_is_refused_before_the_code_runs(
    sandbox: BaseSandbox, house: House, option: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        sandbox.execute("open('made', 'w')", **option)
    assert not (house.files(sandbox) / "made").exists()

"""A stateful sandbox keeps its variables from call to call, and says when it lost them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest

from carrel.config.settings import PythonSettings
from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.result import TrapReason
from carrel.sandbox.engines import make_engine
from carrel.sandbox.sandbox import BaseSandbox, PythonSandbox
from carrel.sandbox.workspace_source import SessionSource
from carrel.sessions.functions import delete_session_workspace
from carrel.sessions.manager import WorkspaceManager
from carrel.values import MIB
from tests.requirements import requirement
from tests.sandbox.house import House, error_name, said


@pytest.fixture
def kept(house: House) -> BaseSandbox:
    """A stateful sandbox."""
    return house.new("kept", stateful=True)


# What is kept


@requirement("ST-01")
def test_variables_last(kept: BaseSandbox) -> None:
    first = kept.execute("counter = 100; data = [1, 2, 3]")
    second = kept.execute("print(f'counter={counter}, data={data}')")
    assert said(second) == "counter=100, data=[1, 2, 3]\n"
    assert (first.metadata["state"], second.metadata["state"]) == ("new", "kept")


@requirement("ST-02")
def test_variables_and_files_change_together(kept: BaseSandbox) -> None:
    kept.execute("counter = 1; items = ['a', 'b']\nwith open('f', 'w') as f: f.write('a,b')")
    kept.execute("counter += 1\nitems.append('c')\nwith open('f', 'a') as f: f.write(',c')")
    assert said(kept.execute("print(counter, items, open('f').read())")) == "2 ['a', 'b', 'c'] a,b,c\n"


@requirement("ST-03")
def test_a_file_that_was_closed_is_no_hindrance(kept: BaseSandbox) -> None:
    assert said(kept.execute("with open('f', 'w') as f: f.write('x')")) == ""
    assert said(kept.execute("print(f.closed, f.name)")) == "True f\n"


def test_an_open_file_is_written_on(kept: BaseSandbox, house: House) -> None:
    first = kept.execute("f = open('log', 'w')\nf.write('one')")
    assert first.files_created == ["log"]
    assert (house.files(kept) / "log").read_text() == "one"
    second = kept.execute("f.write('two')")
    assert second.files_modified == ["log"]
    assert (house.files(kept) / "log").read_text() == "onetwo"
    assert said(kept.execute("f.close()\nprint(open('log').read())")) == "onetwo\n"


@pytest.mark.parametrize(
    ("first", "second", "output"),
    [
        ("import json as j", "print(j.dumps([1]))", "[1]"),
        ("def f(x): return x + 1", "print(f(1))", "2"),
        ("class C: n = 3", "print(C().n)", "3"),
        ("import os\nos.mkdir('sub')\nos.chdir('sub')", "print(os.getcwd())", "/app/sub"),
        ("import os\nos.environ['A'] = 'set'", "print(os.environ.get('A'))", "set"),
        ("open('/tmp/mine', 'w').write('x')", "print(open('/tmp/mine').read())", "x"),
        ("g = (n for n in range(9)); next(g)", "print(next(g))", "1"),
        (
            "import random; random.seed(1); a = random.random()",
            "random.seed(1); print(a == random.random())",
            "True",
        ),
        ("x = 1\ndel x", "print('x' in globals())", "False"),
        ("import sys\nsys.argv.append('x')", "import sys; print(sys.argv)", "['-c']"),
    ],
)
def test_the_interpreter_is_the_same(kept: BaseSandbox, first: str, second: str, output: str) -> None:
    kept.execute(first)
    assert said(kept.execute(second)) == f"{output}\n"


@requirement("ST-05")
@pytest.mark.parametrize(
    "end", ["raise ValueError", "import sys; sys.exit(3)", "this is no Python", "raise KeyboardInterrupt"]
)
def test_an_exception_and_an_exit_keep_the_variables(kept: BaseSandbox, end: str) -> None:
    kept.execute("x = 1")
    assert not kept.execute(f"x = 2\n{end}" if "Python" not in end else end).success
    result = kept.execute("print(x)")
    assert said(result) == ("1\n" if "Python" in end else "2\n")
    assert result.metadata["state"] == "kept"


@requirement("ST-09")
def test_nothing_that_is_printed_is_taken_for_state(kept: BaseSandbox) -> None:
    marker = '__SESSION_STATE__:{"x": "42"}__END_SESSION__'
    assert said(kept.execute(f"print({marker!r})")) == f"{marker}\n"
    assert error_name(kept.execute("x")) == "NameError"


def test_a_file_that_the_host_brought_meanwhile_can_be_imported(kept: BaseSandbox, house: House) -> None:
    assert error_name(kept.execute("import late")) == "ModuleNotFoundError"
    (house.files(kept) / "late.py").write_text("word = 'here'")
    assert said(kept.execute("import late; print(late.word)")) == "here\n"


def test_each_call_has_its_own_input_and_limits(kept: BaseSandbox) -> None:
    assert said(kept.execute("print(input())", stdin="one\n")) == "one\n"
    assert error_name(kept.execute("input()")) == "EOFError"
    assert said(kept.execute("print(input())", stdin="two\n")) == "two\n"
    assert said(kept.execute("import sys; print(sys.argv)", argv=["x"])) == "['-c', 'x']\n"


# Who shares it


def test_sandboxes_of_one_session_share_it(kept: BaseSandbox, house: House) -> None:
    kept.execute("x = 'shared'")
    assert said(house.get("kept", stateful=True).execute("print(x)")) == "shared\n"


def test_other_sessions_and_fresh_calls_do_not(kept: BaseSandbox, house: House) -> None:
    kept.execute("x = 'mine'")
    for other in (house.new(stateful=True), house.get("kept"), house.get("kept")):
        assert error_name(other.execute("print(x)")) == "NameError"
    assert said(kept.execute("print(x)")) == "mine\n"


def test_a_session_that_is_made_again_begins_anew(kept: BaseSandbox, house: House) -> None:
    kept.execute("x = 'old'")
    delete_session_workspace("kept", workspace_root=house.root)
    again = house.new("kept", stateful=True)
    assert error_name(again.execute("print(x)")) == "NameError"


# How it is lost


def test_a_timeout_loses_it_and_the_next_call_says_so(kept: BaseSandbox) -> None:
    kept.execute("x = 1")
    assert kept.execute("while True: pass", timeout_seconds=0.3).trap_reason is TrapReason.TIMEOUT
    result = kept.execute("print('x' in globals())")
    assert said(result) == "False\n"
    assert (result.metadata["state"], result.metadata["state_lost"]) == ("restarted", "timeout")
    assert kept.execute("pass").metadata["state"] == "kept"


def test_an_exception_of_the_caller_loses_it(kept: BaseSandbox) -> None:
    def fail(_stream: str, _data: bytes) -> None:
        raise ZeroDivisionError

    kept.execute("x = 1")
    with pytest.raises(ZeroDivisionError):
        kept.execute("print(x)", on_output=fail)
    assert kept.execute("pass").metadata["state"] == "restarted"


def test_it_can_be_reset(kept: BaseSandbox) -> None:
    assert kept.reset() is False
    kept.execute("x = 1")
    assert kept.reset() is True
    result = kept.execute("print('x' in globals())")
    assert said(result) == "False\n"
    assert result.metadata["state_lost"] == "it was reset"


Make = Callable[[str], PythonSandbox]


@pytest.fixture
def make(guest_cache: Path, tmp_path: Path) -> Iterator[Callable[..., Make]]:
    """Makes sandboxes with an engine of their own that keeps little."""
    engines = []

    def with_settings(*, stateful: int, idle_seconds: int, clock: Callable[[], float] = monotonic) -> Make:
        settings = PythonSettings(
            workers=1,
            ready=0,
            memory_bytes=64 * MIB,
            stateful=stateful,
            idle_seconds=idle_seconds,
            cache=guest_cache,
        )
        engine = make_engine(settings, clock=clock)
        engines.append(engine)
        manager = WorkspaceManager(tmp_path / "sessions")

        def sandbox(name: str) -> PythonSandbox:
            manager.get_workspace(name).close()
            place = SessionSource(manager, name)
            return PythonSandbox(place, engine=engine, policy=ExecutionPolicy(), stateful=True)

        return sandbox

    yield with_settings
    for engine in engines:
        engine.close()


@requirement("TTL-03")
def test_the_one_that_waited_longest_makes_room(make: Callable[..., Make]) -> None:
    sandbox = make(stateful=1, idle_seconds=900)
    one, two = sandbox("one"), sandbox("two")
    one.execute("x = 1")
    two.execute("x = 2")
    assert said(two.execute("print(x)")) == "2\n"
    result = one.execute("print('x' in globals())")
    assert said(result) == "False\n"
    assert result.metadata["state_lost"] == "it was evicted for others"


@requirement("TTL-03")
def test_one_that_is_idle_ends(make: Callable[..., Make]) -> None:
    now = [0.0]
    sandbox = make(stateful=8, idle_seconds=900, clock=lambda: now[0])("one")
    sandbox.execute("x = 1")
    now[0] = 899
    assert said(sandbox.execute("print(x)")) == "1\n"
    now[0] += 900
    result = sandbox.execute("print('x' in globals())")
    assert said(result) == "False\n"
    assert (result.metadata["state"], result.metadata["state_lost"]) == ("restarted", "it was idle")

"""`CarrelExecutor` runs steps in the guest as smolagents wants it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from smolagents.local_python_executor import InterpreterError, PythonExecutor

from carrel.adapters.smolagents import CarrelExecutor
from carrel.policy.execution import ExecutionPolicy
from carrel.sessions.functions import read_session_file, write_session_file
from carrel.values import Limits


def failure(executor: CarrelExecutor, code: str) -> str:
    with pytest.raises(InterpreterError) as caught:
        executor(code)
    return str(caught.value)


def test_it_is_an_executor(executor: CarrelExecutor) -> None:
    assert isinstance(executor, PythonExecutor)


def test_a_step_gives_its_last_value_and_what_it_printed(executor: CarrelExecutor) -> None:
    done = executor("import sys\nprint('out')\nprint('err', file=sys.stderr)\n(1, {'a'})")
    assert (done.output, done.is_final_answer) == ((1, {"a"}), False)
    assert sorted(done.logs.split()) == ["err", "out"]
    assert executor("x = 1").output is None


def test_variables_functions_and_imports_last(executor: CarrelExecutor) -> None:
    executor("import math\ndef area(r):\n    return math.pi * r ** 2\nradius = 2")
    assert executor("round(area(radius), 2)").output == 12.57


def test_variables_of_the_host_are_set_once_and_are_the_codes_from_then_on(executor: CarrelExecutor) -> None:
    executor.send_variables({"count": 1, "names": ("a", "b")})
    assert executor("count += 1\n(count, names)").output == (2, ("a", "b"))
    executor.send_tools({})
    assert executor("count").output == 2
    executor.send_variables({"count": 10})
    assert executor("count").output == 10
    with pytest.raises(TypeError, match="type object cannot be passed"):
        executor.send_variables({"thing": object()})


def test_tools_are_called_on_the_host_with_values(executor: CarrelExecutor) -> None:
    seen: list[Any] = []

    def search(query: str, *, limit: int = 3) -> list[dict[str, Any]]:
        seen.append((query, limit))
        return [{"title": query.upper(), "rank": 1}]

    executor.send_tools({"search": search})
    done = executor("print('before')\nfound = search('rain', limit=5)\nprint('after')\nfound[0]['title']")
    assert (done.output, done.logs) == ("RAIN", "before\nafter\n")
    assert seen == [("rain", 5)]
    assert executor("[search(str(n))[0]['title'] for n in range(20)][-1]").output == "19"


def test_a_tool_that_code_has_kept_is_still_that_tool(executor: CarrelExecutor) -> None:
    executor.send_tools({"double": lambda number: 2 * number})
    executor("kept = double")
    assert executor("kept(4)").output == 8


def test_tools_that_were_taken_away_cannot_be_called(executor: CarrelExecutor) -> None:
    executor.send_tools({"old": lambda: 1})
    executor("kept = old")
    executor.send_tools({"new": lambda: 2})
    assert executor("new()").output == 2
    assert "there is no tool 'old'" in failure(executor, "kept()")


def test_what_a_tool_raises_can_be_caught_by_its_name(executor: CarrelExecutor) -> None:
    class Own(Exception):
        pass

    def fails(kind: str) -> None:
        raise {"key": KeyError("k"), "own": Own("o"), "unicode": UnicodeDecodeError("a", b"", 0, 1, "r")}[
            kind
        ]

    executor.send_tools({"fails": fails})
    assert (
        executor("try:\n    fails('key')\nexcept KeyError as error:\n    found = str(error)\nfound").output
        == "'k'"
    )
    assert failure(executor, "fails('own')").endswith("RuntimeError: Own: o")
    assert "UnicodeDecodeError" in failure(executor, "fails('unicode')")
    assert "unexpected keyword argument 'other'" in failure(executor, "fails(other=1)")


def test_what_cannot_be_handed_to_a_tool_is_an_error_of_the_code(executor: CarrelExecutor) -> None:
    executor.send_tools({"keep": lambda value: None})
    assert failure(executor, "keep(print)").endswith("type builtin_function_or_method cannot be passed")


def test_large_values_pass(executor: CarrelExecutor) -> None:
    executor.send_tools({"echo": lambda value: value})
    assert executor("echo('x' * 3_000_000) == 'x' * 3_000_000").output is True


def test_a_final_answer_ends_the_step(executor: CarrelExecutor) -> None:
    executor.send_tools({"final_answer": lambda answer: {"answer": answer}})
    done = executor("print('a')\nfinal_answer(answer=(1, 2))\nprint('b')\n1 / 0")
    assert (done.output, done.logs, done.is_final_answer) == ({"answer": (1, 2)}, "a\n", True)


def test_a_final_answer_that_is_no_value_is_text_and_cannot_be_caught(executor: CarrelExecutor) -> None:
    executor.send_tools({"final_answer": lambda answer: answer})
    done = executor("try:\n    final_answer(range(3))\nexcept Exception:\n    pass\nprint('b')")
    assert (done.output, done.logs, done.is_final_answer) == ("range(0, 3)", "", True)


def test_code_that_names_a_variable_like_a_tool_has_the_tool_back_in_the_next_step(
    executor: CarrelExecutor,
) -> None:
    executor.send_tools({"final_answer": lambda answer: answer})
    executor("final_answer = 3")
    assert executor("final_answer(4)").output == 4


def test_errors_are_tracebacks_of_the_code_alone_and_leave_what_was_printed(executor: CarrelExecutor) -> None:
    executor("def half(x):\n    return x / 0")
    told = failure(executor, "print('before')\nhalf(3)")
    assert told.startswith("Code execution failed:\nTraceback (most recent call last):\n")
    assert 'File "<step 2>", line 2, in <module>' in told
    assert 'File "<step 1>", line 2, in half' in told
    assert told.endswith("ZeroDivisionError: division by zero")
    assert "carrel" not in told
    assert executor.state["_print_outputs"] == "before\n"
    assert "SyntaxError" in failure(executor, "x = (")
    assert "ModuleNotFoundError: No module named 'requests': not available here" in failure(
        executor, "import requests"
    )
    assert executor("half.__name__").output == "half"


def test_much_output_is_cut(guest: None, sessions: Path) -> None:
    with CarrelExecutor(workspace_root=sessions, max_print_outputs_length=1000) as executor:
        logs = executor("print('x' * 10_000)").logs
    assert len(logs) < 2000
    policy = ExecutionPolicy(stdout_max_bytes=100)
    with CarrelExecutor(workspace_root=sessions, policy=policy) as executor:
        executor.send_tools({"double": lambda number: 2 * number})
        done = executor("print('x' * 10_000)\ndouble(4)")
    assert done.output == 8
    assert done.logs == "x" * 100 + "\n(the rest of the output was dropped)"


def test_code_that_takes_too_long_is_stopped_and_begins_anew(guest: None, sessions: Path) -> None:
    with CarrelExecutor(workspace_root=sessions, policy=ExecutionPolicy(timeout_seconds=1)) as executor:
        executor.send_variables({"given": 1})
        executor("made = 2")
        assert failure(executor, "while True:\n    pass").endswith("failed: it took longer than 1 s")
        done = executor("(given, 'made' in globals())")
    assert done.output == (1, False)
    assert done.logs == "(Python was restarted because timeout: variables of earlier steps are gone.)\n"


def test_code_that_exits_or_needs_too_much_memory_is_an_error(guest: None, sessions: Path) -> None:
    with CarrelExecutor(workspace_root=sessions) as executor:
        assert "SystemExit: 3" in failure(executor, "import sys\nsys.exit(3)")
        assert executor("1").output == 1
        assert "exited with status 0" in failure(executor, "import os\nos._exit(0)")
        assert "emory" in failure(executor, "x = bytearray(10 ** 9)")


def test_the_files_are_those_of_the_session(executor: CarrelExecutor, sessions: Path) -> None:
    write_session_file(executor.session_id, "in.txt", "four", sessions)
    done = executor("open('/workspace/out.txt', 'w').write(open('in.txt').read() * 2)")
    assert done.output == 8
    executor.cleanup()
    assert read_session_file(executor.session_id, "out.txt", sessions) == b"fourfour"


def test_a_session_is_taken_up_by_its_id(executor: CarrelExecutor, sessions: Path) -> None:
    executor("open('a', 'w').write('kept')")
    with CarrelExecutor(executor.session_id, workspace_root=sessions) as again:
        assert again("open('a').read()").output == "kept"


def test_limits_hold_for_the_code(guest: None, sessions: Path) -> None:
    with CarrelExecutor(workspace_root=sessions, limits=Limits(disk_bytes=100)) as executor:
        told = failure(executor, "with open('a', 'w') as file:\n    file.write('x' * 101)")
        assert "OSError" in told
        assert read_session_file(executor.session_id, "a", sessions) == b""


def test_a_write_that_was_lost_is_told_also_beside_a_final_answer(guest: None, sessions: Path) -> None:
    with CarrelExecutor(workspace_root=sessions, limits=Limits(disk_bytes=100)) as executor:
        executor.send_tools({"final_answer": lambda answer: answer})
        code = "kept = open('a', 'w')\nkept.write('x' * 101)\n"
        lost = "the write of '/workspace/a' was lost: EDQUOT"
        assert failure(executor, code) == f"Code execution failed: {lost}"
        done = executor(f"{code}final_answer(1)")
        assert (done.output, done.logs) == (1, f"carrel: {lost}\n")


def test_cleaning_up_forgets_variables_and_can_be_repeated(executor: CarrelExecutor) -> None:
    executor("x = 1")
    executor.cleanup()
    executor.cleanup()
    assert "name 'x' is not defined" in failure(executor, "x")


@pytest.mark.attack
def test_code_reaches_nothing_of_the_host_by_what_carries_its_words(
    executor: CarrelExecutor, tmp_path: Path
) -> None:
    """It may say anything to the host; what comes of it is an error, or a tool that it may call anyway."""
    executor.send_tools({"double": lambda number: 2 * number})
    code = """
cells = [cell.cell_contents for cell in double.__closure__]
host = next(cell for cell in cells if hasattr(cell, "ask"))
told = []
for message in (
    {"ask": "tool", "name": "open", "args": ["/etc/passwd"], "kwargs": {}},
    {"ask": "tool", "name": "__import__", "args": ["os"], "kwargs": {}},
    {"ask": "tool", "name": "double", "args": [{"$": "module", "of": "os"}], "kwargs": {}},
    {"ask": "tool", "name": "double", "args": [4], "kwargs": {}},
    {"ask": "everything"},
):
    try:
        told.append(host.ask(message))
    except Exception as error:
        told.append(type(error).__name__)
told
"""
    assert executor(code).output == ["NameError", "NameError", "ValueError", 8, "KeyError"]
    assert str(tmp_path) not in str(executor("import os\n(dict(os.environ), sorted(globals()))").output)

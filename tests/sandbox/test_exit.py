"""A script ends as with `python`, and its exit status says so."""

from __future__ import annotations

import pytest

from carrel.runtimes.result import TrapReason
from carrel.sandbox.sandbox import BaseSandbox
from tests.requirements import requirement
from tests.sandbox.house import error_name, said


@requirement("E-09")
@pytest.mark.parametrize(
    ("code", "status", "stderr"),
    [
        ("sys.exit()", 0, ""),
        ("sys.exit(None)", 0, ""),
        ("sys.exit(0)", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit(True)", 1, ""),
        ("sys.exit(300)", 44, ""),
        ("sys.exit(-1)", 255, ""),
        ("sys.exit(256)", 0, ""),
        ("sys.exit(2**70)", 255, ""),
        ("sys.exit('text')", 1, "text\n"),
        ("sys.exit((1, 2))", 1, "(1, 2)\n"),
        ("raise SystemExit", 0, ""),
        ("raise SystemExit(4)", 4, ""),
        ("os._exit(7)", 7, ""),
        ("os._exit(0)", 0, ""),
    ],
)
def test_the_exit_status_is_that_of_python(sandbox: BaseSandbox, code: str, status: int, stderr: str) -> None:
    result = sandbox.execute(f"import os, sys\n{code}\nprint('never')")
    assert (result.exit_code, result.stderr, result.stdout) == (status, stderr, "")
    assert result.metadata["exit_code"] == status
    assert result.success == (status == 0)
    assert result.trap_reason is None


@requirement("E-05")
def test_an_uncaught_exception_is_a_result(sandbox: BaseSandbox) -> None:
    result = sandbox.execute("raise ValueError('Intentional error from guest')")
    assert error_name(result) == "ValueError"
    assert result.stderr.endswith("ValueError: Intentional error from guest\n")
    assert result.trap_reason is None


@requirement("E-07")
def test_a_caught_exception_is_none(sandbox: BaseSandbox) -> None:
    code = "try:\n    1 / 0\nexcept ZeroDivisionError:\n    print('caught')"
    assert said(sandbox.execute(code)) == "caught\n"


def test_an_interrupt_of_its_own_ends_a_script_with_130(sandbox: BaseSandbox) -> None:
    result = sandbox.execute("raise KeyboardInterrupt")
    assert result.exit_code == 130
    assert result.stderr.endswith("\nKeyboardInterrupt\n")


def test_a_script_can_abort(sandbox: BaseSandbox) -> None:
    result = sandbox.execute("import os\nprint('before', flush=True)\nos.abort()")
    assert (result.exit_code, result.trap_reason) == (None, TrapReason.ABORTED)
    assert result.stdout == "before\n"
    assert result.metadata["trapped"]
    assert said(sandbox.execute("print('after')")) == "after\n"


def test_exit_functions_run_last(sandbox: BaseSandbox) -> None:
    code = "import atexit\natexit.register(print, 'first')\natexit.register(print, 'second')\nprint('script')"
    assert said(sandbox.execute(code)) == "script\nsecond\nfirst\n"


def test_exit_functions_run_after_a_failure(sandbox: BaseSandbox) -> None:
    result = sandbox.execute("import atexit\natexit.register(print, 'bye')\n1 / 0")
    assert (result.stdout, result.exit_code) == ("bye\n", 1)


def test_finalizers_run_at_the_end_and_see_the_names_of_the_script(sandbox: BaseSandbox) -> None:
    code = """
word = "gone"
class Thing:
    def __del__(self):
        print(word)
thing = Thing()
thing.itself = thing
print("end")
"""
    assert said(sandbox.execute(code)) == "end\ngone\n"


def test_an_exception_hook_of_the_script_is_asked(sandbox: BaseSandbox) -> None:
    result = sandbox.execute("import sys\nsys.excepthook = lambda *a: print('hook', a[1])\n1 / 0")
    assert (result.stdout, result.stderr, result.exit_code) == ("hook division by zero\n", "", 1)


@pytest.mark.parametrize(
    "code", ["sys.stdout = None", "sys.stdout.close()", "sys.stderr.close()", "del sys.stdout"]
)
def test_a_script_may_do_without_its_streams(sandbox: BaseSandbox, code: str) -> None:
    assert sandbox.execute(f"import sys\n{code}").exit_code == 0


@requirement("E-43")
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import math; print(math.factorial(10))", "3628800"),
        ("a, b = 0, 1\nfor _ in range(20):\n    print(a, end=' ')\n    a, b = b, a + b", "4181 "),
        ("print(sum(range(100)))", "4950"),
        ("import statistics; print(statistics.mean([1, 2, 3, 4, 5]))", "3"),
    ],
)
def test_it_computes(sandbox: BaseSandbox, code: str, expected: str) -> None:
    assert said(sandbox.execute(code)).rstrip("\n").endswith(expected)

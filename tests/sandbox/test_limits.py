"""Memory, time, files, operations, instructions and depth all have an end, and the host lives on."""

from __future__ import annotations

import pytest

from carrel.runtimes.result import TrapReason
from carrel.sandbox.sandbox import BaseSandbox
from tests.requirements import requirement
from tests.sandbox.house import House, error_name, said

AGAIN = "print('still here')"


# Time


@requirement("E-16")
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time; time.sleep(100)",
        "sum(range(10**12))",
        "import re; re.match('(a+)+$', 'a' * 60 + 'b')",
        "try:\n    while True: pass\nexcept BaseException: print('caught')",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "import os\nwhile True: os.listdir('/app')",
        "while True: open('/tmp/x', 'w').write('x')",
        "import atexit\n@atexit.register\ndef forever():\n    while True: pass",
        "class C:\n    def __del__(self):\n        while True: pass\nc = C()",
        "import select; select.select([], [], [], 100)",
    ],
)
def test_the_time_ends_whatever_a_script_does(house: House, code: str) -> None:
    sandbox = house.new(timeout_seconds=0.1, file_operations=10**9)
    result = sandbox.execute(code)
    assert (result.success, result.exit_code, result.timed_out) == (False, None, True)
    assert result.metadata["trapped"]
    assert result.stdout == ""
    assert said(sandbox.execute(AGAIN, timeout_seconds=60)) == "still here\n"


def test_no_time_at_all_runs_nothing(house: House) -> None:
    result = house.new(timeout_seconds=0.0).execute("open('made', 'w')")
    assert result.trap_reason is TrapReason.TIMEOUT
    assert result.files_created == []


def test_files_that_were_written_before_the_time_was_up_are_kept(house: House) -> None:
    sandbox = house.new(timeout_seconds=0.3)
    result = sandbox.execute("with open('a', 'w') as f: f.write('x')\nwhile True: pass")
    assert result.files_created == ["a"]
    assert (house.files(sandbox) / "a").read_text() == "x"


# Memory


@requirement("E-11", "E-12")
@pytest.mark.parametrize(
    ("code", "memory_bytes"),
    [
        ("x = [0] * 50_000_000", 128_000_000),
        ("x = 'a' * 100_000_000", 64_000_000),
        ("x = bytearray(10**9)", 128_000_000),
        ("x = []\nwhile True: x.append(bytes(10**6))", 64_000_000),
        ("x = {}\nwhile True: x[len(x)] = str(len(x))", 64_000_000),
        ("x = 'a'\nwhile True: x += x", 64_000_000),
    ],
)
def test_too_much_memory_is_an_error_of_the_script(house: House, code: str, memory_bytes: int) -> None:
    sandbox = house.new(memory_bytes=memory_bytes)
    result = sandbox.execute(code)
    assert not result.success
    assert result.trap_reason is TrapReason.MEMORY
    assert "MemoryError" in result.stderr or result.exit_code is None
    assert result.memory_used_bytes is not None
    assert result.memory_used_bytes <= memory_bytes
    assert f"MemoryLimit: the script needed more than {memory_bytes} bytes" in result.stderr
    assert said(sandbox.execute(AGAIN)) == "still here\n"


@requirement("E-11")
def test_a_script_may_catch_it(sandbox: BaseSandbox) -> None:
    code = "try:\n    x = [0] * 50_000_000\nexcept MemoryError:\n    print('caught')"
    assert said(sandbox.execute(code)) == "caught\n"


def test_memory_within_the_limit_is_fine(house: House) -> None:
    assert (
        said(house.new(memory_bytes=512_000_000).execute("x = 'a' * 300_000_000\nprint(len(x))"))
        == "300000000\n"
    )


def test_a_file_that_does_not_fit_into_memory_cannot_be_changed(house: House) -> None:
    sandbox = house.new(memory_bytes=64_000_000)
    with open(house.files(sandbox) / "big", "wb") as file:
        file.truncate(90_000_000)
    result = sandbox.execute("open('big', 'r+b')")
    assert error_name(result) == "OSError"
    assert "File too large" in result.stderr


# Instructions


@requirement("E-10")
def test_fuel_runs_out(house: House) -> None:
    sandbox = house.new(fuel_budget=100_000_000)
    result = sandbox.execute("print('begun')\nwhile True: pass")
    assert (result.success, result.trap_reason) == (False, TrapReason.FUEL)
    assert result.metadata["trap_reason"] == "out_of_fuel"
    assert "OutOfFuel" in result.stderr
    assert result.fuel_consumed == result.metadata["fuel_budget"] == 100_000_000
    assert result.stdout == "begun\n"


def test_fuel_that_suffices_is_counted(house: House) -> None:
    sandbox = house.new(fuel_budget=10**9)
    few, many = (sandbox.execute(f"for n in range({count}): pass") for count in (10, 100_000))
    assert few.success
    assert many.success
    assert few.fuel_consumed is not None
    assert many.fuel_consumed is not None
    assert 0 < few.fuel_consumed < many.fuel_consumed < 10**9


@requirement("E-10")
def test_hardly_any_fuel_runs_hardly_anything(house: House) -> None:
    result = house.new(fuel_budget=100_000).execute("while True: pass")
    assert result.trap_reason is TrapReason.FUEL


def test_without_a_budget_nothing_is_counted(sandbox: BaseSandbox) -> None:
    assert sandbox.execute("pass").fuel_consumed is None


# Files


def test_open_files_have_a_ceiling(house: House) -> None:
    sandbox = house.new(open_files=10)
    code = """
import errno
files = []
try:
    while True:
        files.append(open(f"{len(files)}", "w"))
except OSError as error:
    print(len(files), errno.errorcode[error.errno])
files.pop().close()
files.append(open("again", "w"))
"""
    count, problem = said(sandbox.execute(code)).split()
    assert (int(count) <= 10, problem) == (True, "EMFILE")


def test_operations_on_files_have_a_ceiling(house: House) -> None:
    sandbox = house.new(file_operations=50)
    code = "import os\nwhile True:\n    try: os.listdir('/app')\n    except OSError: pass"
    result = sandbox.execute(code)
    assert (result.exit_code, result.trap_reason) == (None, TrapReason.FILE_OPERATIONS)
    assert "FileOperations: the script made more than 50 file operations" in result.stderr
    assert said(sandbox.execute(AGAIN)) == "still here\n"


# Depth


def test_endless_recursion_is_an_error_of_the_script(sandbox: BaseSandbox) -> None:
    assert error_name(sandbox.execute("def f(): f()\nf()")) == "RecursionError"
    code = "def f(): f()\ntry: f()\nexcept RecursionError: print('caught')"
    assert said(sandbox.execute(code)) == "caught\n"


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
        "x = []\nfor _ in range(100_000): x = [x]\nrepr(x)",
        "import sys\nsys.setrecursionlimit(10**9)\nx = []\nfor _ in range(100_000): x = [x]\nrepr(x)",
        "eval('(' * 100_000 + ')' * 100_000)",
        "eval('-' * 100_000 + '1')",
        "import json; json.loads('[' * 100_000)",
        "import re; re.compile('(' * 10_000 + ')' * 10_000)",
        "import pickle\nx = []\nfor _ in range(100_000): x = [x]\npickle.dumps(x)",
        "import sys\nsys.setrecursionlimit(10**9)\nclass C:\n def __eq__(s, o): return s == o\nC() == 1",
        "x = ()\nfor _ in range(1_000_000): x = (x,)\ndel x\nraise RecursionError",
    ],
)
def test_depth_ends_a_script_at_worst(sandbox: BaseSandbox, code: str) -> None:
    result = sandbox.execute(code)
    assert not result.success
    assert result.trap_reason in (None, TrapReason.STACK, TrapReason.MEMORY)
    assert said(sandbox.execute(AGAIN)) == "still here\n"


def test_recursion_within_the_limit_is_fine(sandbox: BaseSandbox) -> None:
    code = "def f(n): return n and 1 + f(n - 1)\nprint(f(900))"
    assert said(sandbox.execute(code)) == "900\n"

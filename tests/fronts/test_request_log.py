"""The log of requests, line by line, whoever reads it."""

from __future__ import annotations

import asyncio
import io
import logging

from carrel.fronts.request_log import BUFFER_LINES, BufferedLogHandler


def _logger(stream: io.StringIO) -> logging.Logger:
    logger = logging.Logger("requests")
    logger.addHandler(BufferedLogHandler(stream))
    return logger


def test_lines_come_together_and_none_is_lost() -> None:
    stream = io.StringIO()
    logger = _logger(stream)

    async def log() -> None:
        for number in range(3):
            logger.info("line %d", number)
        assert stream.getvalue() == ""
        logger.handlers[0].flush()

    asyncio.run(log())
    assert stream.getvalue() == "line 0\nline 1\nline 2\n"


def test_so_many_lines_do_not_wait() -> None:
    stream = io.StringIO()
    logger = _logger(stream)

    async def log() -> None:
        for _ in range(BUFFER_LINES):
            logger.info("line")
        assert stream.getvalue() == "line\n" * BUFFER_LINES

    asyncio.run(log())


def test_a_line_comes_by_itself_after_a_moment() -> None:
    stream = io.StringIO()
    logger = _logger(stream)

    async def log() -> None:
        logger.info("line")
        while not stream.getvalue():
            await asyncio.sleep(0)

    asyncio.run(log())
    assert stream.getvalue() == "line\n"


def test_without_an_event_loop_a_line_comes_at_once() -> None:
    stream = io.StringIO()
    _logger(stream).info("line")
    assert stream.getvalue() == "line\n"


def test_a_stream_that_nobody_reads_any_more_stops_nothing() -> None:
    stream = io.StringIO()
    logger = _logger(stream)
    stream.close()
    logger.info("line")

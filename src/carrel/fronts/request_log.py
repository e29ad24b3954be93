"""The log handler for requests: lines on a stream, several per write."""

from __future__ import annotations

import asyncio
import logging
from typing import TextIO

LOGGER = "carrel.access"
"""Name of the logger of requests, for all fronts."""
BUFFER_SECONDS = 0.1
"""How long a line is buffered: a write per line would cost more than a small request."""
BUFFER_LINES = 500
"""Maximum number of buffered lines."""


class BufferedLogHandler(logging.Handler):
    """Writes records to a stream after a moment, and at the latest at the end of the process."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Buffer one line."""
        self._lines.append(record.getMessage())
        if len(self._lines) >= BUFFER_LINES:
            self.flush()
        elif len(self._lines) == 1:
            self._flush_soon()

    def _flush_soon(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
        else:
            loop.call_later(BUFFER_SECONDS, self.flush)

    def flush(self) -> None:
        """Write the buffered lines; errors are ignored if the stream is closed."""
        self.acquire()
        try:
            lines, self._lines = self._lines, []
            if lines:
                self._stream.write("\n".join(lines) + "\n")
                self._stream.flush()
        except (OSError, ValueError):
            pass
        finally:
            self.release()

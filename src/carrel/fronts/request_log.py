"""The log handler for requests: lines on a stream, several per write."""

from __future__ import annotations

import asyncio
import logging
from typing import TextIO

LOGGER = "carrel.access"
"""Where every front tells of each request."""
KEPT_SECONDS = 0.1
"""How long a line may be kept; a write for each would take longer than many a request."""
KEPT_LINES = 500


class BufferedLogHandler(logging.Handler):
    """Writes what is logged to a stream: soon, and at the latest at the end of the process."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line for a moment."""
        self._lines.append(record.getMessage())
        if len(self._lines) >= KEPT_LINES:
            self.flush()
        elif len(self._lines) == 1:
            self._flush_soon()

    def _flush_soon(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
        else:
            loop.call_later(KEPT_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what was kept; nobody is told if nobody reads it any more."""
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

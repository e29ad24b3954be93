"""A real `carrel serve` in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from queue import Queue
from threading import Thread
from types import TracebackType
from typing import IO, Self

SERVING = re.compile(r"carrel: serving https?://(?P<host>[^ ]+):(?P<port>\d+)(?: grpc [^ ]+:(?P<grpc>\d+))?")
START_SECONDS = 60
STOP_SECONDS = 30


class NotServingError(Exception):
    """It ended instead of serving, or did not begin in time."""


class Server:
    """Serves a sessions directory on ports that are free, until it is left."""

    def __init__(self, sessions: Path, env: Mapping[str, str] | None = None, *words: str) -> None:
        self._said: deque[str] = deque(maxlen=200)
        self._serving: Queue[re.Match[str] | None] = Queue()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "carrel", "--sessions-dir", str(sessions), "serve"),
                *("--port", "0", "--grpc-port", "0", *words),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "CARREL_SERVE_SHUTDOWN_SECONDS": "1",
                "CARREL_SERVE_REQUIRE_KEY": "0",
                **(env or {}),
            },
        )
        assert self.process.stderr is not None
        self._listener = Thread(target=self._listen, args=(self.process.stderr,), daemon=True)
        self._listener.start()
        found = self._serving.get(timeout=START_SECONDS)
        if found is None:
            raise NotServingError(self.said)
        self.port = int(found["port"])
        self.grpc_port = int(found["grpc"] or 0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def grpc_address(self) -> str:
        return f"127.0.0.1:{self.grpc_port}"

    @property
    def said(self) -> str:
        """The last lines of its standard error."""
        return "".join(self._said)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it, and say with which status it ended."""
        self.process.send_signal(number)
        try:
            return self.process.wait(STOP_SECONDS)
        finally:
            self.process.kill()
            self.process.wait()
            self._listener.join()

    def _listen(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._said.append(line)
                if found := SERVING.search(line):
                    self._serving.put(found)
        self._serving.put(None)

"""A service for the examples of a page, at ports of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HTTP, GRPC = "127.0.0.1:8080", "127.0.0.1:50051"
"""Where the pages say that it is."""
_TOLD = re.compile(r"carrel: serving http://(\S+) grpc (\S+)\n")


@dataclass(frozen=True, slots=True)
class Running:
    """A service, and where it really is."""

    http: str
    grpc: str

    def there(self, text: str) -> str:
        """The text of a page, with the addresses that hold here."""
        return text.replace(HTTP, self.http).replace(GRPC, self.grpc)

    def told(self, text: str) -> str:
        """What was printed, with the addresses that pages tell."""
        return text.replace(self.http, HTTP).replace(self.grpc, GRPC)


def is_needed(text: str) -> bool:
    """Whether examples in *text* ask a service."""
    return HTTP in text or GRPC in text


@contextmanager
def serving(directory: Path, environment: Mapping[str, str]) -> Iterator[Running]:
    """A service that was started in *directory*."""
    argv = [sys.executable, "-m", "carrel", "serve", "--port", "0", "--grpc-port", "0", "--no-access-log"]
    with subprocess.Popen(argv, cwd=directory, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            told = _TOLD.fullmatch(process.stderr.readline())
            assert told is not None
            yield Running(told[1], told[2])
        finally:
            process.terminate()
            process.communicate(timeout=60)

"""A service for the examples of a page, on free ports."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HTTP, GRPC = "127.0.0.1:8080", "127.0.0.1:50051"
"""Addresses of the service in the pages."""
_READY = re.compile(r"carrel: serving http://(\S+) grpc (\S+)\n")


@dataclass(frozen=True, slots=True)
class Running:
    """A running service with its actual addresses."""

    http: str
    grpc: str

    def with_actual_addresses(self, text: str) -> str:
        """Replace the addresses of the pages in *text* by the actual ones."""
        return text.replace(HTTP, self.http).replace(GRPC, self.grpc)

    def with_page_addresses(self, text: str) -> str:
        """Replace the actual addresses in *text* by those of the pages."""
        return text.replace(self.http, HTTP).replace(self.grpc, GRPC)


def is_needed(text: str) -> bool:
    """Return whether examples in *text* call a service."""
    return HTTP in text or GRPC in text


@contextmanager
def serving(directory: Path, environment: Mapping[str, str]) -> Iterator[Running]:
    """Run a service in *directory*."""
    argv = [sys.executable, "-m", "carrel", "serve", "--port", "0", "--grpc-port", "0", "--no-access-log"]
    with subprocess.Popen(argv, cwd=directory, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            ready = _READY.fullmatch(process.stderr.readline())
            assert ready is not None
            yield Running(ready[1], ready[2])
        finally:
            process.terminate()
            process.communicate(timeout=60)

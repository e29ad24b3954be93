"""A real service in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from carrel.remote import local_token

_ADDRESSES = re.compile(r"carrel: serving (http://\S+) grpc (\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A service that runs."""

    http: str
    grpc: str
    directory: Path
    """Where its sessions are."""
    process: subprocess.Popen[str]

    @property
    def token(self) -> str:
        """The local token, for those who do not call the port of the service itself."""
        found = local_token.find("127.0.0.1", int(self.http.rpartition(":")[2]), os.environ)
        assert found is not None
        return found

    def url(self, protocol: str) -> str:
        """The address at which *protocol* is spoken."""
        return self.http if protocol == "http" else self.grpc


@contextmanager
def serving(directory: Path, settings: Mapping[str, str] | None = None) -> Iterator[Serving]:
    """Serve the sessions in *directory* in a process of its own while the body runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "carrel", "serve", "--port", "0", "--grpc-port", "0", "--no-access-log"],
        env={**os.environ, "CARREL_SESSIONS_DIR": str(directory), **(settings or {})},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    printed = ""
    while (found := _ADDRESSES.search(printed)) is None:
        line = process.stderr.readline()
        assert line, printed
        printed += line
    try:
        yield Serving(http=found[1], grpc=f"grpc://{found[2]}", directory=directory, process=process)
    finally:
        process.terminate()
        process.communicate(timeout=60)

"""A child process that exchanges lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench._errors import UnmeasuredError


class Lines:
    """A process, and what it says on standard error, kept for the day it goes wrong.

    Raises:
        UnmeasuredError: It does not start.
    """

    def __init__(
        self, command: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self._told = tempfile.TemporaryFile()  # noqa: SIM115  # closed on exit
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._told,
                cwd=cwd,
                env=environment(env),
            )
        except OSError as error:
            self._told.close()
            raise UnmeasuredError(f"it does not start: {error.strerror}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._told.close()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def send(self, message: Mapping[str, Any]) -> None:  # Any: any JSON value
        """Tell it something.

        Raises:
            UnmeasuredError: It has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise UnmeasuredError(self._last_words()) from None

    def receive(self) -> dict[str, Any]:
        """Hear what it says next.

        Raises:
            UnmeasuredError: It has ended, or says something else.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise UnmeasuredError(self._last_words())
        try:
            heard: dict[str, Any] = json.loads(line)
        except ValueError:
            raise UnmeasuredError(f"it says {line[:100]!r}") from None
        return heard

    def _last_words(self) -> str:
        self._process.wait()
        self._told.seek(0)
        return last_line(self._told.read().decode("utf-8", "replace"))


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for carrel, with bytecode cached between processes, as for an installed package."""
    return {**os.environ, **(more or {}), "PYTHONDONTWRITEBYTECODE": ""}


def last_line(text: str) -> str:
    """The last line that is not empty."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it said nothing"

"""Lets a test wait until a long call has started."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

from carrel.audit.logger import SandboxLogger
from carrel.workspace.workspace import Workspace

LONG = "touch begun; sleep 1000"
"""A command line that creates a file, and then does not end."""
LONG_CODE = "open('begun', 'w').close()\nwhile True: pass"


class StartSignal:
    """A logger that waits for the first change of a file."""

    def __init__(self) -> None:
        self._changed = Event()

    def info(self, event: str, **fields: Any) -> None:  # Any: whatever is logged
        """Record the change."""
        if event.startswith("session.file.") and fields.get("path") == "begun":
            self._changed.set()

    def warning(self, event: str, **fields: Any) -> None:
        """Do nothing."""

    error = warning

    def wait(self) -> None:
        """Wait for the change."""
        assert self._changed.wait(60)

    def workspace(self, directory: Path) -> Workspace:
        """Open a workspace with this logger."""
        return Workspace.open(directory, logger=SandboxLogger(self), session_id="abc-123")

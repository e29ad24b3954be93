"""Somebody else who changes a file just after a tool has read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from carrel.audit.logger import SandboxLogger
from carrel.workspace.workspace import Workspace

MEDDLED = "of somebody else\n"


class Meddler:
    """A logger that changes *file* when it hears for the first time that a file was read."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._is_done = False

    def info(self, event: str, **fields: Any) -> None:  # Any: whatever is logged
        """Change the file, once."""
        if event == "session.file.read" and not self._is_done:
            self._is_done = True
            self._file.write_text(MEDDLED)

    def warning(self, event: str, **fields: Any) -> None:
        """Nothing."""

    error = warning

    def workspace(self) -> Workspace:
        """A workspace on the directory of the file, in which that happens."""
        return Workspace.open(self._file.parent, logger=SandboxLogger(self))

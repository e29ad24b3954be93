"""A concurrent writer: it changes a file just after a tool has read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from carrel.audit.logger import SandboxLogger
from carrel.workspace.workspace import Workspace

OTHER_CONTENT = "of another writer\n"


class ConcurrentWriter:
    """A logger that changes *file* at the first event of a read."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._is_done = False

    def info(self, event: str, **fields: Any) -> None:  # Any: whatever is logged
        """Change the file, once."""
        if event == "session.file.read" and not self._is_done:
            self._is_done = True
            self._file.write_text(OTHER_CONTENT)

    def warning(self, event: str, **fields: Any) -> None:
        """Do nothing."""

    error = warning

    def workspace(self) -> Workspace:
        """Open the directory of the file as a workspace with this logger."""
        return Workspace.open(self._file.parent, logger=SandboxLogger(self))

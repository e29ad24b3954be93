"""`Script`: Python source with its arguments, working directory, standard input and tools."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    # Workers import this module, and need no more of it.
    from carrel.runtimes.host_tools import HostTools

CODE_NAME = "<string>"
"""Name in tracebacks of code that is not in a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Source text, with its arguments, working directory, standard input and tools."""

    source: bytes
    """Python source, in UTF-8 unless it declares another encoding."""
    file: str | None = None
    """Path in the guest, if it is a file: `__file__`, whose directory is first in `sys.path`."""
    label: str | None = None
    """Name of a script that is not a file of the guest."""
    argv: tuple[str, ...] = ()
    """Arguments after the name of the script."""
    cwd: str
    """Working directory."""
    stdin: bytes | BinaryIO = field(default=b"", repr=False)
    """Standard input: bytes, or a file that is read on demand."""
    keep_output: bool = True
    """Whether the result has the output, in addition to `on_output` receiving it."""
    show_last_value: bool = False
    """Whether the value of a last expression is written to standard output, unless it is `None`."""
    tools: HostTools | None = None
    """Functions of this process that the script may call."""

    @property
    def name(self) -> str:
        """Name of the script in tracebacks."""
        return self.file or self.label or CODE_NAME

    def guest_request(self) -> dict[str, object]:
        """Return the fields of the script in the request to the guest."""
        return {
            "name": self.name,
            "file": self.file,
            "argv": [self.file or self.label or "-c", *self.argv],
            "path": "" if self.file is None else os.path.dirname(self.file),
            "cwd": self.cwd,
            "show": self.show_last_value,
            "tools": [] if self.tools is None else self.tools.names,
        }

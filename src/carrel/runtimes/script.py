"""`Script`: Python source with its arguments, working directory and standard input."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import BinaryIO

CODE_NAME = "<string>"
"""What tracebacks call code that is in no file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Source text, and what its interpreter would be told on a command line."""

    source: bytes
    """Python, in UTF-8 unless its first lines say otherwise."""
    file: str | None = None
    """Where the guest has it, if anywhere: it is `__file__`, and its directory the first of `sys.path`."""
    label: str | None = None
    """What it is called if it is in no file of the guest."""
    argv: tuple[str, ...] = ()
    """What follows the name of the script."""
    cwd: str
    """The directory in which it begins."""
    stdin: bytes | BinaryIO = field(default=b"", repr=False)
    """Its input: bytes, or something to read when the script does."""
    keep_output: bool = True
    """Whether its output is kept for the result, besides being handed on as it comes."""

    @property
    def name(self) -> str:
        """What tracebacks call it."""
        return self.file or self.label or CODE_NAME

    def order(self) -> dict[str, object]:
        """What the guest is told about it."""
        return {
            "name": self.name,
            "file": self.file,
            "argv": [self.file or self.label or "-c", *self.argv],
            "path": "" if self.file is None else os.path.dirname(self.file),
            "cwd": self.cwd,
        }

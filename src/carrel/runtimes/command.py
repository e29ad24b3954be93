"""A command that somebody wants to run in a container."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import BinaryIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program with its arguments, never a line for a shell."""

    argv: tuple[str, ...]
    """The program and its arguments, each as it is."""
    cwd: str
    """The directory in which it begins."""
    stdin: bytes | BinaryIO = field(default=b"", repr=False)
    """Its input: bytes, or something to read as the program reads."""
    preface: bytes = field(default=b"", repr=False)
    """What its input begins with, before *stdin*."""
    keep_output: bool = True
    """Whether its output is kept for the result, besides being handed on as it comes."""

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise ValueError("there is no program to run: argv is empty")
        for index, each in enumerate(self.argv):
            if not isinstance(each, str):
                raise TypeError(f"argv must be texts, which number {index} is not: {type(each).__name__}")
            if "\0" in each:
                raise ValueError(f"argv must be texts without NUL, which number {index} is not")

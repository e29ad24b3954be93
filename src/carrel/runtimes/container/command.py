"""`ContainerCommand`: a program with its arguments, and the image's own `python3` as one.

A file of the workspace is run as it is. Other source comes on standard input before the script's own input,
because a single argument can be no longer than 128 KiB and no file is to be left behind. What reads it takes
exactly as many bytes as there are and leaves the rest to the script.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import BinaryIO

from carrel.runtimes.script import Script


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerCommand:
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


PYTHON = "python3"
_RUN = """\
def _begin():
    import os, sys
    size, name, first = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    sys.argv[:] = [first, *sys.argv[4:]]
    ours = {sys._getframe(0).f_code, sys._getframe(1).f_code}
    def show(kind, error, trace):
        while trace is not None and trace.tb_frame.f_code in ours:
            trace = trace.tb_next
        sys.__excepthook__(kind, error.with_traceback(trace), trace)
    sys.excepthook = show
    source = bytearray()
    while len(source) < size:
        piece = os.read(0, size - len(source))
        if not piece:
            os._exit(125)
        source += piece
    del globals()["_begin"]
    return compile(bytes(source), name, "exec", dont_inherit=True)
exec(_begin())
"""
"""Reads the source and becomes the script; tracebacks show the script's own lines only."""
_CHECK = """\
import sys, warnings
warnings.simplefilter("ignore")
try:
    compile(sys.stdin.buffer.read(), "<string>", "exec", dont_inherit=True)
except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
    sys.exit(3)
"""
IS_NO_PYTHON = 3
"""How the check ends for source that cannot be compiled."""


def python_command(script: Script, cwd: str, file: str | None) -> ContainerCommand:
    """The command that runs *script* in the directory *cwd*, where it is *file* if it is in one."""
    if file is not None:
        argv: tuple[str, ...] = (PYTHON, file, *script.argv)
        return ContainerCommand(argv=argv, cwd=cwd, stdin=script.stdin, keep_output=script.keep_output)
    first = script.label or "-c"
    return ContainerCommand(
        argv=(PYTHON, "-c", _RUN, str(len(script.source)), script.name, first, *script.argv),
        cwd=cwd,
        stdin=script.stdin,
        preface=script.source,
        keep_output=script.keep_output,
    )


def check_command(source: bytes) -> ContainerCommand:
    """The command that compiles *source* and runs nothing of it."""
    return ContainerCommand(argv=(PYTHON, "-I", "-c", _CHECK), cwd="/", stdin=source)

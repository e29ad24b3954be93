"""`ContainerCommand`: a program with its arguments; and the commands that run the image's `python3`.

A file of the workspace is run directly. Other source is sent on standard input before the script's own input,
because a single argument is limited to 128 KiB and no file may be left behind. The loader reads exactly the
bytes of the source and leaves the rest to the script.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import BinaryIO

from carrel.runtimes.script import Script


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerCommand:
    """A program with its arguments, never a shell command line."""

    argv: tuple[str, ...]
    """The program and its arguments."""
    cwd: str
    """Working directory."""
    stdin: bytes | BinaryIO = field(default=b"", repr=False)
    """Standard input: bytes, or a file that is read on demand."""
    preface: bytes = field(default=b"", repr=False)
    """Bytes that precede *stdin* on standard input."""
    keep_output: bool = True
    """Whether the result has the output, in addition to `on_output` receiving it."""

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise ValueError("no program to run: argv is empty")
        for index, each in enumerate(self.argv):
            if not isinstance(each, str):
                raise TypeError(f"argv must be strings, but item {index} is {type(each).__name__}")
            if "\0" in each:
                raise ValueError(f"argv must be strings without NUL, but item {index} has one")


PYTHON = "python3"
_RUN = """\
def _begin():
    import os, sys
    size, has_value, name, first = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
    sys.argv[:] = [first, *sys.argv[5:]]
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
    tree, last = bytes(source), None
    if has_value:
        import ast
        tree = compile(tree, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(b";"):
            last = ast.Interactive(body=[tree.body.pop()])
    codes = [compile(tree, name, "exec", dont_inherit=True)]
    return codes if last is None else [*codes, compile(last, name, "single", dont_inherit=True)]
[*map(exec, _begin())]
"""
"""Loader that reads the source and runs it as the main module; tracebacks show only lines of the script.

`map` leaves no name of ours in the module.
"""
_CHECK = """\
import sys, warnings
warnings.simplefilter("ignore")
try:
    compile(sys.stdin.buffer.read(), "<string>", "exec", dont_inherit=True)
except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
    sys.exit(3)
"""
NOT_PYTHON = 3
"""Exit status of the check for source that does not compile."""


def python_command(script: Script, cwd: str, file: str | None) -> ContainerCommand:
    """Return the command that runs *script* in the directory *cwd*, from *file* if it is one."""
    if file is not None:
        argv: tuple[str, ...] = (PYTHON, file, *script.argv)
        return ContainerCommand(argv=argv, cwd=cwd, stdin=script.stdin, keep_output=script.keep_output)
    first = script.label or "-c"
    size, show = str(len(script.source)), "show" if script.show_last_value else ""
    return ContainerCommand(
        argv=(PYTHON, "-c", _RUN, size, show, script.name, first, *script.argv),
        cwd=cwd,
        stdin=script.stdin,
        preface=script.source,
        keep_output=script.keep_output,
    )


def check_command(source: bytes) -> ContainerCommand:
    """Return the command that compiles *source* without running it."""
    return ContainerCommand(argv=(PYTHON, "-I", "-c", _CHECK), cwd="/", stdin=source)

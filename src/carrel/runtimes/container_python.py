"""Python as a command: the image's own `python3`.

A file of the workspace is run as it is. Other source comes on standard input before the script's own input,
because a single argument can be no longer than 128 KiB and no file is to be left behind. What reads it takes
exactly as many bytes as there are and leaves the rest to the script.
"""

from __future__ import annotations

from carrel.runtimes.command import Command
from carrel.runtimes.script import Script

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


def python_command(script: Script, cwd: str, file: str | None) -> Command:
    """The command that runs *script* in the directory *cwd*, where it is *file* if it is in one."""
    if file is not None:
        argv: tuple[str, ...] = (PYTHON, file, *script.argv)
        return Command(argv=argv, cwd=cwd, stdin=script.stdin, keep_output=script.keep_output)
    first = script.label or "-c"
    return Command(
        argv=(PYTHON, "-c", _RUN, str(len(script.source)), script.name, first, *script.argv),
        cwd=cwd,
        stdin=script.stdin,
        preface=script.source,
        keep_output=script.keep_output,
    )


def check_command(source: bytes) -> Command:
    """The command that compiles *source* and runs nothing of it."""
    return Command(argv=(PYTHON, "-I", "-c", _CHECK), cwd="/", stdin=source)

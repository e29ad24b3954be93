"""What stands around a script in the guest; this text runs there, as the module `_carrel`.

`run` runs a script as `python` would and exits with its status; `end_files` is for what it left open.
All that it says is the guest's own word, since a script can change anything here: the worker uses it for
nothing but the result of that script.
"""

import atexit
import builtins
import errno
import gc
import io
import linecache
import marshal
import os
import sys

import _host

_plain_unraisable = sys.unraisablehook
_BUFFERED = io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom
_STDIN, _STDERR = 0, 2
_MODULES = "sandbox_utils"
"""The package of carrel that a script may import."""


def run(order):
    """Run a script, and exit with its status."""
    order = marshal.loads(order)
    if order["check"]:
        return _exit(_check(order))
    if order["fresh"]:
        _begin(order)
    main = sys.modules["__main__"].__dict__
    _prepare(order, main)
    status = _status(_execute(order, main))
    if order["fresh"] and order["last"]:
        status = _run_exit_functions() or status
        del main
        _drop_main()
    return _exit(_flush() or status)


def _exit(status):
    """End the turn with that status; the interpreter lives on, and has what it needs for that."""
    sys.modules.setdefault("builtins", builtins)
    for name in ("stdout", "stderr"):
        if not hasattr(sys, name):
            setattr(sys, name, None)
    if status:
        raise SystemExit(status)


def warm(order):
    """Go the way that a script will go, and that of its errors."""
    import traceback

    order = marshal.loads(order)
    for _ in range(3):
        _begin(order)
        main = sys.modules["__main__"].__dict__
        _prepare(order, main)
        traceback.format_exception(_execute(order, main))
        _flush()
        del sys.path[0]
    linecache.cache.clear()


def _begin(order):
    """Make a new interpreter look like one that was started for this script."""
    # What is there now stays: the collector need not look at it when the script ends.
    gc.freeze()
    sys.dont_write_bytecode = True
    sys.stdout.reconfigure(line_buffering=True)
    sys.modules["__main__"] = type(sys)("__main__")
    sys.modules["__main__"].__builtins__ = builtins
    sys.path[:0] = [order["path"], *order["paths"]]
    try:
        os.chdir(order["cwd"])
    except OSError:
        pass


def _prepare(order, main):
    """Set what may differ from one script to the next."""
    sys.argv = list(order["argv"])
    if order["env"] is not None:
        os.environ.clear()
        os.environ.update(order["env"])
    if order["file"] is not None:
        main["__file__"] = order["file"]
    if order["input"]:
        sys.stdin = sys.__stdin__ = open(_STDIN, closefd=False, encoding="utf-8")
    if not order["fresh"]:
        # Files may have come since the last script; those of the library are always the same.
        for finder in sys.path_importer_cache.values():
            if type(finder).__name__ == "FileFinder":
                finder.invalidate_caches()


def _execute(order, main):
    """Run it; what it raised, or `None`."""
    source, name = order["source"], order["name"]
    try:
        code = compile(source, name, "exec", dont_inherit=True)
    except BaseException as error:
        return error.with_traceback(None)
    text = source.decode("utf-8", "replace")
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    try:
        exec(code, main)  # this is what it is for
    except BaseException as error:
        return error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
    return None


def _check(order):
    """Whether the source compiles, as an exit status."""
    try:
        compile(order["source"], order["name"], "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return 1
    return 0


def _status(error):
    """The exit status that *error* leads to, told on standard error as `python` tells it."""
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        return _asked_status(error.code)
    try:
        # One with a message is of the parser, whose stack has an end of its own.
        if isinstance(error, MemoryError) and not error.args:
            _host.call(b"memory")
        sys.excepthook(type(error), error, error.__traceback__)
    except BaseException:
        pass
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def _asked_status(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(2**63) <= code < 2**63 else 0xFF
    try:
        print(code, file=sys.stderr)
    except BaseException:
        pass
    return 1


def _run_exit_functions():
    try:
        atexit._run_exitfuncs()
    except BaseException as error:
        return _status(error)
    return 0


def _flush():
    """Hand over what is buffered; 120 if that fails, as with `python`."""
    status = 0
    for name in ("stdout", "stderr"):
        try:
            stream = getattr(sys, name, None)
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            status = 120
            # The engine is going to flush it too.
            setattr(sys, name, getattr(sys, f"__{name}__"))
    return status


def _drop_main():
    """Let go of what the script has made, as an interpreter does at its end: finalizers run, files close."""
    _flush_files()
    try:
        sys.modules.pop("__main__", None)
        gc.collect()
    except BaseException:
        pass


def _flush_files():
    """Have no file hold back what the collector, which closes in any order, would lose."""
    for file in _writing() if _host.call(b"writing") else ():
        try:
            file.flush()
        except BaseException:
            pass


def end_files(is_last):
    """Close the files that the script left open for writing, or flush those that it may use again."""
    for file in _writing():
        try:
            file.close() if is_last else file.flush()
        except BaseException as error:
            _lost(error, file)
    _flush()


def _writing():
    """The open files that hold back what is written to them, the outer ones first."""
    found = [one for one in gc.get_objects() if isinstance(one, _BUFFERED)]
    found = [one for one in found if not one.closed and one.writable() and one.fileno() > _STDERR]
    return sorted(found, key=lambda one: not isinstance(one, io.TextIOWrapper))


def _lost(error, file):
    """Tell of a write that failed where no code of the script could see it."""
    if isinstance(error, MemoryError):
        _host.call(b"memory")
    if isinstance(error, OSError):
        name = getattr(file, "name", None)
        path = os.path.abspath(name) if isinstance(name, str) and name else ""
        _host.call(f"lost {errno.errorcode.get(error.errno, 'EIO')} {path}".encode("utf-8", "replace"))


def _unraisable(problem):
    try:
        _lost(problem.exc_value, problem.object)
    finally:
        _plain_unraisable(problem)


class _Finder:
    """Finds the modules of carrel after all others; their source is asked for when they are imported."""

    def __init__(self, source):
        self._source = source

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] != _MODULES:
            return None
        source = _host.call(b"module " + name.encode("utf-8", "replace"))
        if not source:
            return None
        return type(sys.__spec__)(name, cls(source), is_package=name == _MODULES)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(compile(self._source, f"<{module.__name__}>", "exec", dont_inherit=True), module.__dict__)


sys.unraisablehook = _unraisable
sys.meta_path.append(_Finder)

"""Runs a script inside the guest; this source is executed there as the module `_carrel`.

`run` runs a script as `python` does and exits with its status; `end_files` handles the files it left open.
Code of carrel that runs in a script and reports its errors itself calls `explain_missing_modules` first.
A script can change anything here, so nothing that this module reports is trusted: the worker uses it only for
the result of that script.
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

_original_flags = sys.flags
_original_unraisable = sys.unraisablehook
_BUFFERED = io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom
_STDIN, _STDERR = 0, 2
_MODULES = "sandbox_utils"
"""The package that a script may import from carrel."""


def run(request):
    """Run a script and exit with its status."""
    request = marshal.loads(request)
    if request["check"]:
        return _exit(_check(request))
    if request["fresh"]:
        _begin(request)
    main = sys.modules["__main__"].__dict__
    _prepare(request, main)
    status = _status(_execute(request, main))
    if request["fresh"] and request["last"]:
        status = _run_exit_functions() or status
        del main
        _drop_main()
    return _exit(_flush() or status)


def _exit(status):
    """End this run with the given status; the interpreter stays usable for the next run."""
    sys.modules.setdefault("builtins", builtins)
    for name in ("stdout", "stderr"):
        if not hasattr(sys, name):
            setattr(sys, name, None)
    if status:
        raise SystemExit(status)


def warm(request):
    """Execute the code paths of a script and of its errors in advance."""
    import traceback

    request = marshal.loads(request)
    for _ in range(3):
        _begin(request)
        main = sys.modules["__main__"].__dict__
        _prepare(request, main)
        traceback.format_exception(_execute(request, main))
        _flush()
        del sys.path[0]
    linecache.cache.clear()


def _begin(request):
    """Make a fresh interpreter look like one that was started for this script."""
    # Existing objects stay alive: the collector can skip them when the script ends.
    gc.freeze()
    sys.dont_write_bytecode = True
    sys.stdout.reconfigure(line_buffering=True)
    sys.modules["__main__"] = type(sys)("__main__")
    sys.modules["__main__"].__builtins__ = builtins
    sys.path[:0] = [request["path"], *request["paths"]]
    try:
        os.chdir(request["cwd"])
    except OSError:
        pass


def _prepare(request, main):
    """Set everything that may differ between scripts."""
    sys.argv = list(request["argv"])
    if request["env"] is not None:
        os.environ.clear()
        os.environ.update(request["env"])
    if request["file"] is not None:
        main["__file__"] = request["file"]
    main.update({name: _tool(name) for name in request["tools"]})
    if request["input"]:
        sys.stdin = sys.__stdin__ = open(_STDIN, closefd=False, encoding="utf-8")
    if not request["fresh"]:
        # Files may have been added since the last script; those of the library never change.
        for finder in sys.path_importer_cache.values():
            if type(finder).__name__ == "FileFinder":
                finder.invalidate_caches()


def _tool(name):
    """Return a function that calls a function of the host, with values that JSON can hold."""

    def call(*args, **kwargs):
        import json

        request = json.dumps([name, args, kwargs]).encode()
        answer = json.loads(_host.call(b"tool " + request))
        if "error" in answer:
            raise _error(answer["error"], answer["message"])
        return answer["value"]

    call.__name__ = call.__qualname__ = name
    return call


def _error(kind, message):
    """Return the exception of a function of the host: a builtin one, or else a `RuntimeError`."""
    builtin = getattr(builtins, kind, None)
    if isinstance(builtin, type) and issubclass(builtin, Exception):
        try:
            return builtin(message)
        except TypeError:
            pass
    return RuntimeError(f"{kind}: {message}")


def _execute(request, main):
    """Run the script; return the exception that it raised, or `None`."""
    source, name = request["source"], request["name"]
    try:
        codes = _compiled_to_show(source, name) if request["show"] else _compiled(source, name)
    except BaseException as error:
        return error.with_traceback(None)
    text = source.decode("utf-8", "replace")
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    try:
        for code in codes:
            exec(code, main)  # the purpose of this module
    except BaseException as error:
        return error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
    return None


def _compiled(source, name):
    return [compile(source, name, "exec", dont_inherit=True)]


def _compiled_to_show(source, name):
    """Compile a script so that the value of a last expression is passed to `sys.displayhook`."""
    import _ast

    tree = compile(source, name, "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
    if not tree.body or not isinstance(tree.body[-1], _ast.Expr) or source.rstrip().endswith(b";"):
        return _compiled(tree, name)
    last = _ast.Interactive(body=[tree.body.pop()])
    return [*_compiled(tree, name), compile(last, name, "single", dont_inherit=True)]


def _check(request):
    """Return whether the source compiles, as an exit status."""
    try:
        compile(request["source"], request["name"], "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return 1
    return 0


def _status(error):
    """Return the exit status for *error*, and report it on standard error as `python` does."""
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        return _exit_status(error.code)
    try:
        # One with a message comes from the parser, whose stack has its own limit.
        if isinstance(error, MemoryError) and not error.args:
            _host.call(b"memory")
        explain_missing_modules(error)
        sys.excepthook(type(error), error, error.__traceback__)
    except BaseException:
        pass
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def explain_missing_modules(error):
    """Extend the messages of failed imports among *error*, its causes and contexts."""
    pending, seen = [error], set()
    while pending:
        error = pending.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        pending += [error.__cause__, error.__context__]
        if type(error) is ModuleNotFoundError and error.msg == f"No module named {error.name!r}":
            error.msg += _why_missing(error.name)


def _why_missing(name):
    """Return what follows the message about a module that does not exist; nothing for a submodule."""
    if "." in name:
        return ""
    text = ": not available here, and nothing can be installed"
    if similar := _similar_modules(name):
        text += f"; similar names: {', '.join(similar)}"
    return f"{text}. There is no network; put data and pure Python modules into the workspace as files"


def _similar_modules(name):
    """Return available modules with a name like *name*, without those of the workspace."""
    import difflib
    import pkgutil

    library = [path for path in sys.path if path.endswith(".zip")]
    found = {*sys.builtin_module_names, *(module.name for module in pkgutil.iter_modules(library))}
    by_folded = {each.lower(): each for each in found if each.startswith("_") <= name.startswith("_")}
    return [by_folded[each] for each in difflib.get_close_matches(name.lower(), by_folded)]


def _exit_status(code):
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
    """Flush the standard streams; return 120 if that fails, as `python` does."""
    status = 0
    for name in ("stdout", "stderr"):
        try:
            stream = getattr(sys, name, None)
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            status = 120
            # The engine will flush it too.
            setattr(sys, name, getattr(sys, f"__{name}__"))
    return status


def _drop_main():
    """Release the objects of the script as at interpreter exit: finalizers run, files are closed."""
    _flush_files()
    try:
        sys.modules.pop("__main__", None)
        # The last value that was shown.
        builtins._ = None
        gc.collect()
    except BaseException:
        pass


def _flush_files():
    """Flush open files, whose buffers the collector, which closes in any order, could lose."""
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
    """Return the open files with write buffers, the outer ones first."""
    found = [one for one in gc.get_objects() if isinstance(one, _BUFFERED)]
    found = [one for one in found if not one.closed and one.writable() and one.fileno() > _STDERR]
    return sorted(found, key=lambda one: not isinstance(one, io.TextIOWrapper))


def _lost(error, file):
    """Report a write that failed where no code of the script could notice."""
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
        _original_unraisable(problem)


class _Finder:
    """Finds the modules of carrel after all others; their source is requested on import."""

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


class _Flags(tuple):
    """`sys.flags` without `no_site`, which makes `traceback` suggest to add site-packages to `sys.path`."""

    no_site = 0

    def __getattr__(self, name):
        return getattr(_original_flags, name)

    def __repr__(self):
        return repr(_original_flags)


sys.flags = _Flags(_original_flags)
sys.unraisablehook = _unraisable
sys.meta_path.append(_Finder)

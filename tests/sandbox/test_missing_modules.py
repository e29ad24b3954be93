"""The error about a module that the guest does not have says so, and what there is instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.sandbox.sandbox import BaseSandbox
from tests.requirements import requirement
from tests.sandbox.house import said


def last_line(sandbox: BaseSandbox, code: str) -> str:
    """The error of code that fails."""
    result = sandbox.execute(code)
    assert result.exit_code == 1
    return result.stderr.splitlines()[-1]


@requirement("E-61")
def test_a_missing_module_is_said_to_be_unavailable(sandbox: BaseSandbox) -> None:
    assert last_line(sandbox, "import requests") == (
        "ModuleNotFoundError: No module named 'requests': not available here, and nothing can be installed."
        " There is no network; put data and pure Python modules into the workspace as files"
    )


@pytest.mark.parametrize(
    ("code", "similar"),
    [("import numpyy", "numpy"), ("from sklern.svm import SVC", "sklearn"), ("import pil", "PIL")],
)
def test_similar_names_are_listed(sandbox: BaseSandbox, code: str, similar: str) -> None:
    line = last_line(sandbox, code)
    assert line.partition("; similar names: ")[2].partition(".")[0].split(", ")[0] == similar


def test_a_module_of_the_workspace_with_a_similar_name_is_suggested(
    sandbox: BaseSandbox, files: Path
) -> None:
    (files / "my_helpers.py").write_text("")
    assert last_line(sandbox, "import my_helprs").endswith(". Did you mean: 'my_helpers'?")


def test_a_failed_import_that_was_caught_is_explained_too(sandbox: BaseSandbox) -> None:
    code = "try:\n    import requests\nexcept ImportError:\n    raise RuntimeError('no')"
    result = sandbox.execute(code)
    assert "'requests': not available here" in result.stderr
    assert result.stderr.endswith("RuntimeError: no\n")


@pytest.mark.parametrize("code", ["import numpy.nothing", "raise ModuleNotFoundError('my own', name='own')"])
def test_other_failed_imports_keep_their_message(sandbox: BaseSandbox, code: str) -> None:
    line = last_line(sandbox, code)
    assert line.endswith(("No module named 'numpy.nothing'", "my own"))


def test_code_that_handles_it_sees_the_plain_error(sandbox: BaseSandbox) -> None:
    code = """
import importlib.util, sys, traceback
print(importlib.util.find_spec("requests"))
try:
    import requests
except ImportError as error:
    print(error, error.name)
    print(traceback.format_exc().splitlines()[-1])
print(sys.flags.utf8_mode, len(sys.flags) > 10)
"""
    message = "No module named 'requests'"
    assert said(sandbox.execute(code)) == (
        f"None\n{message} requests\nModuleNotFoundError: {message}\n1 True\n"
    )

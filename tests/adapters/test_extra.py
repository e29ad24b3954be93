"""A framework is imported by its adapter alone, and one that is missing is named with its extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

from carrel.adapters.extra import requires_extra
from tests.test_import import loaded_by

ADAPTERS = {
    "deepagents": ("deepagents", "deepagents"),
    "openai_agents": ("agents", "openai-agents"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai"),
    "smolagents": ("smolagents", "smolagents"),
}
"""By the name of the adapter: the package that it is for, and its extra."""


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_without_its_framework_says_which_extra_is_missing(adapter: str) -> None:
    package, extra = ADAPTERS[adapter]
    code = f"import sys; sys.modules[{package!r}] = None; import carrel.adapters.{adapter}"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    last = answer.stderr.splitlines()[-1]
    assert last == f"ImportError: {package} is not installed: pip install 'carrel[{extra}]'"


def test_the_adapters_are_a_package_without_any_framework() -> None:
    loaded = {name.partition(".")[0] for name in loaded_by("import carrel.adapters.extra")}
    assert loaded - set(sys.stdlib_module_names) == {"carrel"}


def test_a_module_of_ours_that_is_missing_is_no_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError, match="carrel"), requires_extra("smolagents"):
        import carrel.nowhere  # type: ignore[import-not-found]  # noqa: F401  # that it is missing is the point

"""The kinds of runtimes."""

from __future__ import annotations

import pytest

from carrel.runtimes.api import RuntimeType
from tests.requirements import requirement


@requirement("E-39")
def test_a_kind_is_known_by_its_name() -> None:
    assert [str(kind) for kind in RuntimeType] == ["python", "container"]
    assert RuntimeType("python") is RuntimeType.PYTHON


@requirement("E-39")
@pytest.mark.parametrize("value", ["invalid", "", "PYTHON", "Python"])
def test_a_kind_that_there_is_not_is_refused(value: str) -> None:
    with pytest.raises(
        ValueError, match=rf"^Invalid runtime type: '{value}'; there are 'python', 'container'$"
    ):
        RuntimeType(value)

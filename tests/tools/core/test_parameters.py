"""The arguments of a tool: read into its dataclass, or refused with a reason."""

from __future__ import annotations

from collections import UserDict
from dataclasses import dataclass
from typing import Annotated

import pytest

from carrel.errors import ToolError
from carrel.tools.core.schema import Param, Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """Whom to greet."""

    name: Annotated[str, Param("Whom")] = "you"


PARAMETERS = Parameters(Greeting)


@pytest.mark.parametrize("given", [None, {}, {"name": None}, {"name": "you"}, UserDict({"name": "you"})])
def test_no_arguments_are_an_empty_object(given: object) -> None:
    assert PARAMETERS.parse(given) == Greeting()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"name": 7}, "'name' must be a text, not 7"),
        ({"nam": "you"}, "there is no argument 'nam'; did you mean 'name'?"),
        ([], "they must be an object, not a list"),
        ('{"name": "you"}', """they must be an object, not the text '{"name": "you"}'"""),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(given: object, says: str) -> None:
    with pytest.raises(ToolError) as caught:
        PARAMETERS.parse(given)
    assert caught.value.code == "tool.arguments"
    assert caught.value.message == f"Wrong arguments: {says}"
    assert caught.value.__context__ is None


def test_the_schema_is_that_of_the_dataclass() -> None:
    assert PARAMETERS.schema()["properties"] == {
        "name": {"type": "string", "description": "Whom", "default": "you"}
    }

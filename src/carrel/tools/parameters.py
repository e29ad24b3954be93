"""The parameters of a tool: its JSON Schema, and its arguments read strictly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from carrel.errors import ToolError
from carrel.tools.kind import Schema, Table, Wrong, shown

Args = TypeVar("Args")


class Parameters(Generic[Args]):
    """What one tool takes, as its dataclass declares it."""

    def __init__(self, made: Callable[..., Args]) -> None:
        """Read arguments into *made*, a dataclass whose fields are `Annotated` with a `Param`."""
        self._table = Table(made)

    def schema(self) -> Schema:
        """The JSON Schema of the arguments."""
        return self._table.schema()

    def takes(self, name: str) -> bool:
        """Whether there is such an argument."""
        return name in self._table.names

    def read(self, arguments: Any) -> Args:  # Any: whatever JSON can say
        """The arguments as the tool takes them; none at all are an empty object.

        Raises:
            ToolError: They do not fit; says which, and how.
        """
        given = {} if arguments is None else arguments
        if not isinstance(given, Mapping):
            raise ToolError("arguments", f"Wrong arguments: they must be an object, not {shown(given)}")
        try:
            made: Args = self._table.check(given)
        except Wrong as wrong:
            problem = str(wrong)
        else:
            return made
        raise ToolError("arguments", f"Wrong arguments: {problem}")

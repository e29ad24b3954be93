"""The table of workspace operations that can be called remotely, derived from `Workspace`.

A row names a method of `Workspace` and the tool that a role needs for it. Parameters and results are those of
the method, without parameters that are functions, like `wants`. Streams are not in the table: each front has
its own requests for them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_type_hints

import msgspec

from carrel.errors import RequestError, UnknownRequestError
from carrel.paths.parsed_path import StrPath
from carrel.workspace.aio import INLINE_BYTES
from carrel.workspace.workspace import Workspace

READ_TOOL, LIST_TOOL, WRITE_TOOL = "file_read", "file_list", "file_write"
"""The tools that a role needs to read files, to list them, and to change them."""

_FUNCTIONS = ("wants", "enter")
"""Parameters that are functions, which a request cannot contain."""
_JSON_TYPES = {StrPath: str, bytes | str: str}
"""Types of parameters in JSON, where the method accepts more."""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method of a workspace."""

    name: str
    method: Callable[..., Any]
    tool: str
    """The tool that the caller's role must include."""
    is_quick: Callable[[Mapping[str, Any]], bool]
    """Whether a call with these arguments takes no longer than handing it to a thread."""
    is_stepwise: bool = False
    """Whether it is read-only and works in small steps, so that it can be aborted and run again."""

    @property
    def summary(self) -> str:
        """The first line of the method's documentation."""
        return inspect.getdoc(self.method).partition("\n")[0]  # type: ignore[union-attr]  # all have one

    @cached_property
    def parameters(self) -> type[msgspec.Struct]:
        """The type of the arguments in a request."""
        hints = get_type_hints(self.method)
        return msgspec.defstruct(
            f"{self.name.title().replace('_', '')}Arguments",
            [
                _field(each, _JSON_TYPES.get(hints[each.name], hints[each.name]))
                for each in list(inspect.signature(self.method).parameters.values())[1:]
                if each.name not in _FUNCTIONS
            ],
            kw_only=True,
            forbid_unknown_fields=True,
        )

    @cached_property
    def result(self) -> Any:  # Any: a type, maybe of a list
        """The type of the result."""
        return get_type_hints(self.method)["return"]

    def parse(self, arguments: object) -> dict[str, Any]:
        """Parse the arguments of a request into those of the method.

        Raises:
            RequestError: An argument is missing, unknown or of the wrong type.
        """
        try:
            parsed = msgspec.convert(arguments, self.parameters)
        except msgspec.ValidationError as error:
            raise RequestError(f"{self.name}: {_render_problem(str(error))}") from None
        return {name: getattr(parsed, name) for name in self.parameters.__struct_fields__}

    def run(self, workspace: Workspace, arguments: Mapping[str, Any]) -> Any:
        """Call the method.

        Raises:
            RequestError: A value is invalid.
        """
        try:
            return self.method(workspace, **arguments)
        except (ValueError, OverflowError) as error:
            if type(error) not in (ValueError, OverflowError):
                raise
            raise RequestError(f"{self.name}: {error}") from None


def _field(parameter: inspect.Parameter, kind: Any) -> Any:  # Any: types and defaults of all kinds
    if parameter.default is inspect.Parameter.empty:
        return parameter.name, kind
    return parameter.name, kind, parameter.default


def _render_problem(message: str) -> str:
    """Turn a message of msgspec, like "Expected `str` - at `$.path`", into "path: Expected `str`"."""
    text, _, location = message.partition(" - at `")
    name = location.rstrip("`").removeprefix("$").lstrip(".")
    return f"{name}: {text}" if name else text


def _never(arguments: Mapping[str, Any]) -> bool:
    return False


def _always(arguments: Mapping[str, Any]) -> bool:
    return True


def _is_small(arguments: Mapping[str, Any]) -> bool:
    """Whether the text is small enough that writing it takes a few system calls."""
    return len(arguments["data"]) <= INLINE_BYTES


def _row(
    method: Callable[..., Any],
    tool: str,
    is_quick: Callable[[Mapping[str, Any]], bool] = _never,
    *,
    is_stepwise: bool = False,
) -> Operation:
    return Operation(
        name=method.__name__, method=method, tool=tool, is_quick=is_quick, is_stepwise=is_stepwise
    )


_ROWS = (
    _row(Workspace.append, WRITE_TOOL, _is_small),
    _row(Workspace.copy, WRITE_TOOL),
    _row(Workspace.edit, WRITE_TOOL),
    _row(Workspace.exists, LIST_TOOL, _always),
    _row(Workspace.glob, LIST_TOOL, is_stepwise=True),
    _row(Workspace.list, LIST_TOOL, is_stepwise=True),
    _row(Workspace.list_files, LIST_TOOL, is_stepwise=True),
    _row(Workspace.mkdir, WRITE_TOOL, _always),
    _row(Workspace.move, WRITE_TOOL),
    _row(Workspace.read_lines, READ_TOOL, is_stepwise=True),
    _row(Workspace.read_text, READ_TOOL),
    _row(Workspace.recount, LIST_TOOL),
    _row(Workspace.remove, WRITE_TOOL),
    _row(Workspace.search, READ_TOOL, is_stepwise=True),
    _row(Workspace.stat, LIST_TOOL, _always),
    _row(Workspace.touch, WRITE_TOOL, _always),
    _row(Workspace.usage, LIST_TOOL),
    _row(Workspace.write, WRITE_TOOL, _is_small),
)

OPERATIONS: Mapping[str, Operation] = {row.name: row for row in _ROWS}
"""All operations by name, in alphabetical order."""


def find_operation(name: str) -> Operation:
    """Return the operation *name*.

    Raises:
        UnknownRequestError: There is no such operation.
    """
    try:
        return OPERATIONS[name]
    except KeyError:
        known = ", ".join(OPERATIONS)
        raise UnknownRequestError(f"there is no operation {name!r}; there are: {known}") from None

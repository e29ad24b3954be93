"""The table of workspace operations that can be called remotely, derived from `Workspace`.

A row names a method of `Workspace`, and the tool that a role must have for it. Parameters and results are
those of the method; what is a function there (`wants`) has no place in a request. Whatever is read or written
as a stream has its own way through each front.
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
"""The tools without which a role may not read, look or change."""

_FUNCTIONS = ("wants", "enter")
"""Parameters that no request can hold."""
_PLAIN = {StrPath: str, bytes | str: str}
"""What a parameter is in JSON, where that is less than the method takes."""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method of a workspace."""

    name: str
    method: Callable[..., Any]
    tool: str
    """What the role of a caller must have."""
    is_quick: Callable[[Mapping[str, Any]], bool]
    """Says about some arguments whether the call takes no longer than handing it to a thread would."""
    is_stepwise: bool = False
    """Whether it goes in small steps and changes nothing, so that it can be given up and begun anew."""

    @property
    def summary(self) -> str:
        """What it does, in one sentence."""
        return inspect.getdoc(self.method).partition("\n")[0]  # type: ignore[union-attr]  # all have one

    @cached_property
    def parameters(self) -> type[msgspec.Struct]:
        """The arguments as a request holds them."""
        hints = get_type_hints(self.method)
        return msgspec.defstruct(
            f"{self.name.title().replace('_', '')}Arguments",
            [
                _field(each, _PLAIN.get(hints[each.name], hints[each.name]))
                for each in list(inspect.signature(self.method).parameters.values())[1:]
                if each.name not in _FUNCTIONS
            ],
            kw_only=True,
            forbid_unknown_fields=True,
        )

    @cached_property
    def result(self) -> Any:  # Any: a type, maybe of a list
        """What the method gives."""
        return get_type_hints(self.method)["return"]

    def parse(self, arguments: object) -> dict[str, Any]:
        """The arguments of the method.

        Raises:
            RequestError: One is missing, unknown or of another type.
        """
        try:
            given = msgspec.convert(arguments, self.parameters)
        except msgspec.ValidationError as error:
            raise RequestError(f"{self.name}: {_plain(str(error))}") from None
        return {name: getattr(given, name) for name in self.parameters.__struct_fields__}

    def run(self, workspace: Workspace, arguments: Mapping[str, Any]) -> Any:
        """Call the method.

        Raises:
            RequestError: A value makes no sense.
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


def _plain(message: str) -> str:
    """What is wrong with the arguments, without the signs of the library that found it."""
    text, _, place = message.partition(" - at `")
    where = place.rstrip("`").removeprefix("$").lstrip(".")
    return f"{where}: {text}" if where else text


def _never(arguments: Mapping[str, Any]) -> bool:
    return False


def _always(arguments: Mapping[str, Any]) -> bool:
    return True


def _is_small(arguments: Mapping[str, Any]) -> bool:
    """Whether the text to be stored is so short that writing it is a matter of a few system calls."""
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
"""By name, in order."""


def find_operation(name: str) -> Operation:
    """The row of that name.

    Raises:
        UnknownRequestError: There is none.
    """
    try:
        return OPERATIONS[name]
    except KeyError:
        known = ", ".join(OPERATIONS)
        raise UnknownRequestError(f"there is no operation {name!r}; there are: {known}") from None


def schemas(ref: str = "#/components/schemas/{name}") -> tuple[dict[str, tuple[Any, Any]], dict[str, Any]]:
    """The JSON Schemas of all parameters and results by operation, and those that they refer to by name."""
    kinds = [kind for row in _ROWS for kind in (row.parameters, row.result)]
    found, components = msgspec.json.schema_components(kinds, ref_template=ref)
    rows = {row.name: (found[2 * index], found[2 * index + 1]) for index, row in enumerate(_ROWS)}
    version = {"type": "string", "description": "Differs when the content was replaced or changed."}
    components["FileInfo"]["properties"]["version"] = version
    return rows, components

"""Read the log events with their levels and fields from the logging calls in the sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from docs.reference_pages.source import sources, tree_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """An event, or the prefix of its name where a method logs several."""

    name: str
    level: str
    fields: tuple[str, ...] = ()


_METHODS = {
    "log_event": LogEvent(name="", level="info"),
    "log_security_event": LogEvent(name="security.", level="warning"),
    "log_failure": LogEvent(name="", level="error", fields=("error", "place")),
}
"""Prefix, level and fields that each method of a logger adds."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Call = tuple[_Function, ast.Call]


def log_events() -> dict[str, LogEvent]:
    """All events by name, sorted; an event logged in several places has the fields of all of them."""
    found: dict[str, LogEvent] = {}
    for event in _written():
        before = found.setdefault(event.name, event)
        found[event.name] = replace(before, fields=_all_of(before.fields, event.fields))
    return dict(sorted(found.items()))


def _written() -> Iterator[LogEvent]:
    files = [list(_calls(tree_of(text))) for text in sources()]
    shared: dict[str, LogEvent] = {}
    for calls in files:
        for function, call in calls:
            if _method(call) not in _METHODS or not _receiver(call).endswith("logger"):
                continue
            event = _event(function, call, _METHODS[_method(call)])
            if not _completes(function, call):
                yield event
            elif function.name.startswith("_"):
                yield from _by_method([calls], "self", function.name, event)
            else:
                shared[function.name] = event
    for name, event in shared.items():
        yield from _by_method(files, "gate", name, event)


def _completes(function: _Function, call: ast.Call) -> bool:
    """Whether the name of the event ends with the first argument of the function."""
    given = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)][1:2]
    event = call.args[0]
    parts = event.values if isinstance(event, ast.JoinedStr) else [event]
    end = parts[-1].value if isinstance(parts[-1], ast.FormattedValue) else parts[-1]
    return isinstance(end, ast.Name) and [end.id] == given


def _by_method(files: list[list[_Call]], receiver: str, name: str, begun: LogEvent) -> Iterator[LogEvent]:
    """The events logged through method *name*, which completes the prefix *begun*; *begun* if none are."""
    found = [
        _event(function, call, begun)
        for calls in files
        for function, call in calls
        if _receiver(call) == receiver and _method(call) == name
    ]
    yield from found or [begun]


def _calls(tree: ast.AST) -> Iterator[_Call]:
    """Every call that may log something, with the function that it is in."""
    for function in ast.walk(tree):
        if isinstance(function, _Function):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and "log" in _method(node):
                    yield function, node


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _receiver(call: ast.Call) -> str:
    """The last name of the object that the method is called on."""
    value = call.func.value if isinstance(call.func, ast.Attribute) else None
    return value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""


def _event(function: _Function, call: ast.Call, begun: LogEvent) -> LogEvent:
    return LogEvent(
        name=begun.name.removesuffix("*") + _text(call.args[0]),
        level=_level(call) or begun.level,
        fields=_all_of(begun.fields, _fields(function, call)),
    )


def _text(node: ast.expr) -> str:
    """The literal part of a name; the rest is an asterisk."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
        return str(node.values[0].value) + "*"
    return "*"


def _level(call: ast.Call) -> str:
    """The level passed after the name, if any."""
    given = call.args[1] if len(call.args) > 1 else None
    is_level = isinstance(given, ast.Attribute) and ast.unparse(given).startswith("logging.")
    return given.attr.lower() if is_level and isinstance(given, ast.Attribute) else ""


def _fields(function: _Function, call: ast.Call) -> tuple[str, ...]:
    names: list[str] = []
    for word in call.keywords:
        names += [word.arg] if word.arg is not None else _keys(function, ast.unparse(word.value))
    return tuple(names)


def _keys(function: _Function, name: str) -> list[str]:
    """The keys of the dict that a function assigns to *name*; none if it is a parameter."""
    return [
        str(key.value)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == name
        and isinstance(node.value, ast.Dict)
        for key in node.value.keys
        if isinstance(key, ast.Constant)
    ]


def _all_of(*names: tuple[str, ...]) -> tuple[str, ...]:
    """The distinct *names*, the session and the path first."""
    found = dict.fromkeys(name for some in names for name in some)
    first = [name for name in ("session_id", "path") if name in found]
    return tuple(dict.fromkeys([*first, *found]))

"""`HostTools`: functions of this process that guest code may call, checked by their type hints.

Arguments and results cross the boundary as JSON. A request comes from untrusted code: it can name only the
functions given, and its arguments must fit their type hints before the function sees them. Of an exception,
the guest gets the name of its type and its message.

Not covered: a function that does not return. The guest gets a `TimeoutError` and goes on, or is stopped, but
the thread of the script's functions runs until it returns; later calls of the script time out as well.
"""

from __future__ import annotations

import inspect
import json
import keyword
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from carrel.values import MIB

TIMEOUT_SECONDS = 30.0
"""Default timeout of one call, in seconds."""
MESSAGE_BYTES = 16 * MIB
"""Maximum size of the arguments or the result of one call, as JSON."""
_NAME_CHARACTERS = 100
"""How much of a name that the guest sends is repeated."""

_NAMES: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
    None: "null",
    list: "array",
    dict: "object",
}
"""Types that can be passed, with their names in JSON Schema."""

Tools = Mapping[str, Callable[..., Any]]  # Any: arguments and results of any function
OnCall = Callable[[str, str | None, float], None]
"""Called at the end of each call with its name, the type of its error or `None`, and its milliseconds."""


class HostTool:
    """One function that guest code may call."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        """Offer *function* by the name *name*.

        Raises:
            TypeError: It is not a function, or a parameter has a type that cannot be passed as JSON, or
                stands for any number of them.
            ValueError: The name is not an identifier.
        """
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"the name of a tool must be an identifier, not {name!r}")
        if not callable(function):
            raise TypeError(f"the tool {name!r} must be a function, not {type(function).__name__}")
        self.name = name
        self.function = function
        self._signature = inspect.signature(function, eval_str=True)
        self._types: dict[str, Any] = {}
        for each in self._signature.parameters.values():
            if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
                raise TypeError(f"{name}() takes any number of arguments, which has no schema")
            self._types[each.name] = Any if each.annotation is each.empty else each.annotation
            _schema_of(self._types[each.name], f"{name}(): {each.name!r}")

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments, with the docstring as description."""
        parameters = self._signature.parameters.values()
        return {
            "title": self.name,
            "description": inspect.getdoc(self.function) or "",
            "type": "object",
            "properties": {each: _schema_of(kind, each) for each, kind in self._types.items()},
            "required": [each.name for each in parameters if each.default is each.empty],
            "additionalProperties": False,
        }

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Call the function with arguments that fit its type hints.

        Raises:
            TypeError: They do not.
        """
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None
        for name, value in bound.arguments.items():
            bound.arguments[name] = _checked(value, self._types[name], f"{self.name}(): {name!r}")
        return self.function(*bound.args, **bound.kwargs)


class HostTools:
    """The functions that one script may call."""

    def __init__(
        self, tools: Tools, *, timeout_seconds: float = TIMEOUT_SECONDS, on_call: OnCall | None = None
    ) -> None:
        """Offer *tools*; see `HostTool` for the errors.

        Raises:
            ValueError: *timeout_seconds* is not a number above 0.
        """
        if not 0 < timeout_seconds < float("inf"):
            raise ValueError(f"the timeout of tools must be a number above 0, not {timeout_seconds!r}")
        self._tools = {name: HostTool(name, function) for name, function in tools.items()}
        self._timeout_seconds = timeout_seconds
        self._on_call = on_call
        # One thread, in which a call waits for those before it: functions that hang do not pile up threads.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="carrel-tool")

    @property
    def names(self) -> list[str]:
        """The names of the functions."""
        return list(self._tools)

    def start(self, request: bytes) -> RunningCall:
        """Start the call that the guest requests, in a thread."""
        name = ""
        try:
            name, args, kwargs = _parse(request)
            if (tool := self._tools.get(name)) is None:
                raise NameError(f"the tool {name[:_NAME_CHARACTERS]!r} cannot be called here")
        except Exception as error:
            work: Future[Any] = Future()
            work.set_exception(error)
        else:
            work = self._thread.submit(copy_context().run, tool.call, args, kwargs)
        return RunningCall(name[:_NAME_CHARACTERS], work, self._timeout_seconds, self._on_call)


class RunningCall:
    """A call that runs in a thread."""

    def __init__(self, name: str, work: Future[Any], timeout_seconds: float, on_call: OnCall | None) -> None:
        self._name = name
        self._work = work
        self._timeout_seconds = timeout_seconds
        self._on_call = on_call
        self._begin = time.monotonic()

    def wait(self, seconds: float) -> bytes | None:
        """Return the answer for the guest; `None` if there is none after *seconds*."""
        end = self._begin + self._timeout_seconds
        done, _ = wait([self._work], max(0.0, min(seconds, end - time.monotonic())))
        if not done and time.monotonic() < end:
            return None
        try:
            if not done:
                self._work.cancel()
                raise TimeoutError(f"the tool did not answer within {self._timeout_seconds:g} s")
            answer = _render({"value": self._work.result()})
        except Exception as error:
            self._report(type(error).__name__)
            return _failure(error)
        self._report(None)
        return answer

    def abandon(self) -> None:
        """Do not wait for the call any more; one that has not begun does not begin."""
        self._work.cancel()
        self._report("CancelledError")

    def _report(self, error: str | None) -> None:
        if self._on_call is not None:
            self._on_call(self._name, error, (time.monotonic() - self._begin) * 1000)


def tool_schemas(tools: Tools) -> list[dict[str, Any]]:
    """Return the JSON Schema of each function, to tell a model what its code may call."""
    return [HostTool(name, function).schema() for name, function in tools.items()]


def no_such_tool() -> bytes:
    """Return the answer to a script that may not call anything."""
    return _failure(NameError("there are no tools to call here"))


def _parse(request: bytes) -> tuple[str, list[Any], dict[str, Any]]:
    if len(request) > MESSAGE_BYTES:
        raise ValueError(f"the arguments have more than {MESSAGE_BYTES} bytes")
    document = json.loads(request)
    match document:
        case [str(name), list(args), dict(kwargs)]:
            return name, args, kwargs
    raise ValueError("the request is not one of a tool")


def _render(answer: dict[str, Any]) -> bytes:
    text = json.dumps(answer).encode()
    if len(text) > MESSAGE_BYTES:
        raise ValueError(f"the result has more than {MESSAGE_BYTES} bytes")
    return text


def _failure(error: Exception) -> bytes:
    # `str` of a `KeyError` would add quotes.
    message = error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error)
    return json.dumps({"error": type(error).__name__, "message": message[:MESSAGE_BYTES]}).encode()


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _schema_of(kind: Any, what: str) -> dict[str, Any]:
    """Return the JSON Schema of a type hint.

    Raises:
        TypeError: Its values cannot be passed as JSON.
    """
    if kind is Any:
        return {}
    kinds = _alternatives(kind)
    if len(kinds) > 1:
        return {"anyOf": [_schema_of(each, what) for each in kinds]}
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(args)}
    if origin is list:
        return {"type": "array", "items": _schema_of(args[0], what)}
    if origin is dict and args[0] is str:
        return {"type": "object", "additionalProperties": _schema_of(args[1], what)}
    if kind in _NAMES:
        return {"type": _NAMES[kind]}
    raise TypeError(f"{what} has the type {kind!r}, which cannot be passed as JSON")


class _UnfitError(Exception):
    """A value does not fit a type hint."""


def _checked(value: Any, kind: Any, what: str) -> Any:
    """Return *value*, which must fit a type hint; an integer fits `float` and becomes one.

    Raises:
        TypeError: It does not fit.
    """
    try:
        return _fitted(value, kind)
    except _UnfitError:
        schema = json.dumps(_schema_of(kind, what))
        raise TypeError(f"{what} must fit {schema}, not {json.dumps(value)[:100]}") from None


def _fitted(value: Any, kind: Any) -> Any:
    for each in _alternatives(kind):
        with suppress(_UnfitError):
            return _fitted_to_one(value, each)
    raise _UnfitError


def _fitted_to_one(value: Any, kind: Any) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if origin is list and isinstance(value, list):
        return [_fitted(item, args[0]) for item in value]
    if origin is dict and isinstance(value, dict):
        return {name: _fitted(item, args[1]) for name, item in value.items()}
    if kind is float and type(value) is int:
        return float(value)
    choices = args if origin is Literal else ()
    if any(value == choice and type(value) is type(choice) for choice in choices):
        return value
    if kind is Any or type(value) is (NoneType if kind is None else kind):
        return value
    raise _UnfitError

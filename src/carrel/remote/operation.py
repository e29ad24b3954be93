"""Call a `Workspace` method remotely: render its arguments, parse its result.

A method of `Workspace` says all that is needed: its signature what may be asked, and its result what the
answer is read as.
"""

from __future__ import annotations

import inspect
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, get_type_hints

from carrel.errors import RequestError
from carrel.paths.parsed_path import StrPath, to_str
from carrel.remote.json_codec import parse, render


class RemoteOperation:
    """One method of `Workspace` that a service does for others."""

    def __init__(self, method: Callable[..., Any]) -> None:
        """Ask for what *method* does."""
        self.name = method.__name__
        self._method = method

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self._method)

    @cached_property
    def _types(self) -> Mapping[str, Any]:  # Any: a type, maybe of a list
        return get_type_hints(self._method)

    def render(self, *args: object, **kwargs: object) -> dict[str, Any]:
        """The arguments as a request holds them; what was not given is left to the service.

        Raises:
            TypeError: The method does not take these.
            RequestError: One is a function, which cannot be sent.
        """
        given = self._signature.bind(None, *args, **kwargs).arguments
        given.pop(next(iter(self._signature.parameters)))
        return _with_text({name: self._render(name, value) for name, value in given.items()})

    def _render(self, name: str, value: object) -> Any:  # Any: whatever JSON can say, or bytes
        if self._types[name] == StrPath:
            return to_str(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        if callable(value):
            raise RequestError(f"{self.name}: {name} is a function, which cannot be sent to a service")
        return render(value)

    def parse(self, document: Any) -> Any:  # Any: of the type that the method gives
        """The result that the service tells of.

        Raises:
            UnreachableError: It cannot be that.
        """
        return parse(document, self._types["return"])


def _with_text(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The same, with bytes that are to be stored as the text that stands for them."""
    if isinstance(data := arguments.get("data"), bytes):
        return {**arguments, "data": b64encode(data).decode("ascii"), "encoding": "base64"}
    return dict(arguments)

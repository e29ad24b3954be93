"""Call a `Workspace` method remotely: render its arguments, parse its result.

The annotations of the method define both: the parameters that a request may hold, and the type of the result.
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
    """A `Workspace` method that a service runs for its clients."""

    def __init__(self, method: Callable[..., Any]) -> None:
        """Describe the remote call of *method*."""
        self.name = method.__name__
        self._method = method

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self._method)

    @cached_property
    def _types(self) -> Mapping[str, Any]:  # Any: a type, possibly generic
        return get_type_hints(self._method)

    def render(self, *args: object, **kwargs: object) -> dict[str, Any]:
        """Render the arguments for a request; defaults are left to the service.

        Raises:
            TypeError: The method does not take these arguments.
            RequestError: An argument is a function, which cannot be sent.
        """
        given = self._signature.bind(None, *args, **kwargs).arguments
        given.pop(next(iter(self._signature.parameters)))
        return _with_text({name: self._render(name, value) for name, value in given.items()})

    def _render(self, name: str, value: object) -> Any:  # Any: any JSON value, or bytes
        if self._types[name] == StrPath:
            return to_str(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        if callable(value):
            raise RequestError(f"{self.name}: {name} is a function, which cannot be sent to a service")
        return render(value)

    def parse(self, document: Any) -> Any:  # Any: the return type of the method
        """Parse the result of the method from a response.

        Raises:
            UnreachableError: The response does not fit the return type.
        """
        return parse(document, self._types["return"])


def _with_text(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with bytes to write encoded as base64 text."""
    if isinstance(data := arguments.get("data"), bytes):
        return {**arguments, "data": b64encode(data).decode("ascii"), "encoding": "base64"}
    return dict(arguments)

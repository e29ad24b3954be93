"""Guest side of a step; this source runs in the guest, in one module with `json_codec`.

`run` runs the code of one step in `__main__`, where its variables persist for the next. It reports the
outcome to the host and requests tool calls in lines of JSON on standard output that begin with a mark;
answers arrive on standard input, each after its size in eight bytes. The host must not trust these messages.
"""

from __future__ import annotations

import ast
import builtins
import json
import linecache
import os
import sys
import traceback
from collections.abc import Callable
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # In the guest both sources form one module.
    from carrel.adapters.smolagents.json_codec import decode, encode

_OWN = "<carrel>"
"""File name of this source in tracebacks."""
_SIZE_BYTES = 8
_STDIN, _STDOUT = 0, 1


class Answered(BaseException):
    """The final answer was given; the rest of the code must not run."""


def run(order: str, is_fresh: bool) -> None:
    """Run the code of one step and report its outcome."""
    step = json.loads(order)
    host = _HOST
    host.mark = step["mark"].encode()
    main = sys.modules["__main__"].__dict__
    if is_fresh or step["news"]:
        main.update(host.ask({"ask": "variables", "all": is_fresh}))
    main.update({name: host.tool(name) for name in step["tools"]})
    try:
        value = execute(step["code"], step["name"], main)
    except Answered:
        return
    except BaseException as error:
        host.send({"tell": "error", "text": render_traceback(error, step["name"])})
    else:
        host.send({"tell": "value", "value": encode_or_str(value)})


def execute(code: str, name: str, main: dict[str, Any]) -> Any:
    """Run *code*; return the value of its last statement if that is an expression."""
    linecache.cache[name] = len(code), None, code.splitlines(True), name
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec", dont_inherit=True), main)  # noqa: S102  # its purpose
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), main)  # noqa: S307


def render_traceback(error: BaseException, name: str) -> str:
    """The traceback of *error* from the code of the step on, without frames of this module."""
    if (prelude := sys.modules.get("_carrel")) is not None:
        prelude.explain_missing_modules(error)
    details = traceback.TracebackException.from_exception(error)
    frames = dropwhile(lambda frame: frame.filename != name, details.stack)
    details.stack = traceback.StackSummary.from_list([frame for frame in frames if frame.filename != _OWN])
    return "".join(details.format()).rstrip("\n")


def encode_or_str(value: Any) -> Any:
    """Encode a value for the host, as text if its type is not supported."""
    try:
        return encode(value)
    except (TypeError, RecursionError):
        return str(value)


class Host:
    """The host, reached through the standard streams."""

    mark = b""
    """Prefix of messages; changes with each step, also for tools that code has stored."""

    def send(self, message: dict[str, Any]) -> None:
        """Send a message after flushing earlier output."""
        if sys.stdout is not None:
            sys.stdout.flush()
        line = self.mark + json.dumps(message).encode() + b"\n"
        while line:
            line = line[os.write(_STDOUT, line) :]

    def ask(self, message: dict[str, Any]) -> Any:
        """Send a message and wait for the answer.

        Raises:
            Answered: The final answer was given.
            Exception: The exception of a tool.
        """
        self.send(message)
        answer = json.loads(_read(int.from_bytes(_read(_SIZE_BYTES), "big")))
        if answer.get("ends"):
            raise Answered
        if "error" in answer:
            raise _error(answer["error"], answer["message"])
        return decode(answer["value"])

    def tool(self, name: str) -> Callable[..., Any]:
        """A function that calls a tool of the host."""

        def call(*args: Any, **kwargs: Any) -> Any:
            render = encode_or_str if name == "final_answer" else encode
            arguments = [render(each) for each in args]
            named = {key: render(each) for key, each in kwargs.items()}
            return self.ask({"ask": "tool", "name": name, "args": arguments, "kwargs": named})

        call.__name__ = call.__qualname__ = name
        return call


_HOST = Host()


def _read(count: int) -> bytes:
    found = b""
    while len(found) < count:
        chunk = os.read(_STDIN, count - len(found))
        if not chunk:
            raise RuntimeError("the host does not answer")
        found += chunk
    return found


def _error(kind: str, message: str) -> Exception:
    """The exception that a tool raised, if it is a builtin one; else a `RuntimeError`."""
    builtin = getattr(builtins, kind, None)
    if isinstance(builtin, type) and issubclass(builtin, Exception):
        try:
            return builtin(message)
        except TypeError:
            pass
    return RuntimeError(f"{kind}: {message}")

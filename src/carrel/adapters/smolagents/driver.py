"""The guest's side of a step; this source runs in the guest, in one module with `json_codec`.

`run` runs the code of one step in `__main__`, where what it makes stays for the next. It tells the host how
that went, and asks it for the tools, in lines of JSON on standard output that begin with a mark; answers come
on standard input, eight bytes of their size before each. All that it says is the guest's own word.
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
    # In the guest they are in the same module.
    from carrel.adapters.smolagents.json_codec import decode, encode

_OWN = "<carrel>"
"""What tracebacks call this text."""
_SIZE_BYTES = 8
_STDIN, _STDOUT = 0, 1


class Answered(BaseException):
    """The answer was given; nothing of the code that gave it is to run any more."""


def run(order: str, is_fresh: bool) -> None:
    """Run the code of one step, and tell what became of it."""
    asked = json.loads(order)
    host = _HOST
    host.mark = asked["mark"].encode()
    main = sys.modules["__main__"].__dict__
    if is_fresh or asked["news"]:
        main.update(host.ask({"ask": "variables", "all": is_fresh}))
    main.update({name: host.tool(name) for name in asked["tools"]})
    try:
        value = execute(asked["code"], asked["name"], main)
    except Answered:
        return
    except BaseException as error:
        host.tell({"tell": "error", "text": described(error, asked["name"])})
    else:
        host.tell({"tell": "value", "value": shown(value)})


def execute(code: str, name: str, main: dict[str, Any]) -> Any:
    """Run *code*; the value of its last statement, if that is an expression."""
    linecache.cache[name] = len(code), None, code.splitlines(True), name
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec", dont_inherit=True), main)  # noqa: S102  # this is what it is for
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), main)  # noqa: S307


def described(error: BaseException, name: str) -> str:
    """The traceback of *error* from the code of the step on, without what is ours."""
    told = traceback.TracebackException.from_exception(error)
    frames = dropwhile(lambda frame: frame.filename != name, told.stack)
    told.stack = traceback.StackSummary.from_list([frame for frame in frames if frame.filename != _OWN])
    return "".join(told.format()).rstrip("\n")


def shown(value: Any) -> Any:
    """A value for the host, as text if it cannot be handed over as it is."""
    try:
        return encode(value)
    except (TypeError, RecursionError):
        return str(value)


class Host:
    """The other side of the standard streams."""

    mark = b""
    """What a message begins with; another one in each step, also for tools that code has kept."""

    def tell(self, message: dict[str, Any]) -> None:
        """Send a line, after all that was printed before."""
        if sys.stdout is not None:
            sys.stdout.flush()
        line = self.mark + json.dumps(message).encode() + b"\n"
        while line:
            line = line[os.write(_STDOUT, line) :]

    def ask(self, message: dict[str, Any]) -> Any:
        """Send a line, and wait for the answer.

        Raises:
            Answered: It ends the step.
            Exception: What a tool raised.
        """
        self.tell(message)
        answer = json.loads(_read(int.from_bytes(_read(_SIZE_BYTES), "big")))
        if answer.get("ends"):
            raise Answered
        if "error" in answer:
            raise _error(answer["error"], answer["message"])
        return decode(answer["value"])

    def tool(self, name: str) -> Callable[..., Any]:
        """What calls a tool of the host."""

        def call(*args: Any, **kwargs: Any) -> Any:
            hand_over = shown if name == "final_answer" else encode
            given = {"args": [hand_over(each) for each in args]}
            named = {key: hand_over(each) for key, each in kwargs.items()}
            return self.ask({"ask": "tool", "name": name, **given, "kwargs": named})

        call.__name__ = call.__qualname__ = name
        return call


_HOST = Host()


def _read(count: int) -> bytes:
    found = b""
    while len(found) < count:
        piece = os.read(_STDIN, count - len(found))
        if not piece:
            raise RuntimeError("the host does not answer")
        found += piece
    return found


def _error(kind: str, message: str) -> Exception:
    """An error as the tool raised it, if Python has one of that name."""
    known = getattr(builtins, kind, None)
    if isinstance(known, type) and issubclass(known, Exception):
        try:
            return known(message)
        except TypeError:
            pass
    return RuntimeError(f"{kind}: {message}")

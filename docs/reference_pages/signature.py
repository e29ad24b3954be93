"""A signature, as it is written in the source."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

WIDTH = 90
"""A longer one has a line for each parameter."""

Function = Callable[..., Any]  # Any: the types of any public function


def signature(name: str, function: Function) -> str:
    """How *function* is called, by the name *name*."""
    node = definition(function)
    words = list(_parameters(node.args, function))
    is_awaited = inspect.iscoroutinefunction(function)
    gives = f" -> {_type(node.returns)}" if node.returns is not None and node.name != "__init__" else ""
    if isinstance(node, ast.AsyncFunctionDef) and not is_awaited:
        gives = gives.replace("Async", "")  # made of the awaited one, as `Client` of `AsyncClient`
    begin = "await " if is_awaited else ""
    line = f"{begin}{name}({', '.join(words)}){gives}"
    if len(line) <= WIDTH:
        return line
    return (
        f"{begin}{name}(\n{textwrap.indent(''.join(f'{word},' + chr(10) for word in words), '    ')}){gives}"
    )


def definition(function: Function) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Where a function is defined."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)  # noqa: S101  # for the type checker
    return node


def _parameters(args: ast.arguments, function: Function) -> Iterator[str]:
    values = inspect.signature(function).parameters
    positional = [*args.posonlyargs, *args.args]
    defaults = [*[None] * (len(positional) - len(args.defaults)), *args.defaults]
    for place, (arg, default) in enumerate(zip(positional, defaults, strict=True)):
        if not (place == 0 and arg.arg in ("self", "cls")):
            yield _parameter(arg, default, values)
        if args.posonlyargs and arg is args.posonlyargs[-1]:
            yield "/"
    if args.vararg is not None:
        yield f"*{_parameter(args.vararg, None, values)}"
    elif args.kwonlyargs:
        yield "*"
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield _parameter(arg, default, values)
    if args.kwarg is not None:
        yield f"**{_parameter(args.kwarg, None, values)}"


def _parameter(arg: ast.arg, default: ast.expr | None, values: Any) -> str:  # Any: a mapping without a name
    text = arg.arg if arg.annotation is None else f"{arg.arg}: {_type(arg.annotation)}"
    if default is None:
        return text
    value = values[arg.arg].default
    is_named = isinstance(default, ast.Name) and isinstance(value, int | float | str)
    return f"{text} = {repr(value) if is_named and not isinstance(value, Enum) else ast.unparse(default)}"


def _type(node: ast.expr) -> str:
    """A type as people write it: without the module of a builtin, and options by their name."""
    return re.sub(r"Unpack\[(\w+)\]", r"\1", ast.unparse(node).replace("builtins.", ""))

"""Read the sources: docstrings of classes and fields, and literal arguments of calls."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import is_typeddict

import carrel


def documented(kind: type) -> Iterator[tuple[str, str, str]]:
    """Name, value and the words below each field of *kind* that has a value."""
    for node, below in statements(kind):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            name, value = node.target.id, node.value
        else:
            continue
        yield name, ast.unparse(value), words_of(below)


def field_words(kind: object) -> dict[str, str]:
    """The docstring of each field of a dataclass, struct or TypedDict; empty for other classes."""
    if not isinstance(kind, type) or not is_record(kind):
        return {}
    try:
        found = list(statements(kind))
    except OSError:  # created at run time, so it has no source
        return {}
    return {
        node.target.id: words_of(below)
        for node, below in found
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def is_record(kind: type) -> bool:
    """Whether a class is a dataclass, a struct or a TypedDict."""
    return dataclasses.is_dataclass(kind) or hasattr(kind, "__struct_fields__") or is_typeddict(kind)


def statements(kind: type) -> Iterator[tuple[ast.stmt, ast.stmt | None]]:
    """The statements in the body of a class, each with the one after it."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)  # noqa: S101  # for the type checker
    yield from zip(tree.body, [*tree.body[1:], None], strict=True)


def words_of(node: ast.stmt | None) -> str:
    """The docstring that *node* is, on one line; empty if it is none."""
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return re.sub(r"\s+", " ", node.value.value)
    return ""


def first_line(thing: object) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


@cache
def sources() -> tuple[str, ...]:
    """The text of every module of carrel."""
    return tuple(
        file.read_text() for folder in carrel.__path__ for file in sorted(Path(folder).rglob("*.py"))
    )


@cache
def tree_of(source: str) -> ast.Module:
    """The syntax tree of *source*."""
    return ast.parse(source)


def cases(module: ModuleType, function: str) -> list[str]:
    """The literal first arguments that *module* passes to *function*."""
    return first_arguments(inspect.getsource(module), function)


def first_arguments(source: str, function: str) -> list[str]:
    """The literal first arguments that *source* passes to *function*.

    The name may include the object that the method is called on: `account.record`.
    """
    return sorted(first for name, first in _calls(source) if f".{name}".endswith(f".{function}"))


@cache
def _calls(source: str) -> tuple[tuple[str, str], ...]:
    """Every call with a literal first argument: the name of the function, and that argument."""
    return tuple(
        (ast.unparse(node.func), str(node.args[0].value))
        for node in ast.walk(tree_of(source))
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)
    )

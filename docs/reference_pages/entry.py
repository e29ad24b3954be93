"""One public name as a part of the page about the Python API."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

from docs.reference_pages.docstring import parts_of, raised_by, summary_of
from docs.reference_pages.markdown import table
from docs.reference_pages.signature import Function, signature
from docs.reference_pages.source import documented, is_record, statements, words_of

INHERITED = {name for kind in (BaseException, str, tuple) for name in dir(kind)}
"""Attributes inherited from builtin classes, which are not described."""


def function_parts(name: str, function: Function) -> Iterator[str]:
    """A function: its signature, docstring and errors."""
    yield f"### {name}"
    yield _call(name, function)
    yield from parts_of(function)


def class_parts(name: str, kind: type, *notes: str, like: type | None = None) -> Iterator[str]:
    """A class: its fields or constructor, and its methods except those that it shares with *like*."""
    yield f"### {name}"
    yield from parts_of(kind)
    yield from notes
    if issubclass(kind, Enum):
        yield table(("member", "value", "meaning"), list(_members(kind)))
        return
    maker = maker_of(kind)
    if is_record(kind):
        yield _fields(list(field_rows(kind)))
    elif maker is not None:
        yield _call(name, maker)
        yield from parts_of(maker)
    found = [each for each in public(kind) if like is None or not is_like(kind, like, each)]
    if found:
        yield table(("", ""), [_summary(name, each, kind) for each in found])
    for each in found:
        if _has_more(kind, each):
            yield from _method_parts(name, each, kind)


def record_parts(name: str, kind: type) -> Iterator[str]:
    """A record that is an argument or a result: its module and its fields."""
    yield f"### {name}"
    yield from parts_of(kind)
    yield f"From `{kind.__module__}`."
    more = [(f"`{each}`", "", "", _words(kind, each)) for each in public(kind) if is_property(kind, each)]
    yield _fields([*field_rows(kind), *more])


def _fields(rows: list[tuple[str, ...]]) -> str:
    """A table of fields, with a column for defaults if any has one."""
    if any(row[2] for row in rows):
        return table(("field", "type", "default", "meaning"), rows)
    return table(("field", "type", "meaning"), [(*row[:2], row[3]) for row in rows])


def maker_of(kind: type) -> Function | None:
    """What makes an object, unless it is a record, or says that most callers want another way."""
    maker: Function = vars(kind).get("__init__", object.__init__)
    words = inspect.getdoc(maker) or ""
    is_documented = words != inspect.getdoc(object.__init__) and "most callers want" not in words
    return maker if is_documented and not is_record(kind) else None


def is_property(kind: type, name: str) -> bool:
    """Whether it is looked at, not called."""
    return isinstance(inspect.getattr_static(kind, name), property)


def is_like(kind: type, other: type, name: str) -> bool:
    """Whether what two classes have by that name is the same to a caller, but for being awaited."""
    if not hasattr(other, name):
        return False
    ours, theirs = getattr(kind, name), getattr(other, name)
    if is_property(kind, name):
        return True
    takes_same = list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    return takes_same and raised_by(ours) <= raised_by(theirs)


def public(kind: type) -> list[str]:
    """The methods and properties that a caller may use, sorted."""
    return [
        name
        for name in dir(kind)
        if not name.startswith("_")
        and name not in (INHERITED if issubclass(kind, BaseException | str | tuple) else ())
        and isinstance(inspect.getattr_static(kind, name), _METHODS)
    ]


_METHODS = (property, classmethod, staticmethod, type(summary_of))


def field_rows(kind: type) -> Iterator[tuple[str, ...]]:
    """A row for each field: its type, its default and the words below it; also of what it derives from."""
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith("carrel."):
            continue
        for node, below in statements(base):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name, default = node.target.id, "" if node.value is None else f"`{_default(node.value)}`"
                if not name.startswith("_"):
                    yield f"`{name}`", f"`{ast.unparse(node.annotation)}`", default, words_of(below)


def _default(node: ast.expr) -> str:
    """The default of a field, or the call that creates it."""
    text = ast.unparse(node)
    if made := re.match(r"field\(default_factory=([\w.]+)", text):
        return f"{made[1]}()"
    given = re.match(r"field\(default=(.+?)[,)]", text)
    return (given[1] if given else text).replace(" * MIB", " MiB")


def _members(kind: type[Enum]) -> Iterator[tuple[str, ...]]:
    for name, value, words in documented(kind):
        yield f"`{name}`", f"`{value}`", words


def _summary(owner: str, name: str, kind: type) -> tuple[str, str]:
    shown = f"[`{name}`](#{owner.lower()}{name})" if _has_more(kind, name) else f"`{name}`"
    return shown, _words(kind, name)


def _has_more(kind: type, name: str) -> bool:
    """Whether there is more to say than one line: how it is called, or what it raises."""
    return not is_property(kind, name) or "\n" in (inspect.getdoc(getattr(kind, name)) or "")


def _words(kind: type, name: str) -> str:
    return summary_of(inspect.getattr_static(kind, name) if is_property(kind, name) else getattr(kind, name))


def _method_parts(owner: str, name: str, kind: type) -> Iterator[str]:
    method = getattr(kind, name)
    is_bound = isinstance(inspect.getattr_static(kind, name), classmethod | staticmethod)
    yield f"#### {owner}.{name}"
    if not is_property(kind, name):
        yield _call(f"{owner}.{name}" if is_bound else name, method)
    yield from parts_of(method)


def _call(name: str, function: Any) -> str:  # Any: `__init__` of some class
    return f"```py\n{signature(name, function)}\n```"

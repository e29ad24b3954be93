"""The page about the Python API."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType

import carrel
from carrel.remote.workspace import RemoteWorkspace
from docs.reference_pages.api_words import ELSEWHERE, INTRODUCTION, NOTES, OPTIONS, RESULTS
from docs.reference_pages.docstring import summary_of
from docs.reference_pages.entry import (
    class_parts,
    function_parts,
    is_like,
    maker_of,
    public,
    record_parts,
)
from docs.reference_pages.markdown import codes, page, table, wrapped
from docs.reference_pages.signature import Function, definition
from docs.reference_pages.source import is_record


@dataclass(frozen=True, slots=True)
class Group:
    """Names that belong together."""

    title: str
    names: tuple[str, ...]


GROUPS = (
    Group("Files", ("Workspace", "AsyncWorkspace", "FileInfo", "Limits")),
    Group("Sessions", ("WorkspaceManager", "AsyncWorkspaceManager")),
    Group(
        "Files of a session by its id",
        (
            "list_session_files",
            "read_session_file",
            "write_session_file",
            "delete_session_path",
            "delete_session_workspace",
        ),
    ),
    Group(
        "Running code",
        (
            "create_session_sandbox",
            "get_session_sandbox",
            "create_sandbox",
            "BaseSandbox",
            "PythonSandbox",
            "ContainerSandbox",
            "RuntimeType",
            "ExecutionPolicy",
            "SandboxResult",
        ),
    ),
    Group("Command lines", ("Shell", "ShellResult", "Budget")),
    Group("Tools for agents", ("Toolbox", "ToolResult", "ToolImage", "ToolOutput", "Role")),
    Group("Sessions of a service", ("Client", "AsyncClient", "connect")),
    Group("Rules", ("SandboxPolicy", "PathRule", "AccessMode")),
    Group("Logging and errors", ("SandboxLogger", "CarrelError")),
)

LIKE: dict[str, type] = {
    "AsyncClient": carrel.Client,
    "AsyncWorkspace": carrel.Workspace,
    "AsyncWorkspaceManager": carrel.WorkspaceManager,
    "ContainerSandbox": carrel.BaseSandbox,
    "PythonSandbox": carrel.BaseSandbox,
    "RemoteWorkspace": carrel.Workspace,
}
"""Classes that share most methods with another class; only the differences are listed."""


def make() -> str:
    """The page."""
    found = records()
    options = {name: kind for name, kind in found.items() if name.endswith("Options")}
    results = {name: kind for name, kind in found.items() if name not in options}
    return page(
        "Python API",
        INTRODUCTION,
        table(
            ("name", "what it is or does"),
            [summary_row(name) for name in sorted(carrel.__all__, key=str.lower)],
        ),
        *(part for group in GROUPS for part in group_parts(group)),
        "## Options",
        OPTIONS,
        *(part for name, kind in options.items() for part in record_parts(name, kind)),
        "## Parameter and result types",
        RESULTS,
        *(part for name, kind in results.items() for part in record_parts(name, kind)),
        "## Other modules",
        ELSEWHERE,
    )


def summary_row(name: str) -> tuple[str, str]:
    """Return a row that links to the section of *name*."""
    return f"[`{name}`](#{name.lower()})", summary_of(getattr(carrel, name))


def group_parts(group: Group) -> Iterator[str]:
    """The names of one group."""
    yield f"## {group.title}"
    if group.title in NOTES:
        yield NOTES[group.title]
    for name in group.names:
        thing = getattr(carrel, name)
        if inspect.isclass(thing):
            yield from kind_parts(name, thing)
        else:
            yield from function_parts(name, thing)
    if "Client" in group.names:
        yield from kind_parts("RemoteWorkspace", RemoteWorkspace)


def kind_parts(name: str, kind: type) -> Iterator[str]:
    """A class, its notes, and what it shares with another."""
    like = LIKE.get(name)
    notes = [NOTES[name]] if name in NOTES else []
    if like is not None:
        notes += list(likeness(kind, like))
    yield from class_parts(name, kind, *notes, like=like)


def likeness(kind: type, like: type) -> Iterator[str]:
    """What a class has of another one, and what it has not."""
    same = [name for name in public(kind) if is_like(kind, like, name)]
    lacking = [name for name in public(like) if not hasattr(kind, name)]
    other = f"[`{like.__name__}`](#{like.__name__.lower()})"
    begin = f"It has of {other}: {codes(same)}." if lacking else f"It has all that a {other} has."
    yield wrapped(begin + (f" It does not have {codes(lacking)}." if lacking else ""))
    several = [name for name in same if gives_several(kind, name) and not gives_several(like, name)]
    if several:
        yield wrapped(f"These are asynchronous iterators: {codes(several)}.")


def gives_several(kind: type, name: str) -> bool:
    """Whether a method gives things one by one to `async for`."""
    method = getattr(kind, name)
    return "AsyncIterator" in str(getattr(method, "__annotations__", {}).get("return"))


def records() -> dict[str, type]:
    """The records that stand in public signatures and are no public names themselves, by name."""
    found: dict[str, type] = {}
    for name in carrel.__all__:
        thing = getattr(carrel, name)
        for function in functions_of(thing) if inspect.isclass(thing) else [thing]:
            for word, kind in annotated_kinds(function):
                if word not in carrel.__all__ and (is_record(kind) or hasattr(kind, "_fields")):
                    found[word] = kind
    return dict(sorted(found.items()))


def annotated_kinds(function: Function) -> Iterator[tuple[str, type]]:
    """The classes of this package that the annotations of a function name."""
    node, module = definition(function), import_module(inspect.unwrap(function).__module__)
    homes = imported(module)
    notes = [each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg)]
    for note in (*notes, node.returns):
        for word in re.findall(r"\w+", ast.unparse(note) if note else ""):
            kind = getattr(homes.get(word, module), word, None)
            if inspect.isclass(kind) and kind.__module__.startswith("carrel."):
                yield word, kind


@cache
def imported(module: ModuleType) -> dict[str, ModuleType]:
    """The defining modules of the carrel names that *module* imports, also for type checking only."""
    return {
        name.name: import_module(node.module)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("carrel.")
        for name in node.names
    }


def functions_of(kind: type) -> Iterator[Function]:
    """The constructor and the methods of a class."""
    maker = maker_of(kind)
    if maker is not None:
        yield maker
    for name in public(kind):
        if not isinstance(inspect.getattr_static(kind, name), property):
            yield getattr(kind, name)

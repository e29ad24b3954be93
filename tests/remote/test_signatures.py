"""A client offers what the library does, with the same arguments, except for what is listed here."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from carrel import AsyncClient, AsyncWorkspace, Client, PythonSandbox, Shell, Toolbox, Workspace
from carrel import WorkspaceManager as Manager
from carrel.remote.async_workspace import AsyncRemoteWorkspace
from carrel.remote.sandbox import AsyncRemoteSandbox, RemoteSandbox, RunOptions
from carrel.remote.shell import AsyncRemoteShell, RemoteShell
from carrel.remote.toolbox import AsyncRemoteToolbox, RemoteToolbox
from carrel.remote.workspace import RemoteWorkspace
from carrel.sandbox.sandbox import CallOptions

OPERATOR = "for the operator of the service, who has the sessions directory"
HOST = "speaks of the host or of rules, which the service decides"
SERVER = "for a server that calls tools on its event loop"
FUNCTION = "an awaited call is stopped by cancelling its task"
OWN_FILES = "for a program that has the files itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Twins:
    """A class of the library and those that do the same at a service, and how these differ."""

    here: type
    there: tuple[type, ...]
    missing: Mapping[str, str] = field(default_factory=dict)
    """Names that the service does not offer, with the reason."""
    not_sent: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By method, arguments that are not sent, with the reason."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Names that only the service offers, with the reason."""

    def __str__(self) -> str:
        return f"{self.here.__name__}-{self.there[0].__name__}"


_OPENING = {"actor": "the caller, whom the service knows by the key", "absolute_paths": HOST}
_MANAGER_MISSING = {
    "description": "for processes that share the sessions directory",
    "elsewhere": OPERATOR,
    "from_description": "for processes that share the sessions directory",
    "from_env": OPERATOR,
    "from_settings": OPERATOR,
    "journal": "a file; `RemoteWorkspace.changes` and `follow` iterate over the records",
    "shown": "filters records of `journal`",
    "sweep": OPERATOR,
    "verify": OPERATOR,
}
_MANAGER_NOT_SENT = {
    "create": {**_OPENING, "make_id": "a function", "policy": HOST},
    "get_workspace": _OPENING,
    "open": {**_OPENING, "allow": HOST, "limits": "those of the session count", "policy": HOST},
}
_WORKSPACE_MISSING = {
    "confinement": HOST,
    "explain": HOST,
    "host_path": HOST,
    "narrowed": "roles narrow what a caller may do: `toolbox(role)`, and the role of the client",
    "open": "`Client.open`",
    "policy": HOST,
    "reader": "an open file of the host; `read_chunks` and `read` with an offset",
    "within": "roles narrow what a caller may do",
}
_WORKSPACE_MORE = {
    "created_ns": "an attribute of instances here",
    "follow": "waits for new records at the service",
    "mount": "an attribute of instances here",
    "sandbox": "`create_sandbox(workspace=...)` here",
    "shell": "`Shell(workspace)` here",
    "toolbox": "`Toolbox(workspace)` here",
}
_SHELL_MISSING = {
    "analyze": HOST,
    "env": "the service keeps the variables",
    "may_run": "the role decides, which the service knows",
    "path": "the service resolves paths",
    "workspace": "`RemoteWorkspace.shell` made it",
}
_SANDBOX_MISSING = {
    "reset": "the service keeps variables until it closes the session",
    "runtime": "the service decides",
}
_TOOLBOX_MISSING = {
    "at_once": SERVER,
    "in_thread": SERVER,
    "tools": "rows that name code of the library; `names` and `schemas` describe the tools",
}

TWINS = (
    Twins(here=Manager, there=(Client,), missing=_MANAGER_MISSING, not_sent=_MANAGER_NOT_SENT),
    Twins(
        here=Manager,
        there=(AsyncClient,),
        missing=_MANAGER_MISSING,
        not_sent=_MANAGER_NOT_SENT,
        more={"over": "makes a client of a transport"},
    ),
    Twins(
        here=Workspace,
        there=(RemoteWorkspace, AsyncRemoteWorkspace),
        missing=_WORKSPACE_MISSING,
        more=_WORKSPACE_MORE,
    ),
    Twins(
        here=AsyncWorkspace,
        there=(AsyncRemoteWorkspace,),
        missing=_WORKSPACE_MISSING,
        more=_WORKSPACE_MORE,
    ),
    Twins(
        here=Shell,
        there=(RemoteShell,),
        missing=_SHELL_MISSING,
        more={"budget": "an attribute of instances here"},
    ),
    Twins(
        here=Shell,
        there=(AsyncRemoteShell,),
        missing={**_SHELL_MISSING, "cwd": "an attribute of instances there"},
        not_sent={"run": {"on_start": FUNCTION}},
        more={"run_in": "runs a line that can be cancelled by its handle"},
    ),
    Twins(
        here=PythonSandbox,
        there=(RemoteSandbox,),
        missing=_SANDBOX_MISSING,
    ),
    Twins(
        here=PythonSandbox,
        there=(AsyncRemoteSandbox,),
        missing=_SANDBOX_MISSING,
        more={"execute_in": "runs code that can be cancelled by its handle"},
    ),
    Twins(here=Toolbox, there=(RemoteToolbox, AsyncRemoteToolbox), missing=_TOOLBOX_MISSING),
)
OPTIONS_NOT_SENT = {
    "show_last_value": "models call the tool `python_executor`, which shows it",
    "on_progress": "the service compiles its guest before it starts",
    "tools": "functions",
    "tool_timeout_seconds": "for functions",
}
"""Options of a call of guest code that a service does not take, with the reason."""


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def parameters(kind: type, name: str) -> dict[str, tuple[object, object]]:
    """The parameters of a method with their kinds and defaults, without `self`."""
    _, *found = inspect.signature(getattr(kind, name)).parameters.values()
    return {each.name: (each.kind, each.default) for each in found}


@pytest.mark.parametrize("twins", TWINS, ids=str)
def test_a_service_offers_what_the_library_does(twins: Twins) -> None:
    for kind in twins.there:
        assert public(twins.here) - public(kind) == set(twins.missing)
        assert public(kind) - public(twins.here) == set(twins.more)


@pytest.mark.parametrize("twins", TWINS, ids=str)
def test_a_method_takes_the_arguments_of_the_library_in_their_order(twins: Twins) -> None:
    for kind in twins.there:
        for name in public(twins.here) & public(kind):
            if not inspect.isfunction(getattr(twins.here, name)):
                continue
            wanted = parameters(twins.here, name)
            for left_out in twins.not_sent.get(name, ()):
                del wanted[left_out]
            found = parameters(kind, name)
            assert list(found.items()) == list(wanted.items()), (kind.__name__, name)


def test_code_takes_the_options_of_the_library() -> None:
    assert CallOptions.__annotations__.keys() - RunOptions.__annotations__.keys() == set(OPTIONS_NOT_SENT)
    assert RunOptions.__annotations__.keys() <= CallOptions.__annotations__.keys()

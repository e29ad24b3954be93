"""The reference is complete and says what the code says."""

from __future__ import annotations

import inspect
import re

import pytest

import carrel
from carrel import AsyncWorkspace, Workspace, WorkspaceManager
from carrel.remote.workspace import RemoteWorkspace
from docs.reference_pages.pages import DOCS, PAGES
from tests.docs.pages import ROOT

API = (ROOT / "docs" / "reference" / "api.md").read_text()
TITLE = re.compile(r"^## (.+)$", re.MULTILINE)


def section(title: str) -> str:
    """What the reference says below *title*."""
    return API.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("name", PAGES)
def test_a_made_page_is_not_stale(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name](), "run: make docs"


def public_methods(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


@pytest.mark.parametrize("name", carrel.__all__)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    assert re.search(rf"`{name}\b", API)


@pytest.mark.parametrize("name", sorted(public_methods(Workspace)))
def test_every_method_of_a_workspace_is_in_the_reference(name: str) -> None:
    assert re.search(rf"`{name}\b", API)


@pytest.mark.parametrize("name", sorted(public_methods(WorkspaceManager)))
def test_every_method_of_the_manager_is_in_the_reference(name: str) -> None:
    assert re.search(rf"`(?:WorkspaceManager\.)?{name}\b", section("`WorkspaceManager`"))


@pytest.mark.parametrize("name", sorted(public_methods(carrel.Toolbox)))
def test_every_method_of_a_toolbox_is_in_the_reference(name: str) -> None:
    assert re.search(rf"`{name}\b", section("`Toolbox`"))


@pytest.mark.parametrize("name", sorted(public_methods(carrel.Client)))
def test_every_method_of_a_client_is_in_the_reference(name: str) -> None:
    assert re.search(rf"`{name}\b", section("`Client`"))


def test_what_differs_in_a_workspace_of_a_service_is_in_the_reference() -> None:
    attributes = {"policy", "confinement", "within", "mount", "open"}
    for name in (public_methods(RemoteWorkspace) ^ public_methods(Workspace)) - attributes:
        assert re.search(rf"`{name}\b", section("`Client`")), name


def test_what_differs_in_an_async_workspace_is_in_the_reference() -> None:
    for name in public_methods(AsyncWorkspace) ^ public_methods(Workspace):
        assert re.search(rf"`{name}\b", API), name


def test_the_reference_names_no_parameter_that_is_not_there() -> None:
    owners = {
        "`Client`": RemoteWorkspace,
        "`ContainerSandbox`": carrel.ContainerSandbox,
        "`PythonSandbox`": carrel.PythonSandbox,
        "`Shell`": carrel.Shell,
        "`Toolbox`": carrel.Toolbox,
        "`Workspace`": Workspace,
        "`WorkspaceManager`": WorkspaceManager,
    }
    for title in TITLE.findall(API):
        for name, words in re.findall(r"^\| `(\w+)\(([^)]*)\)` \|", section(title), re.MULTILINE):
            method = getattr(owners.get(title, carrel), name)
            wanted = [word.strip().partition("=")[0] for word in words.split(",")]
            known = ["*", "**options", *inspect.signature(method).parameters]
            assert [word for word in wanted if word and word not in known] == [], name

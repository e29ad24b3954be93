"""The reference is complete and agrees with the code."""

from __future__ import annotations

import inspect
import logging
import re
from pathlib import Path

import pytest

import carrel
from carrel import SandboxLogger, Workspace, WorkspaceManager
from carrel.remote.workspace import RemoteWorkspace
from docs.reference_pages.api import GROUPS, LIKE
from docs.reference_pages.events import MEANINGS, OPERATIONS, all_events, operations
from docs.reference_pages.pages import DOCS, PAGES

API = (DOCS / "reference" / "api.md").read_text()
EVENTS = (DOCS / "reference" / "events.md").read_text()
KINDS = {name: getattr(carrel, name) for name in carrel.__all__ if inspect.isclass(getattr(carrel, name))}
FOREIGN = {name for kind in (str, Exception) for name in dir(kind)}
ATTRIBUTES = {"code", "number", "runtime", "mount"}
"""Attributes of classes that are described in prose."""


def section(name: str) -> str:
    """Return the section about a public name."""
    return API.partition(f"\n### {name}\n")[2].partition("\n### ")[0]


def public_members(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_") and name not in FOREIGN | ATTRIBUTES]


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_not_stale(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name](), "run: make docs"


def test_every_page_of_the_reference_but_the_glossary_is_generated() -> None:
    found = {f"reference/{page.name}" for page in (DOCS / "reference").glob("*.md")}
    assert found - {"reference/glossary.md"} == set(PAGES)


def test_every_public_name_has_its_place_in_the_reference() -> None:
    assert sorted(name for group in GROUPS for name in group.names) == sorted(carrel.__all__)
    for name in carrel.__all__:
        assert section(name), name


@pytest.mark.parametrize("name", KINDS)
def test_every_public_method_is_in_the_reference(name: str) -> None:
    told = section(name) + (section(LIKE[name].__name__) if name in LIKE else "")
    for member in public_members(KINDS[name]):
        if isinstance(inspect.getattr_static(KINDS[name], member), KINDS[name]):
            assert f"| `{member}` |" in told  # one of an enumeration
        else:
            assert re.search(rf"^(#### \w+\.{member}|\| `{member}` \|.*)$", told, re.MULTILINE), member


@pytest.mark.parametrize("name", carrel.__all__)
def test_every_public_name_and_method_has_words(name: str) -> None:
    thing = getattr(carrel, name)
    members = [getattr(thing, each) for each in public_members(thing)] if name in KINDS else []
    for each in [thing, *(each for each in members if inspect.isroutine(each) or isinstance(each, property))]:
        words = inspect.getdoc(each) or ""
        assert re.search(r"[.:]$", words.partition("\n")[0]), each


def test_what_differs_in_a_workspace_of_a_service_is_in_the_reference() -> None:
    for name in set(public_members(RemoteWorkspace)) ^ set(public_members(Workspace)) - {"far"}:
        assert re.search(rf"`{name}`", section("RemoteWorkspace")), name


def test_every_parameter_of_a_public_function_is_in_its_signature() -> None:
    for name in set(carrel.__all__) - set(KINDS):
        for parameter in inspect.signature(getattr(carrel, name)).parameters:
            assert re.search(rf"[ *(]{parameter}: ", section(name).partition("\n```\n")[0]), parameter


def test_every_error_that_a_docstring_names_is_in_the_reference() -> None:
    for name, kind in KINDS.items():
        for member in public_members(kind):
            words = inspect.getdoc(getattr(kind, member)) or ""
            for error in re.findall(r"^    (\w+Error): ", words.partition("\nRaises:\n")[2], re.MULTILINE):
                told = section(name) + (section(LIKE[name].__name__) if name in LIKE else "")
                assert f"- `{error}`: " in told, (name, member)


# Events


def test_every_event_and_every_operation_has_words_and_none_has_too_many() -> None:
    assert [event.name for event in all_events()] == sorted(MEANINGS)
    assert operations() == sorted(OPERATIONS)


def documented_fields(name: str) -> set[str]:
    """Return the fields of an event in the page."""
    row = re.search(rf"^\| `{re.escape(name)}` \| \w+ \| (.*?) \|", EVENTS, re.MULTILINE)
    assert row, name
    return set(re.findall(r"`(\w+)`", row[1]))


def documented_level(name: str) -> str:
    row = re.search(rf"^\| `{re.escape(name)}` \| (\w+) \|", EVENTS, re.MULTILINE)
    assert row, name
    return row[1]


def test_log_events_have_the_documented_levels_and_fields(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="carrel")
    use_a_session(tmp_path / "sessions")
    standard = set(vars(logging.makeLogRecord({}))) | {"event", "message", "asctime"}
    seen = set()
    for record in caplog.records:
        event = str(vars(record)["event"])
        shown = event if event in MEANINGS else "security.*"
        if shown != event:
            assert f"`{event}`" in EVENTS
        seen.add(shown)
        assert record.levelname.lower() == documented_level(shown)
        # Repeated refusals have one more field.
        assert set(vars(record)) - standard == documented_fields(shown) - {"repeats"}, event
    # Few fields depend on the arguments, so nearly all of them are covered.
    assert len(seen) >= 20


def use_a_session(root: Path) -> None:
    """Perform the logged operations that need only files."""
    with WorkspaceManager(root, logger=SandboxLogger()) as manager:
        with manager.create("s1") as files:
            files.write("a.txt", "hello\n")
            files.append("a.txt", "you\n")
            files.edit("a.txt", "you", "all")
            files.read("a.txt")
            files.mkdir("b")
            files.touch("b/c.txt")
            files.copy("a.txt", "b/a.txt")
            files.move("b/a.txt", "b/d.txt")
            files.search("hello")
            archive = b"".join(files.archive("b"))
            files.extract(archive, "e")
            files.remove("b", recursive=True)
            files.recount()
            with pytest.raises(ValueError, match="escapes"):
                files.read("../out")
        manager.open("s1").close()
        manager.sweep(idle_seconds=0)
        manager.create("s2").close()
        manager.delete_workspace("s2")

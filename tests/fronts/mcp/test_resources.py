"""The files of a session as resources, and what cannot be one."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp_types import Resource

from carrel.config.load import load
from carrel.fronts.mcp.client_context import ClientContext
from carrel.fronts.mcp.resources import Resources
from carrel.service.principal import Principal
from carrel.service.service import Service
from carrel.sessions.manager import WorkspaceManager
from tests.fronts.mcp.conftest import Near
from tests.fronts.mcp.talk import Talk

HIDDEN = b"hidden content"


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """Two sessions, with a secret beside them and links that lead there."""
    place = tmp_path / "sessions"
    with WorkspaceManager(place) as manager:
        manager.create("s1").close()
        with manager.create("s2") as other:
            other.write("secret", HIDDEN)
    (tmp_path / "secret").write_bytes(HIDDEN)
    mine = place / "s1"
    (mine / "out").symlink_to("../..")
    (mine / "there").symlink_to("../s2/secret")
    (mine / "host").symlink_to(tmp_path / "secret")
    return place


@pytest.fixture
def bound(near: Near, sessions: Path) -> Talk:
    return near(role="developer", session="s1")


def test_files_are_listed_page_by_page(sessions: Path) -> None:
    names = [f"d{number % 3}/f{number}.md" for number in range(10)]
    with WorkspaceManager(sessions).open("s1") as workspace:
        for name in names:
            workspace.write(name, b"12")

    async def pages() -> list[list[Resource]]:
        found: list[list[Resource]] = []
        cursor = None
        async with Service(WorkspaceManager(sessions), load(os.environ)) as service:
            listing = Resources(service, page=4)
            visit = ClientContext(caller=Principal(name="someone", session="s1"))
            while not found or cursor is not None:
                page = await listing.list(visit, cursor)
                found.append(page.resources)
                cursor = page.next_cursor
        return found

    found = asyncio.run(pages())
    assert [len(page) for page in found] == [4, 4, 2]
    listed = [each for page in found for each in page]
    assert [each.name for each in listed] == sorted(names)
    assert listed[0].uri == "carrel:///d0/f0.md"
    assert (listed[0].mime_type, listed[0].size) == ("text/markdown", 2)


def test_a_cursor_that_no_page_gave_is_refused(bound: Talk) -> None:
    with pytest.raises(MCPError, match="the cursor is invalid"):
        bound.run(bound.client.list_resources, cursor="a")


def test_the_template_says_how_an_address_is_made(bound: Talk, near: Near) -> None:
    (template,) = bound.run(bound.client.list_resource_templates).resource_templates
    assert template.uri_template == "carrel:///{+path}"
    free = near()
    (template,) = free.run(free.client.list_resource_templates).resource_templates
    assert template.uri_template == "carrel://{session}/{+path}"


def test_text_comes_as_text_and_anything_else_as_bytes(bound: Talk, sessions: Path) -> None:
    (sessions / "s1" / "p.bin").write_bytes(b"\0\xff")
    (sessions / "s1" / "t.json").write_text('{"ü": 1}')
    (contents,) = bound.run(bound.client.read_resource, "carrel:///t.json").contents
    assert contents.mime_type == "application/json"
    assert bound.read("carrel:///t.json") == '{"ü": 1}'
    assert base64.b64decode(bound.read("carrel:///p.bin")) == b"\0\xff"


def test_a_name_that_is_no_text_is_listed_and_read(bound: Talk, sessions: Path) -> None:
    (sessions / "s1" / "d").mkdir()
    (sessions / "s1" / "d" / "a\udcff").write_text("odd")
    (listed,) = json.loads(bound.read("carrel:///d"))
    assert listed["uri"] == "carrel:///d/a%FF"
    assert bound.read(listed["uri"]) == "odd"
    uris = [each.uri for each in bound.run(bound.client.list_resources).resources]
    assert "carrel:///d/a%FF" in uris
    assert bound.output("file_list", path="d")


def test_a_file_that_is_too_large_is_refused(bound: Talk, sessions: Path) -> None:
    with (sessions / "s1" / "large").open("wb") as file:
        file.truncate(11 * 10**6)
    assert bound.refusal("carrel:///large")["code"] == "limit.read_bytes"


def test_who_may_not_read_may_not_look_either(near: Near, sessions: Path) -> None:
    talk = near(role="nobody", session="s1")
    assert talk.refusal("carrel:///")["code"] == "access.role"
    with pytest.raises(MCPError, match="may not"):
        talk.run(talk.client.list_resources)


HOSTILE = [
    "carrel:///../s2/secret",
    "carrel:///..%2fs2%2fsecret",
    "carrel:///%2e%2e/s2/secret",
    "carrel:///%2e%2e%2f%2e%2e%2fsecret",
    "carrel:///%252e%252e%252fsecret",
    "carrel:///..%5c..%5csecret",
    "carrel:///a/../../secret",
    "carrel:///out/secret",
    "carrel:///out/sessions/s2/secret",
    "carrel:///there",
    "carrel:///host",
    "carrel:////etc/passwd",
    "carrel:///%2fetc%2fpasswd",
    "carrel:///secret%00.txt",
    "carrel:///.carrel/registry.db",
    "carrel:///../.carrel/registry.db",
    "carrel://s2/secret",
    "carrel://s1/../s2/secret",
    "carrel://../s2/secret",
    "carrel://.carrel/registry.db",
    "carrel://s1@s2/secret",
    "carrel://s2%2fsecret",
    "carrel://S1/../s2/secret",
    "carrel:s2/secret",
    "file:///etc/passwd",
    "/etc/passwd",
    "carrel:///proc/self/environ",
    "carrel:///" + "a/" * 3000,
]


@pytest.mark.attack
@pytest.mark.parametrize("uri", HOSTILE)
def test_no_address_leads_out_of_the_session(bound: Talk, sessions: Path, uri: str) -> None:
    refusal = bound.refusal(uri)
    assert refusal["code"].partition(".")[0] in ("path", "access", "session", "request")
    told = json.dumps(refusal)
    assert str(sessions.parent) not in told
    assert HIDDEN.decode() not in told


@pytest.mark.attack
def test_changes_of_another_session_are_not_told(bound: Talk, near: Near) -> None:
    other = near(role="developer")

    async def heard() -> str:
        uris = ["carrel://s2/secret", "carrel:///../s2/secret", "carrel:///there", "carrel:///mine"]
        async with bound.client.listen(resource_subscriptions=uris) as events:
            await asyncio.to_thread(other.output, "file_write", session="s2", path="secret", content="new")
            await bound.client.call_tool("file_write", {"path": "mine", "content": "1"})
            event = await anext(aiter(events))
            assert isinstance(event, ResourceUpdated)
            return event.uri

    assert bound.run(heard) == "carrel:///mine"


def test_who_listens_hears_that_the_list_of_files_changed(bound: Talk) -> None:
    async def heard() -> object:
        async with bound.client.listen(resources_list_changed=True) as events:
            await bound.client.call_tool("file_write", {"path": "new", "content": "1"})
            return await anext(aiter(events))

    assert bound.run(heard) == ResourcesListChanged()


def test_who_listens_hears_of_a_directory_that_is_moved_away(bound: Talk) -> None:
    bound.output("file_write", path="d/f", content="1", create_dirs=True)

    async def heard() -> object:
        async with bound.client.listen(resource_subscriptions=["carrel:///d/f"]) as events:
            await bound.client.call_tool("file_move", {"source": "d", "destination": "e"})
            return await anext(aiter(events))

    assert bound.run(heard) == ResourceUpdated("carrel:///d/f")


def test_a_session_that_is_made_anew_is_listened_to_again(bound: Talk, sessions: Path) -> None:
    bound.output("file_write", path="a", content="1")

    async def heard() -> list[object]:
        async with bound.client.listen(resource_subscriptions=["carrel:///a"]) as events:
            with WorkspaceManager(sessions) as manager:
                await asyncio.to_thread(manager.delete_workspace, "s1")
            told: list[object] = [await anext(aiter(events))]
            await bound.client.call_tool("file_write", {"path": "a", "content": "2"})
            return [*told, await anext(aiter(events))]

    assert bound.run(heard) == [ResourceUpdated("carrel:///a")] * 2


def test_too_many_files_are_not_listened_for(bound: Talk) -> None:
    async def listen() -> None:
        uris = [f"carrel:///{number}" for number in range(101)]
        async with bound.client.listen(resource_subscriptions=uris):
            pass

    with pytest.raises(MCPError, match="too many"):
        bound.run(listen)

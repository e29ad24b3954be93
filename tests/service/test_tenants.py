"""Every tenant has its own sessions, and no name leads from one to another."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from carrel.errors import CarrelError, SessionIdError
from carrel.service import tenants as tenants_module
from carrel.service.execution_request import CommandRequest
from carrel.service.service import Service
from carrel.service.sessions.info import NewSession
from carrel.service.tenants import MAX_OPEN, Tenants
from carrel.sessions.manager import WorkspaceManager
from tests.service.conftest import OPERATOR, STRANGER, WRITER, House


def test_two_tenants_may_give_the_same_name(house: House) -> None:
    async def work(service: Service) -> list[str]:
        for caller in (OPERATOR, WRITER, STRANGER):
            await service.sessions.create(caller, NewSession(session_id="same"))
            await service.call(caller, "same", "write", {"path": "who", "data": caller.name})
        callers = (OPERATOR, WRITER, STRANGER)
        return [await service.call(caller, "same", "read_text", {"path": "who"}) for caller in callers]

    assert house.run(work) == ["local", "writer", "stranger"]


def test_anothers_session_answers_like_one_that_does_not_exist(house: House) -> None:
    async def work(service: Service) -> list[tuple[str, str]]:
        await service.sessions.create(WRITER, NewSession(session_id="mine"))
        started = await service.start(WRITER, "mine", CommandRequest(command="ls"))
        await started.result()
        calls: list[Callable[[str], Any]] = [
            lambda name: service.sessions.status(STRANGER, name),
            lambda name: service.sessions.extend(STRANGER, name, 5),
            lambda name: service.sessions.delete(STRANGER, name),
            lambda name: service.sessions.reset(STRANGER, name),
            lambda name: service.call(STRANGER, name, "list", {}),
            lambda name: service.changes(STRANGER, name),
            lambda name: service.start(STRANGER, name, CommandRequest(command="ls")),
        ]
        said = []
        for name in ("mine", "none"):
            said.append([await _said(call(name), name) for call in calls])
        assert said[0] == said[1]
        assert (await service.sessions.status(WRITER, "mine")).session_id == "mine"
        with pytest.raises(CarrelError) as caught:
            service.execution(STRANGER, "mine", started.id)
        return [*said[0], (caught.value.code, "")]

    answers = house.run(work)
    assert {code for code, _ in answers[:-1]} == {"session.missing"}
    assert answers[-1][0] == "request.unknown"


async def _said(call: Any, name: str) -> tuple[str, str]:
    try:
        await call
    except CarrelError as error:
        return error.code, error.message.replace(name, "NAME")
    return "", ""


def test_a_tenant_is_listed_its_own_sessions_only(house: House) -> None:
    async def work(service: Service) -> list[list[str]]:
        for caller, name in ((OPERATOR, "a"), (WRITER, "b"), (STRANGER, "c")):
            await service.sessions.create(caller, NewSession(session_id=name))
        pages = [await service.sessions.list(caller) for caller in (OPERATOR, WRITER, STRANGER)]
        return [[one.session_id for one in page.sessions] for page in pages]

    assert house.run(work) == [["a"], ["b"], ["c"]]


@pytest.mark.parametrize("name", ["../x", "..", "", ".carrel", "a/b", "a\0b", "x" * 129])
def test_a_tenant_is_no_path(house: House, name: str) -> None:
    tenants = Tenants(WorkspaceManager(house.root))
    with pytest.raises(SessionIdError):
        tenants.manager(name)
    assert not (house.root / ".carrel" / "tenants").exists()


def test_the_directory_of_a_tenant_is_ours_alone(house: House) -> None:
    before = os.umask(0)
    try:
        tenants = Tenants(WorkspaceManager(house.root))
        tenants.manager("acme").create("s1").close()
    finally:
        os.umask(before)
    places = [house.root / ".carrel", *(house.root / ".carrel" / "tenants").glob("**/")]
    assert {oct(place.stat().st_mode & 0o077) for place in places} == {"0o0"}


def test_a_tenant_whose_directory_is_a_link_is_not_served(house: House, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    tenants = Tenants(WorkspaceManager(house.root))
    tenants.manager("acme")
    (house.root / ".carrel" / "tenants" / "evil").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CarrelError) as caught:
        tenants.manager("evil")
    assert caught.value.code == "sessions.unavailable"


def test_the_sessions_of_all_tenants_are_swept(house: House) -> None:
    names = [f"t{number}" for number in range(MAX_OPEN + 3)]
    tenants = Tenants(WorkspaceManager(house.root))
    for name in names:
        tenants.manager(name)
    tenants.close()
    found = [manager.root.name for manager in Tenants(WorkspaceManager(house.root)).all()]
    assert found == ["sessions", *sorted(names)]


def _open_files(place: Path) -> set[str]:
    """The files at or beneath *place* that this process has open."""
    found = set()
    for each in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.add(os.readlink(f"/proc/self/fd/{each}"))
    return {each for each in found if Path(each).is_relative_to(place)}


def test_a_tenant_that_is_not_kept_is_closed_by_its_last_user(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenants_module, "MAX_OPEN", 1)
    tenants = Tenants(WorkspaceManager(house.root))
    place = house.root / ".carrel" / "tenants" / "first"
    gc.disable()
    try:
        used = tenants.manager("first")
        used.create("s1").close()
        tenants.manager("second")
        assert tenants.get_if_open("first") is None
        assert [record.session_id for record in used.list_records(None, 9)] == ["s1"]
        assert _open_files(place)
        del used
        assert not _open_files(place)
    finally:
        gc.enable()
    assert tenants.manager("first").status("s1").record.session_id == "s1"
    tenants.close()

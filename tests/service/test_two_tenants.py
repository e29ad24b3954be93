"""Two tenants who try each other's names: whatever they ask, the answer is that of a name that nobody has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from carrel.config.load import load
from carrel.errors import CarrelError
from carrel.service.authentication.authenticator import Authenticator
from carrel.service.authentication.key_store import KeyStore, NewKey
from carrel.service.execution_request import CommandRequest
from carrel.service.operations import OPERATIONS
from carrel.service.principal import Principal
from carrel.service.service import Service
from carrel.service.sessions.info import NewSession
from carrel.sessions.manager import WorkspaceManager

pytestmark = pytest.mark.attack

Ask = Callable[[Service, Principal, str], Awaitable[object]]
ARGUMENTS = {
    "path": "a.txt",
    "data": "x",
    "pattern": "*",
    "query": "secret",
    "source": "a.txt",
    "target": "b.txt",
    "old": "a",
    "new": "b",
}


async def _changes(service: Service, caller: Principal, session_id: str) -> object:
    return await service.changes(caller, session_id)


async def _follow(service: Service, caller: Principal, session_id: str) -> object:
    return await anext(service.follow(caller, session_id))


def _operation(name: str) -> Ask:
    fields = OPERATIONS[name].parameters.__struct_fields__
    given = {field: value for field, value in ARGUMENTS.items() if field in fields}
    return lambda service, caller, session_id: service.call(caller, session_id, name, given)


ASKED: dict[str, Ask] = {
    "session": lambda service, caller, session_id: service.sessions.status(caller, session_id),
    "extend": lambda service, caller, session_id: service.sessions.extend(caller, session_id, 60),
    "delete": lambda service, caller, session_id: service.sessions.delete(caller, session_id),
    "reset": lambda service, caller, session_id: service.sessions.reset(caller, session_id),
    "changes": _changes,
    "follow": _follow,
    "start": lambda service, caller, session_id: service.start(
        caller, session_id, CommandRequest(command="ls")
    ),
    **{name: _operation(name) for name in OPERATIONS},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def keys(root: Path) -> Iterator[KeyStore]:
    with closing(KeyStore(root)) as made:
        yield made


def callers_of(keys: KeyStore) -> tuple[Principal, Principal]:
    """Alice and Bob, each by a key of their own that allows everything."""
    callers = Authenticator(load({"CARREL_SERVE_REQUIRE_KEY": "0"}), keys)

    async def known(name: str) -> Principal:
        _, text = keys.create(NewKey(name=name, role="developer"))
        return await callers.authenticate(authorization=f"Bearer {text}", peer_is_local=False)

    return asyncio.run(known("alice")), asyncio.run(known("bob"))


async def told(asked: Awaitable[object]) -> tuple[str, str]:
    """The code and the words of a refusal."""
    with pytest.raises(CarrelError) as caught:
        await asked
    return caught.value.code, caught.value.message


@pytest.mark.parametrize("name", ASKED)
def test_the_session_of_another_is_as_one_that_never_was(keys: KeyStore, root: Path, name: str) -> None:
    alice, bob = callers_of(keys)

    async def work() -> None:
        async with Service(WorkspaceManager(root), load({})) as service:
            await service.sessions.create(alice, NewSession(session_id="hers"))
            await service.call(alice, "hers", "write", {"path": "a.txt", "data": "secret"})
            code, words = await told(ASKED[name](service, bob, "hers"))
            never = await told(ASKED[name](service, bob, "never"))
            assert (code, words) == (never[0], never[1].replace("never", "hers"))
            assert code == "session.missing"
            assert await service.call(alice, "hers", "read_text", {"path": "a.txt"}) == "secret"

    asyncio.run(work())


def test_both_have_a_session_of_the_same_name_and_see_only_their_own(keys: KeyStore, root: Path) -> None:
    alice, bob = callers_of(keys)

    async def work() -> None:
        async with Service(WorkspaceManager(root), load({})) as service:
            for caller in (alice, bob):
                await service.sessions.create(caller, NewSession(session_id="same"))
                await service.call(caller, "same", "write", {"path": "a.txt", "data": caller.name})
            await service.sessions.create(alice, NewSession(session_id="hers"))
            assert [one.session_id for one in (await service.sessions.list(bob)).sessions] == ["same"]
            await service.sessions.delete(bob, "same")
            assert await service.call(alice, "same", "read_text", {"path": "a.txt"}) == "alice"
            assert (await service.sessions.list(bob)).sessions == ()

    asyncio.run(work())


@pytest.mark.parametrize(
    "name",
    ["../alice/hers", "..", "../../..", ".carrel", "/", "alice/hers", ".carrel/tenants/alice/hers", ""],
)
def test_no_name_leads_from_one_tenant_to_another(keys: KeyStore, root: Path, name: str) -> None:
    alice, bob = callers_of(keys)

    async def work() -> None:
        async with Service(WorkspaceManager(root), load({})) as service:
            await service.sessions.create(alice, NewSession(session_id="hers"))
            for ask in (ASKED["session"], ASKED["stat"], ASKED["delete"], ASKED["start"]):
                assert (await told(ask(service, bob, name)))[0] == "session.invalid_id"
            assert (await told(service.sessions.ensure(bob, name)))[0] == "session.invalid_id"
            assert (await service.sessions.status(alice, "hers")).session_id == "hers"

    asyncio.run(work())


def test_who_is_bound_to_one_session_knows_of_no_other_of_its_tenant(keys: KeyStore, root: Path) -> None:
    alice, _ = callers_of(keys)
    made, _ = keys.create(NewKey(name="bound", tenant="alice", role="developer", session="one"))

    async def work() -> None:
        async with Service(WorkspaceManager(root), load({})) as service:
            for session_id in ("one", "two"):
                await service.sessions.create(alice, NewSession(session_id=session_id))
            assert (await service.sessions.status(made.principal(), "one")).session_id == "one"
            for ask in ASKED.values():
                code, words = await told(ask(service, made.principal(), "two"))
                never = await told(ask(service, made.principal(), "never"))
                assert (code, words) == (never[0], never[1].replace("never", "two"))
                assert code == "session.missing"

    asyncio.run(work())

"""`carrel key`: create, list and revoke."""

from __future__ import annotations

import re
from contextlib import closing

import pytest

from carrel.fronts.cli.commands.key import MAX_RATE
from carrel.service.authentication import api_key
from carrel.service.authentication.key_store import KeyStore, NewKey
from tests.fronts.cli.conftest import Carrel

TEXT = re.compile(r"carrel_[a-z2-7]{16}_[a-z2-7]{52}")
DAY_NS = 86_400 * 10**9


def test_a_rate_may_be_as_high_as_a_key_allows() -> None:
    assert MAX_RATE == api_key.MAX_RATE_PER_MINUTE


def test_create_prints_the_key_alone_and_only_this_once(carrel: Carrel) -> None:
    answer = carrel("key", "create", "ci")
    assert answer.status == 0
    (text,) = answer.lines
    assert TEXT.fullmatch(text)
    assert answer.err == "carrel: save the key 'ci' now; it cannot be shown again\n"
    with closing(KeyStore(carrel.sessions)) as keys:
        found = keys.find(text)
    assert found is not None
    assert (found.name, found.tenant, found.role, found.roles) == ("ci", "ci", "generalist", ("generalist",))
    listed = carrel("key", "list", "--json")
    assert text.split("_")[2] not in listed.out.decode()


def test_create_takes_all_that_a_key_can_be(carrel: Carrel) -> None:
    roles = ["--role", "developer", "--may-be", "critic", "--may-be", "generalist"]
    rest = ["--tenant", "acme", "--session", "s1", "--expires", "30d", "--rate", "60"]
    document = carrel("key", "create", "ci", *roles, *rest, "--json").json
    assert TEXT.fullmatch(document.pop("key"))
    assert document.pop("expires_ns") - document.pop("created_ns") == 30 * DAY_NS
    assert len(document.pop("id")) == 16
    assert document == {
        "name": "ci",
        "tenant": "acme",
        "role": "developer",
        "roles": ["developer", "critic", "generalist"],
        "session": "s1",
        "rate_per_minute": 60,
        "used_ns": None,
        "revoked_ns": None,
        "state": "in force",
    }


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (
            ["ci", "--role", "boss"],
            "cli.usage",
            "unknown role 'boss'; the configured roles are: developer, generalist, critic",
        ),
        (["ci", "--may-be", "boss"], "cli.usage", "unknown role 'boss'"),
        (["ci", "--tenant", "../x"], "request.invalid", "invalid tenant '../x'"),
        (["../x"], "request.invalid", "invalid key name '../x'"),
        (["local"], "request.invalid", "reserved for the operator"),
        (["ci", "--session", ".."], "request.invalid", "invalid session id"),
        (["ci", "--rate", "0"], "cli.usage", "--rate"),
    ],
)
def test_create_refuses_what_no_key_can_be_and_makes_nothing(
    carrel: Carrel, words: list[str], code: str, told: str
) -> None:
    answer = carrel("key", "create", *words, "--json")
    assert answer.status == 2
    assert answer.error["code"] == code
    assert told in answer.error["message"]
    assert not carrel.sessions.exists()


def test_list_shows_every_key_and_its_state(carrel: Carrel) -> None:
    assert carrel("key", "list").out == b""
    assert not carrel.sessions.exists()
    with closing(KeyStore(carrel.sessions)) as keys:
        keys.create(NewKey(name="one", roles=("critic",), session="s1"))
        keys.create(NewKey(name="two"))
        keys.revoke("two")
    with closing(KeyStore(carrel.sessions, clock=lambda: DAY_NS)) as keys:
        keys.create(NewKey(name="old", ttl_seconds=1))
    head, *rows = carrel("key", "list").lines
    assert head.split()[:5] == ["NAME", "ID", "TENANT", "ROLES", "SESSION"]
    assert [(row.split()[0], row.split()[3], row.split()[4], re.split(r"  +", row)[-1]) for row in rows] == [
        ("old", "generalist", "any", "expired"),
        ("one", "generalist,critic", "s1", "in force"),
        ("two", "generalist", "any", "revoked"),
    ]


def test_revoke_ends_a_key_by_name_or_id(carrel: Carrel) -> None:
    missing = carrel("key", "revoke", "ci", "--json")
    assert (missing.status, missing.error["code"]) == (1, "key.missing")
    assert not carrel.sessions.exists()
    with closing(KeyStore(carrel.sessions)) as keys:
        one, text = keys.create(NewKey(name="one"))
        two, _ = keys.create(NewKey(name="two"))
        assert carrel("key", "revoke", "one").lines == [f"revoked one ({one.id})"]
        assert keys.find(text) is None
    assert carrel("key", "revoke", two.id, "--json").json["state"] == "revoked"
    assert carrel("key", "revoke", "two").err == "carrel: no such key: 'two'\n"


def test_a_key_may_be_for_metrics_alone(carrel: Carrel) -> None:
    assert carrel("key", "create", "prometheus", "--role", "metrics", "--json").json["roles"] == ["metrics"]

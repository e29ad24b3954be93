"""Keys: made once, kept as hashes, looked up, and revoked for everybody."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.errors import KeyExistsError, KeyMissingError, RequestError, UnavailableError
from carrel.service.authentication.api_key import ApiKey, generate_key, key_digest, parse_key_id
from carrel.service.authentication.key_store import MAX_CACHED_KEYS, KeyStore, NewKey
from tests.service.clock import SECOND, START, FakeClock

TEXT = re.compile(r"carrel_[a-z2-7]{16}_[a-z2-7]{52}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def opened(root: Path, clock: FakeClock) -> KeyStore:
    return KeyStore(root, clock=clock, monotonic=clock)


@pytest.fixture
def keys(root: Path, clock: FakeClock) -> Iterator[KeyStore]:
    with closing(opened(root, clock)) as made:
        yield made


def database(root: Path) -> Path:
    return root / ".carrel" / "keys.db"


def change(root: Path, statement: str, *values: object) -> None:
    """Change the file behind everybody's back."""
    with closing(sqlite3.connect(database(root))) as connection, connection:
        connection.execute(statement, values)


# Making


def test_a_key_that_is_found_is_the_one_that_was_made(keys: KeyStore) -> None:
    new = NewKey(
        name="ci",
        role="developer",
        roles=("critic", "developer"),
        tenant="acme",
        session="s1",
        rate_per_minute=60,
        ttl_seconds=10,
    )
    made, text = keys.create(new)
    assert made == ApiKey(
        id=text.split("_")[1],
        name="ci",
        tenant="acme",
        role="developer",
        roles=("developer", "critic"),
        session="s1",
        rate_per_minute=60,
        created_ns=START,
        expires_ns=START + 10 * SECOND,
    )
    assert keys.find(text) == made


def test_a_key_has_a_tenant_of_its_own_and_may_read_unless_more_is_said(keys: KeyStore) -> None:
    made, _ = keys.create(NewKey(name="Ci"))
    assert (made.tenant, made.role, made.roles) == ("ci", "generalist", ("generalist",))
    assert (made.session, made.rate_per_minute, made.expires_ns) == (None, None, None)


def test_the_caller_is_what_the_key_says(keys: KeyStore) -> None:
    made, _ = keys.create(NewKey(name="ci", tenant="acme", roles=("critic",), session="s", rate_per_minute=5))
    caller = made.principal()
    assert (caller.name, caller.tenant, caller.session, caller.rate_per_minute) == ("ci", "acme", "s", 5)
    assert (caller.role, caller.roles) == ("generalist", ("generalist", "critic"))


def test_every_key_has_another_text_of_256_random_bits() -> None:
    texts = {generate_key() for _ in range(100)}
    assert len(texts) == 100
    assert all(TEXT.fullmatch(text) for text in texts)
    sizes = []

    def random(size: int) -> bytes:
        sizes.append(size)
        return os.urandom(size)

    generate_key(random)
    assert max(sizes) * 8 == 256


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b", ".carrel", "..", "a b", "a\0", "con", "x" * 129, "local", "é"]
)
def test_a_name_that_is_no_session_id_is_refused(keys: KeyStore, name: str) -> None:
    with pytest.raises(RequestError):
        keys.create(NewKey(name=name))
    assert keys.list() == []


@pytest.mark.attack
@pytest.mark.parametrize("tenant", ["../x", "..", ".carrel", "a/b", "/etc", "", "a\0b", "Acme", "x" * 129])
def test_a_tenant_that_could_be_another_directory_is_refused(keys: KeyStore, tenant: str) -> None:
    with pytest.raises(RequestError, match=r"^invalid tenant "):
        keys.create(NewKey(name="ci", tenant=tenant))
    assert keys.list() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"session": "../x"},
        {"rate_per_minute": 0},
        {"rate_per_minute": 10**10},
        {"ttl_seconds": -(10**12)},
        {"ttl_seconds": 10**12},
        {"roles": tuple(f"r{n}" for n in range(100))},
    ],
)
def test_what_no_key_can_be_is_refused(keys: KeyStore, changes: dict[str, Any]) -> None:
    new = replace(NewKey(name="ci"), **changes)
    with pytest.raises(RequestError):
        new.require_valid()
    with pytest.raises(RequestError):
        keys.create(new)
    assert keys.list() == []


def test_a_name_is_taken_whatever_its_case_until_its_key_is_revoked(keys: KeyStore, clock: FakeClock) -> None:
    first, old = keys.create(NewKey(name="ci"))
    for taken in ("ci", "CI", first.id):
        with pytest.raises(KeyExistsError, match=f"^the key '{taken}' exists already"):
            keys.create(NewKey(name=taken))
    keys.revoke("ci")
    clock.advance(1)
    second, text = keys.create(NewKey(name="ci"))
    assert (keys.find(old), keys.find(text)) == (None, second)
    assert [key.revoked_ns for key in keys.list()] == [START, None]


# At rest


@pytest.mark.attack
def test_neither_the_text_nor_its_secret_is_kept(keys: KeyStore, root: Path) -> None:
    _, text = keys.create(NewKey(name="ci"))
    keys.find(text)
    secret = text.split("_")[2]
    for file in (root / ".carrel").iterdir():
        data = b"" if file.is_symlink() else file.read_bytes()
        assert secret.encode() not in data
    assert hashlib.sha256(text.encode()).digest() in b"".join(
        file.read_bytes() for file in (root / ".carrel").glob("keys.db*")
    )


@pytest.mark.attack
def test_a_stolen_hash_is_no_key(keys: KeyStore) -> None:
    made, text = keys.create(NewKey(name="ci"))
    digest = key_digest(text)
    for stolen in (digest.hex(), f"carrel_{made.id}_{digest.hex()}", f"carrel_{made.id}_{digest.hex()[:52]}"):
        assert keys.find(stolen) is None
        assert keys.find_cached(stolen) is None


@pytest.mark.attack
def test_the_file_is_closed_to_others_even_if_it_was_not(
    keys: KeyStore, root: Path, clock: FakeClock
) -> None:
    _, text = keys.create(NewKey(name="ci"))
    assert stat.S_IMODE(database(root).stat().st_mode) == 0o600
    keys.close()
    database(root).chmod(0o644)
    with closing(opened(root, clock)) as again:
        assert again.find(text) is not None
    assert stat.S_IMODE(database(root).stat().st_mode) == 0o600


@pytest.mark.attack
@pytest.mark.parametrize("mode", [0o620, 0o602])
@pytest.mark.parametrize("name", [".carrel", ".carrel/keys.db"])
def test_keys_that_others_could_have_written_open_nothing(
    keys: KeyStore, root: Path, clock: FakeClock, name: str, mode: int
) -> None:
    _, text = keys.create(NewKey(name="ci"))
    (root / name).chmod(mode | 0o100)
    for each in (keys, opened(root, clock)):
        with closing(each), pytest.raises(UnavailableError, match="other users may write to "):
            each.find(text)


def test_a_file_of_a_later_version_is_refused(keys: KeyStore, root: Path, clock: FakeClock) -> None:
    _, text = keys.create(NewKey(name="ci"))
    keys.close()
    change(root, "PRAGMA user_version = 2")
    with closing(opened(root, clock)) as again, pytest.raises(UnavailableError, match="its version is 2"):
        again.find(text)


@pytest.mark.attack
@pytest.mark.parametrize(
    "damage",
    [
        "tenant = '../x'",
        "tenant = ''",
        "name = 'local'",
        "roles = '[]'",
        "roles = 'x'",
        "roles = '7'",
        "role = 'boss'",
        "session = '..'",
        "digest = x''",
        "rate_per_minute = -1",
    ],
)
def test_a_row_that_no_key_can_be_opens_nothing(
    keys: KeyStore, root: Path, clock: FakeClock, damage: str
) -> None:
    _, text = keys.create(NewKey(name="ci"))
    keys.close()
    change(root, f"UPDATE keys SET {damage}")
    with closing(opened(root, clock)) as again:
        assert again.find(text) is None
        again.list()


# Looking up


@pytest.mark.parametrize(
    "text",
    [
        "",
        "carrel_",
        "carrel_" + "a" * 16 + "_" + "b" * 52,
        "carrel_" + "a" * 16 + "_" + "b" * 51,
        "carrel_" + "a" * 16 + "_" + "b" * 52 + "\n",
        "carrel_' OR 1=1 --_" + "b" * 52,
        "é" * 80,
        "x" * 10**6,
    ],
)
def test_what_is_no_key_finds_nothing(keys: KeyStore, text: str) -> None:
    keys.create(NewKey(name="ci"))
    assert keys.find(text) is None
    assert keys.find_cached(text) is None


@given(st.text())
def test_only_a_text_of_the_right_form_has_an_id(text: str) -> None:
    assert (parse_key_id(text) is not None) == bool(TEXT.fullmatch(text))


def test_the_secret_of_one_key_is_none_for_another(keys: KeyStore) -> None:
    _, one = keys.create(NewKey(name="one"))
    _, two = keys.create(NewKey(name="two"))
    assert keys.find("_".join([*one.split("_")[:2], two.split("_")[2]])) is None


def test_a_key_expires_to_the_moment_also_while_it_is_remembered(keys: KeyStore, clock: FakeClock) -> None:
    _, text = keys.create(NewKey(name="ci", ttl_seconds=10))
    clock.advance(9.9)
    assert keys.find(text) is not None
    assert keys.find_cached(text) is not None
    clock.advance(0.1)
    assert keys.find_cached(text) is None
    assert keys.find(text) is None


def test_a_key_is_remembered_for_less_than_a_second(keys: KeyStore, clock: FakeClock) -> None:
    made, text = keys.create(NewKey(name="ci"))
    assert keys.find_cached(text) is None
    keys.find(text)
    assert keys.find_cached(text) == made
    clock.advance(0.99)
    assert keys.find_cached(text) is None


def test_no_more_keys_are_remembered_than_there_is_room_for(keys: KeyStore) -> None:
    made, text = keys.create(NewKey(name="ci"))
    keys.find(text)
    for number in range(MAX_CACHED_KEYS - 1):
        keys._add_to_cache(number.to_bytes(32), made, START)
    assert keys.find_cached(text) is not None
    keys._add_to_cache(bytes(range(32)), made, START)
    assert keys.find_cached(text) is None


# Revoking


@pytest.mark.parametrize("by", ["name", "id"])
def test_a_revoked_key_is_out_of_force_at_once(keys: KeyStore, by: str) -> None:
    made, text = keys.create(NewKey(name="ci"))
    keys.find(text)
    assert keys.revoke(getattr(made, by)).revoked_ns == START
    assert keys.find_cached(text) is None
    assert keys.find(text) is None


def test_a_key_that_another_process_revokes_is_out_of_force_within_a_second(
    keys: KeyStore, root: Path, clock: FakeClock
) -> None:
    _, text = keys.create(NewKey(name="ci"))
    keys.find(text)
    with closing(opened(root, clock)) as other:
        other.revoke("ci")
    clock.advance(1)
    assert keys.find_cached(text) is None
    assert keys.find(text) is None


def test_a_key_can_be_revoked_once(keys: KeyStore) -> None:
    keys.create(NewKey(name="ci"))
    keys.revoke("CI")
    for name in ("ci", "nobody", "../x", "é" * 500):
        with pytest.raises(KeyMissingError, match=r"^no such key: "):
            keys.revoke(name)


# The last use


def test_the_last_use_is_kept_to_the_minute(keys: KeyStore, clock: FakeClock) -> None:
    _, text = keys.create(NewKey(name="ci"))

    def used() -> int | None:
        keys.find(text)
        return keys.list()[0].used_ns

    assert keys.list()[0].used_ns is None
    assert used() == START
    clock.advance(59)
    assert used() == START
    clock.advance(1)
    assert used() == START + 60 * SECOND


def test_a_file_that_cannot_be_written_keeps_nobody_out(root: Path, clock: FakeClock) -> None:
    with closing(KeyStore(root, clock=clock, monotonic=clock, busy_seconds=0.01)) as keys:
        made, text = keys.create(NewKey(name="ci"))
        with closing(sqlite3.connect(database(root), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert keys.find(text) == made
        assert keys.list()[0].used_ns is None


@pytest.mark.parametrize("name", ["jwt.alice", "JWT-1f"])
def test_a_key_has_no_tenant_of_tokens_by_accident(keys: KeyStore, name: str) -> None:
    with pytest.raises(RequestError, match="tenant of JWT callers"):
        keys.create(NewKey(name=name))
    assert keys.create(NewKey(name=name, tenant="jwt.alice"))[0].tenant == "jwt.alice"

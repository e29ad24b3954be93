"""Who calls: by a key, by a token, as the operator, or nobody."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from carrel.config.load import load
from carrel.config.settings import Settings
from carrel.errors import ConfigError, UnauthenticatedError, UnavailableError
from carrel.service.authentication.api_key import generate_key
from carrel.service.authentication.authenticator import Authenticator
from carrel.service.authentication.key_store import KeyStore, NewKey
from carrel.service.principal import Principal
from tests.service.authentication.test_jwt import Issuer
from tests.service.clock import FakeClock

OPERATOR = Principal(name="local")
WORDS = (
    "a valid key is needed: send 'Authorization: Bearer KEY'; `carrel key local` prints one to the user who"
    " runs the service"
)
PAIRS = list[tuple[str, str]]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def keys(tmp_path: Path, clock: FakeClock) -> Iterator[KeyStore]:
    with closing(KeyStore(tmp_path / "sessions", clock=clock, monotonic=clock)) as made:
        yield made


def settings(**variables: str) -> Settings:
    """With these variables; who comes with nothing may be the operator unless they say otherwise."""
    given = {"REQUIRE_KEY": "no", **variables}
    return load({f"CARREL_SERVE_{name}": value for name, value in given.items()})


def authenticate(callers: Authenticator, authorization: str | None, *, local: bool = True) -> Principal:
    return asyncio.run(callers.authenticate(authorization=authorization, peer_is_local=local))


def refused(callers: Authenticator, authorization: str | None, *, local: bool = True) -> str:
    with pytest.raises(UnauthenticatedError) as caught:
        authenticate(callers, authorization, local=local)
    assert caught.value.code == "caller.unknown"
    return caught.value.message


# With nothing


def test_who_comes_with_nothing_from_this_machine_is_the_operator(keys: KeyStore) -> None:
    for host in ("127.0.0.1", "::1", "localhost"):
        assert authenticate(Authenticator(settings(HOST=host), keys), None) == OPERATOR


@pytest.mark.attack
def test_who_comes_with_nothing_is_nobody_elsewhere(keys: KeyStore) -> None:
    assert refused(Authenticator(settings(), keys), None, local=False) == WORDS


@pytest.mark.attack
@pytest.mark.parametrize(
    "variables", [{"REQUIRE_KEY": "yes"}, {"HOST": "0.0.0.0"}, {"HOST": "::"}, {"HOST": "box"}]
)
def test_nobody_is_the_operator_where_keys_are_required_or_others_can_come(
    keys: KeyStore, variables: dict[str, str]
) -> None:
    callers = Authenticator(settings(**variables), keys)
    assert callers.needs_key
    assert refused(callers, None) == WORDS


@pytest.mark.attack
@pytest.mark.parametrize(
    "shown",
    [
        "",
        " ",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Basic eDp5",
        "carrel_x",
        "Bearer carrel_x",
        "x" * 10**6,
        "Bearer é",
    ],
)
def test_who_comes_with_anything_wrong_is_not_the_operator(keys: KeyStore, shown: str) -> None:
    assert refused(Authenticator(settings(), keys), shown) == WORDS


def test_by_default_who_comes_with_nothing_is_nobody(keys: KeyStore) -> None:
    assert refused(Authenticator(load({}), keys), None) == WORDS


# With the local token


def test_who_has_the_local_token_is_the_operator_from_anywhere(keys: KeyStore) -> None:
    token = generate_key()
    for host in ("127.0.0.1", "0.0.0.0"):
        callers = Authenticator(settings(HOST=host, REQUIRE_KEY="yes"), keys, local_token=token)
        assert authenticate(callers, f"Bearer {token}", local=False) == OPERATOR
        assert callers.has_callers == (host == "127.0.0.1")


@pytest.mark.attack
def test_who_has_another_local_token_is_nobody(keys: KeyStore) -> None:
    callers = Authenticator(settings(REQUIRE_KEY="yes"), keys, local_token=generate_key())
    for shown in (generate_key(), "", "é"):
        assert refused(callers, f"Bearer {shown}") == WORDS
    assert refused(Authenticator(settings(REQUIRE_KEY="yes"), keys), f"Bearer {generate_key()}") == WORDS


# With a key


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER   "])
def test_who_has_a_key_is_what_it_says_from_anywhere(keys: KeyStore, scheme: str, local: bool) -> None:
    made, text = keys.create(NewKey(name="ci", role="developer", tenant="acme"))
    callers = Authenticator(settings(HOST="0.0.0.0"), keys)
    for _ in range(2):
        assert authenticate(callers, scheme + text, local=local) == made.principal()


@pytest.mark.parametrize("by", ["key", "token"])
def test_a_caller_is_known_while_all_other_threads_are_at_work(
    keys: KeyStore, tmp_path: Path, by: str
) -> None:
    issuer = Issuer(tmp_path)
    callers = Authenticator(issuer.settings(), keys, tokens=issuer.tokens())
    text = keys.create(NewKey(name="ci"))[1] if by == "key" else issuer.token()

    async def work() -> Principal:
        done = threading.Event()
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        busy = asyncio.ensure_future(asyncio.to_thread(done.wait))
        try:
            return await asyncio.wait_for(
                callers.authenticate(authorization=f"Bearer {text}", peer_is_local=False), timeout=30
            )
        finally:
            done.set()
            await busy

    assert asyncio.run(work()).tenant in ("ci", "jwt.alice")


@pytest.mark.attack
def test_the_words_are_the_same_whatever_is_wrong_with_a_key(keys: KeyStore, clock: FakeClock) -> None:
    _, revoked = keys.create(NewKey(name="revoked"))
    keys.revoke("revoked")
    _, expired = keys.create(NewKey(name="expired", ttl_seconds=1))
    clock.advance(1)
    _, good = keys.create(NewKey(name="good"))
    callers = Authenticator(settings(), keys)
    wrong = good[:-1] + ("a" if good[-1] != "a" else "b")
    unknown = "carrel_" + "a" * 16 + "_" + "a" * 52
    assert {refused(callers, f"Bearer {text}") for text in (revoked, expired, wrong, unknown)} == {WORDS}
    assert authenticate(callers, f"Bearer {good}").name == "good"


def test_a_revoked_key_opens_nothing_after_it_was_used(keys: KeyStore) -> None:
    _, text = keys.create(NewKey(name="ci"))
    callers = Authenticator(settings(), keys)
    authenticate(callers, f"Bearer {text}")
    keys.revoke("ci")
    assert refused(callers, f"Bearer {text}") == WORDS


def test_keys_that_cannot_be_read_are_another_error(keys: KeyStore, tmp_path: Path) -> None:
    _, text = keys.create(NewKey(name="ci"))
    (tmp_path / "sessions").rename(tmp_path / "away")
    with pytest.raises(UnavailableError):
        authenticate(Authenticator(settings(), keys), f"Bearer {text}")


@pytest.mark.attack
def test_nothing_that_was_shown_is_logged(keys: KeyStore, caplog: pytest.LogCaptureFixture) -> None:
    _, text = keys.create(NewKey(name="ci"))
    keys.revoke("ci")
    callers = Authenticator(settings(), keys)
    with caplog.at_level(logging.DEBUG, "carrel"):
        for shown in (f"Bearer {text}", f"Basic {text}", "Bearer a.secret.token"):
            refused(callers, shown)
    assert len(caplog.records) == 3
    assert all(record.getMessage().startswith("security.caller reason=") for record in caplog.records)
    assert text[30:] not in caplog.text
    assert "secret" not in caplog.text


# With a token


def test_who_has_a_token_is_what_it_says(keys: KeyStore, tmp_path: Path) -> None:
    issuer = Issuer(tmp_path)
    callers = Authenticator(issuer.settings(), keys, tokens=issuer.tokens())
    token = issuer.token(sub="bob", roles=["developer"])
    assert authenticate(callers, f"Bearer {token}", local=False) == Principal(
        name="jwt:bob", tenant="jwt.bob", role="developer", roles=("developer",)
    )
    assert refused(callers, f"Bearer {token[:-8]}AAAAAAAA") == WORDS


def test_without_an_issuer_no_token_is_good(keys: KeyStore, tmp_path: Path) -> None:
    assert refused(Authenticator(settings(), keys), f"Bearer {Issuer(tmp_path).token()}") == WORDS


def test_an_issuer_that_is_configured_is_trusted(keys: KeyStore, tmp_path: Path) -> None:
    callers = Authenticator(Issuer(tmp_path).settings(), keys)
    assert refused(callers, f"Bearer {Issuer(tmp_path).token()}") == WORDS  # expired long ago
    with pytest.raises(ConfigError):
        Authenticator(settings(JWT_ISSUER="i"), keys)


# From this machine

HOSTS = ["127.0.0.1:8080", "localhost:8080", "localhost", "LOCALHOST.:1", "[::1]:8080", "127.0.0.1"]


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "127.8.8.8"])
@pytest.mark.parametrize("host", HOSTS)
def test_a_program_of_this_machine_is_local(keys: KeyStore, peer: str, host: str) -> None:
    headers = [("host", host), ("user-agent", "curl"), ("accept", "*/*")]
    assert Authenticator(settings(), keys).is_local(peer, headers)


def test_metadata_without_a_host_is_local(keys: KeyStore) -> None:
    assert Authenticator(settings(), keys).is_local("127.0.0.1", [("user-agent", "grpc-python")])


@pytest.mark.attack
@pytest.mark.parametrize("peer", [None, "", "10.0.0.1", "0.0.0.0", "::", "box", "2001:db8::1"])
def test_another_machine_is_not_local(keys: KeyStore, peer: str | None) -> None:
    assert not Authenticator(settings(), keys).is_local(peer, [("host", "localhost")])


@pytest.mark.attack
@pytest.mark.parametrize(
    "headers",
    [
        [("host", "evil.example")],
        [("host", "evil.example:8080")],
        [("host", "localhost.evil.example")],
        [("host", "127.0.0.1.evil.example")],
        [("host", "10.0.0.1:8080")],
        [("host", "")],
        [("host", "localhost@evil.example")],
        [("host", "localhost"), ("Host", "evil.example")],
        [("host", "localhost"), ("host", "localhost")],
        [("host", "localhost:8080"), ("origin", "https://evil.example")],
        [("host", "localhost:8080"), ("Origin", "null")],
        [("host", "localhost:8080"), ("origin", "http://localhost:9090")],
        [("host", "localhost:8080"), ("origin", "")],
        [("host", "localhost:8080"), ("sec-fetch-site", "cross-site")],
        [("host", "localhost:8080"), ("Sec-Fetch-Site", "same-site")],
        [("host", "localhost"), ("X-Forwarded-For", "10.0.0.1")],
        [("host", "localhost"), ("forwarded", "for=10.0.0.1")],
        [("host", "localhost"), ("via", "1.1 proxy")],
        [("host", "localhost"), ("x-real-ip", "127.0.0.1")],
        [("host", "localhost"), ("X-Client-IP", "10.0.0.1")],
        [("host", "[::1].evil.example")],
        [("host", "[::1]evil")],
        [("host", "[::1")],
        [("host", "localhost:8080:evil")],
        [("host", "localhost:evil.example")],
        [("host", "localhost"), ("origin", "https://evil.example"), ("origin", "http://localhost")],
        [("host", "localhost"), ("sec-fetch-site", "cross-site"), ("Sec-Fetch-Site", "none")],
    ],
    ids=str,
)
def test_what_a_web_page_or_a_proxy_brings_is_not_local(keys: KeyStore, headers: PAIRS) -> None:
    assert not Authenticator(settings(), keys).is_local("127.0.0.1", headers)


def test_a_page_of_the_service_itself_is_local(keys: KeyStore) -> None:
    headers = [
        ("host", "localhost:8080"),
        ("origin", "http://localhost:8080"),
        ("sec-fetch-site", "same-origin"),
    ]
    assert Authenticator(settings(), keys).is_local("127.0.0.1", headers)


def test_over_tls_a_page_of_the_service_itself_came_over_tls_too(keys: KeyStore) -> None:
    callers = Authenticator(settings(TLS_CERT="/cert.pem"), keys)
    host, site = ("host", "localhost:8080"), ("sec-fetch-site", "same-origin")
    assert callers.is_local("127.0.0.1", [host, site, ("origin", "https://localhost:8080")])
    assert not callers.is_local("127.0.0.1", [host, site, ("origin", "http://localhost:8080")])


def test_a_page_that_is_allowed_is_local_and_no_other(keys: KeyStore) -> None:
    callers = Authenticator(settings(CORS_ORIGINS="https://ours.example"), keys)
    host, site = ("host", "localhost:8080"), ("sec-fetch-site", "cross-site")
    assert callers.is_local("127.0.0.1", [host, site, ("origin", "https://ours.example")])
    assert not callers.is_local("127.0.0.1", [host, site, ("origin", "https://theirs.example")])
    assert not callers.is_local("127.0.0.1", [host, site])

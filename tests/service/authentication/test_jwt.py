"""Tokens of a trusted issuer, and many that are not."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc import jws
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, KeyParameters, OctKey, OKPKey, RSAKey

from carrel.config.load import load
from carrel.config.settings import Settings
from carrel.errors import ConfigError, UnreachableError
from carrel.service.authentication.issuer_keys import DOCUMENT_BYTES, IssuerKeys
from carrel.service.authentication.jwt import TOKEN_CHARACTERS, TokenVerifier
from carrel.service.principal import Principal
from tests.service.clock import FakeClock

ISSUER = "https://issuer.example/"
AUDIENCE = "carrel"
LARGE = b'{"keys": []}' + b" " * DOCUMENT_BYTES
Claims = dict[str, Any]  # Any: whatever JSON says


@cache
def key(name: str) -> Any:  # Any: joserfc's keys, whose types have nothing in common
    """A key for some algorithm; the same whenever it is asked for."""
    parameters: KeyParameters = {"kid": name}
    match name.partition("-")[0]:
        case "rsa":
            return RSAKey.generate_key(2048, parameters)
        case "weak":
            with pytest.warns(SecurityWarning, match="2048 bits"):
                return RSAKey.generate_key(1024, parameters)
        case "ec":
            return ECKey.generate_key("P-256", parameters)
        case "ec384":
            return ECKey.generate_key("P-384", parameters)
        case "ed":
            return OKPKey.generate_key("Ed25519", parameters)
    return OctKey.import_key("secret" * 10, parameters)


def public(*names: str, **changes: str) -> bytes:
    return json.dumps({"keys": [key(name).as_dict(private=False) | changes for name in names]}).encode()


class Issuer:
    """Makes tokens, and stands where its keys are fetched."""

    def __init__(self, place: Path) -> None:
        self.file = place / "keys.json"
        self.file.write_bytes(public("rsa", "ec", "ed"))
        self.clock = FakeClock()

    def settings(self, **variables: str) -> Settings:
        given = {"ISSUER": ISSUER, "AUDIENCE": AUDIENCE, "JWKS": str(self.file), **variables}
        return load({f"CARREL_SERVE_JWT_{name}": value for name, value in given.items()})

    def tokens(self, **variables: str) -> TokenVerifier:
        settings = self.settings(**variables)
        keys = IssuerKeys(settings.serve.jwt_jwks or "", clock=self.clock.seconds)
        return TokenVerifier(settings, keys=keys, clock=self.clock.seconds)

    def claims(self, **changes: object) -> Claims:
        now = int(self.clock.seconds())
        claims: Claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "alice",
            "exp": now + 600,
            "nbf": now,
            "iat": now,
            "roles": ["critic"],
        }
        claims |= changes
        return {name: value for name, value in claims.items() if value is not ...}

    def token(
        self, *, by: str = "ec", alg: str = "ES256", header: Claims | None = None, **claims: object
    ) -> str:
        head = {"alg": alg, "kid": by, "typ": "JWT", **(header or {})}
        head = {name: value for name, value in head.items() if value is not ...}
        return sign(head, self.claims(**claims), key(by))


def sign(header: Claims, claims: Claims, with_key: Any) -> str:  # Any: joserfc's keys
    """A token; made by hand, as joserfc refuses to make some of those that it must refuse to read."""
    model = jws.JWSRegistry.algorithms[header["alg"]]
    text = b".".join(_encoded(json.dumps(part).encode()) for part in (header, claims))
    return (text + b"." + _encoded(model.sign(text, with_key))).decode()


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    return Issuer(tmp_path)


def read(tokens: TokenVerifier, text: str) -> Principal | None:
    return asyncio.run(tokens.principal(text))


# Those that are good


@pytest.mark.parametrize(("by", "alg"), [("rsa", "RS256"), ("ec", "ES256"), ("ed", "EdDSA")])
def test_a_token_says_who_calls_and_in_which_role(issuer: Issuer, by: str, alg: str) -> None:
    assert read(issuer.tokens(), issuer.token(by=by, alg=alg)) == Principal(
        name="jwt:alice", tenant="jwt.alice", role="critic", roles=("critic",)
    )


@pytest.mark.parametrize(
    ("said", "roles"),
    [
        (["critic", "developer"], ("critic", "developer")),
        (["boss", "developer", 7, None, "developer"], ("developer",)),
        ("openid critic developer", ("critic", "developer")),
    ],
)
def test_the_roles_are_those_that_are_configured_the_first_one_first(
    issuer: Issuer, said: object, roles: tuple[str, ...]
) -> None:
    caller = read(issuer.tokens(), issuer.token(roles=said))
    assert caller is not None
    assert (caller.role, caller.roles) == (roles[0], roles)


@pytest.mark.parametrize("said", [..., [], ["boss"], "", 7, None, {"critic": True}, [["critic"]]])
def test_a_token_without_a_role_that_is_configured_is_refused_and_never_the_operators(
    issuer: Issuer, said: object
) -> None:
    assert read(issuer.tokens(), issuer.token(roles=said)) is None


def test_the_claims_can_be_others_also_within_tables(issuer: Issuer) -> None:
    tokens = issuer.tokens(TENANT_CLAIM="https://x.example/org", ROLES_CLAIM="realm_access.roles")
    claims: Claims = {"https://x.example/org": "acme", "realm_access": {"roles": ["developer"]}}
    caller = read(tokens, issuer.token(**claims))
    assert caller == Principal(name="jwt:alice", tenant="jwt.acme", role="developer", roles=("developer",))


def test_one_of_several_audiences_is_enough(issuer: Issuer) -> None:
    assert read(issuer.tokens(), issuer.token(aud=["other", AUDIENCE])) is not None


def test_clocks_may_differ_a_little(issuer: Issuer) -> None:
    now = int(issuer.clock.seconds())
    assert read(issuer.tokens(), issuer.token(exp=now - 20)) is not None
    assert read(issuer.tokens(), issuer.token(nbf=now + 20, iat=now + 20)) is not None


# Tenants


@pytest.mark.attack
@pytest.mark.parametrize(
    "said",
    ["../x", "..", ".carrel", "a/b", "auth0|5f7c", "a@b.example", "Alice", "x" * 500, "é"],
)
def test_a_tenant_that_is_no_plain_name_is_hashed(issuer: Issuer, said: str) -> None:
    caller = read(issuer.tokens(), issuer.token(sub=said))
    assert caller is not None
    assert caller.tenant is not None
    assert caller.tenant.startswith("jwt-")
    assert (len(caller.tenant), caller.tenant.isalnum()) == (44, False)
    assert caller.tenant != said


def test_other_claims_are_other_tenants(issuer: Issuer) -> None:
    tokens = issuer.tokens()
    callers = [read(tokens, issuer.token(sub=sub)) for sub in ("Alice", "alice", "ALICE", "a/lice", "alice ")]
    assert len({caller.tenant for caller in callers if caller}) == 5


@pytest.mark.parametrize("said", [..., "", 7, None, ["alice"], {"a": 1}])
def test_a_token_without_a_tenant_is_refused(issuer: Issuer, said: object) -> None:
    assert read(issuer.tokens(), issuer.token(sub=said)) is None
    assert read(issuer.tokens(TENANT_CLAIM="org"), issuer.token(org=said)) is None


def test_a_name_that_does_not_print_gets_into_no_log(issuer: Issuer) -> None:
    caller = read(issuer.tokens(TENANT_CLAIM="org"), issuer.token(org="acme", sub="a\nb\x1b[2J"))
    assert caller is not None
    assert caller.name.startswith("jwt:jwt-")


# Those that are not


@pytest.mark.attack
@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://other.example/"},
        {"iss": ...},
        {"iss": [ISSUER]},
        {"aud": "other"},
        {"aud": ...},
        {"aud": []},
        {"exp": ...},
        {"exp": 1_700_000_000 - 31},
        {"exp": "never"},
        {"exp": float("nan")},
        {"exp": True},
        {"nbf": 1_700_000_000 + 31},
        {"iat": 1_700_000_000 + 31},
    ],
    ids=str,
)
def test_a_token_that_is_not_for_us_or_not_for_now_is_refused(issuer: Issuer, changes: Claims) -> None:
    assert read(issuer.tokens(), issuer.token(**changes)) is None


@pytest.mark.attack
@pytest.mark.parametrize(
    "header",
    [
        {"kid": "nobody"},
        {"kid": "rsa"},
        {"kid": 7},
        {"typ": "logout+jwt"},
        {"typ": 7},
        {"crit": ["x"], "x": 1},
        {"b64": False, "crit": ["b64"]},
        {"alg": "RS256"},
        {"alg": "HS256"},
        {"alg": None},
        {"alg": ["ES256"]},
    ],
    ids=str,
)
def test_a_header_cannot_choose_what_is_not_offered(issuer: Issuer, header: Claims) -> None:
    head, rest = issuer.token().split(".", 1)
    assert read(issuer.tokens(), f"{head}.{rest}") is not None
    changed = {**json.loads(base64.urlsafe_b64decode(head + "==")), **header}
    model = jws.JWSRegistry.algorithms["ES256"]
    text = b".".join(_encoded(json.dumps(part).encode()) for part in (changed, issuer.claims()))
    token = (text + b"." + _encoded(model.sign(text, key("ec")))).decode()
    assert read(issuer.tokens(), token) is None


@pytest.mark.attack
def test_a_token_that_nobody_signed_is_refused(issuer: Issuer) -> None:
    for alg in ("none", "None", "NONE"):
        text = b".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": alg}, issuer.claims()))
        assert read(issuer.tokens(), text.decode() + ".") is None


@pytest.mark.attack
@pytest.mark.parametrize("form", ["PEM", "DER", "json"])
def test_a_public_key_is_no_secret_to_sign_with(issuer: Issuer, form: str) -> None:
    known = key("rsa")
    secret = (
        known.as_dict(private=False)["n"].encode() if form == "json" else known.as_bytes(form, private=False)
    )
    header = {"alg": "HS256", "kid": "rsa"}
    text = b".".join(_encoded(json.dumps(part).encode()) for part in (header, issuer.claims()))
    token = text + b"." + _encoded(hmac.new(secret, text, hashlib.sha256).digest())
    assert read(issuer.tokens(), token.decode()) is None


@pytest.mark.attack
def test_a_secret_key_of_the_issuer_is_not_used(issuer: Issuer) -> None:
    issuer.file.write_bytes(json.dumps({"keys": [key("oct").as_dict(private=True)]}).encode())
    assert read(issuer.tokens(), issuer.token(by="oct", alg="HS256")) is None


@pytest.mark.attack
def test_another_key_of_the_same_name_is_not_ours(issuer: Issuer) -> None:
    token = sign({"alg": "ES256", "kid": "ec"}, issuer.claims(), key("ec-other"))
    assert read(issuer.tokens(), token) is None


@pytest.mark.attack
def test_claims_cannot_be_exchanged(issuer: Issuer) -> None:
    head, _, signature = issuer.token().split(".")
    claims = _encoded(json.dumps(issuer.claims(sub="bob")).encode()).decode()
    assert read(issuer.tokens(), f"{head}.{claims}.{signature}") is None


@pytest.mark.parametrize(("by", "alg"), [("rsa", "RS384"), ("rsa", "PS256"), ("ec384", "ES384")])
def test_only_algorithms_that_are_configured_are_used(issuer: Issuer, by: str, alg: str) -> None:
    issuer.file.write_bytes(public(by))
    assert read(issuer.tokens(), issuer.token(by=by, alg=alg)) is None
    assert read(issuer.tokens(ALGORITHMS=alg), issuer.token(by=by, alg=alg)) is not None


def test_the_new_name_of_an_algorithm_can_be_configured(issuer: Issuer) -> None:
    assert read(issuer.tokens(ALGORITHMS="Ed25519"), issuer.token(by="ed", alg="Ed25519")) is not None


def test_a_key_for_something_else_or_too_weak_is_not_used(issuer: Issuer) -> None:
    for data, by, alg in (
        (public("ec", use="enc"), "ec", "ES256"),
        (public("ec", alg="ES384"), "ec", "ES256"),
        (public("weak"), "weak", "RS256"),
    ):
        issuer.file.write_bytes(data)
        assert read(issuer.tokens(), issuer.token(by=by, alg=alg)) is None


def test_a_token_that_names_no_key_is_tried_with_all(issuer: Issuer) -> None:
    issuer.file.write_bytes(public("rsa", "ec-other", "ec"))
    assert read(issuer.tokens(), issuer.token(header={"kid": ...})) is not None


def test_a_long_token_is_not_even_looked_at(issuer: Issuer) -> None:
    assert read(issuer.tokens(), issuer.token(x="x" * TOKEN_CHARACTERS)) is None


@settings(max_examples=40)
@given(st.one_of(st.text(), st.from_regex(r"[A-Za-z0-9_-]{0,20}\.[A-Za-z0-9_-]{0,20}\.[A-Za-z0-9_-]{0,20}")))
def test_any_text_is_read_without_a_fuss(text: str) -> None:
    assert read(_nobody(), text) is None


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("alg") | st.just("kid"), inner),
    max_leaves=8,
)


@settings(max_examples=40)
@given(JSON, JSON)
def test_any_header_and_any_claims_are_read_without_a_fuss(header: object, claims: object) -> None:
    parts = [_encoded(json.dumps(part).encode()).decode() for part in (header, claims)]
    assert read(_nobody(), ".".join([*parts, "AAAA"])) is None


@settings(max_examples=40)
@given(JSON)
def test_any_claims_that_the_issuer_has_signed_are_read_without_a_fuss(claims: object) -> None:
    header = {"alg": "ES256", "kid": "ec"}
    text = b".".join(_encoded(json.dumps(part).encode()) for part in (header, claims))
    signature = jws.JWSRegistry.algorithms["ES256"].sign(text, key("ec"))
    assert read(_nobody(), (text + b"." + _encoded(signature)).decode()) is None


@cache
def _nobody() -> TokenVerifier:
    """Tokens of an issuer whose keys are there already, for tests that have no directory."""
    environ = {"ISSUER": ISSUER, "AUDIENCE": AUDIENCE, "JWKS": "/nowhere"}
    keys = IssuerKeys("/nowhere", clock=lambda: 1.0)
    keys._keys, keys._fetched, keys._tried = (key("ec"),), 1.0, 1.0
    return TokenVerifier(
        load({f"CARREL_SERVE_JWT_{name}": value for name, value in environ.items()}), keys=keys
    )


# What is configured


@pytest.mark.parametrize("missing", ["ISSUER", "AUDIENCE", "JWKS"])
def test_an_issuer_that_is_configured_in_part_is_refused(issuer: Issuer, missing: str) -> None:
    with pytest.raises(ConfigError, match="must all be set"):
        issuer.tokens(**{missing: ""})


def test_an_issuer_without_an_algorithm_is_refused(tmp_path: Path, issuer: Issuer) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        f"[serve]\njwt_issuer='i'\njwt_audience='a'\njwt_jwks='{issuer.file}'\njwt_algorithms=[]\n"
    )
    with pytest.raises(ConfigError, match="must all be set"):
        TokenVerifier(load({}, path=file))


# The keys of the issuer


def test_keys_are_fetched_anew_for_a_name_that_is_not_known_but_not_often(issuer: Issuer) -> None:
    tokens = issuer.tokens()
    new = issuer.token(by="ec-new")
    assert read(tokens, new) is None
    issuer.file.write_bytes(public("ec-new"))
    assert read(tokens, new) is None
    issuer.clock.advance(30)
    assert read(tokens, new) is not None


def test_a_key_that_was_withdrawn_is_forgotten(issuer: Issuer) -> None:
    tokens = issuer.tokens()
    old = issuer.token(exp=2_000_000_000)
    assert read(tokens, old) is not None
    issuer.file.write_bytes(public("ec-new"))
    issuer.clock.advance(300)
    assert read(tokens, old) is None


def test_the_log_is_told_why_there_are_no_keys_and_nobody_else(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.file.unlink()
    with pytest.raises(UnreachableError) as caught:
        read(TokenVerifier(issuer.settings()), issuer.token())
    assert "issuer.failed error=FileNotFoundError" in caplog.text
    assert "keys.json" not in caught.value.message + caplog.text


def test_keys_are_used_for_a_while_when_the_issuer_does_not_answer(issuer: Issuer) -> None:
    tokens = issuer.tokens()
    token = issuer.token(exp=2_000_000_000)
    assert read(tokens, token) is not None
    issuer.file.unlink()
    issuer.clock.advance(3_500)
    assert read(tokens, token) is not None
    issuer.clock.advance(200)
    with pytest.raises(UnreachableError, match="cannot be fetched now") as caught:
        read(tokens, token)
    assert str(issuer.file) not in caught.value.message


@pytest.mark.parametrize("data", [b"", b"x", b"[]", b"{}", b'{"keys": 7}', b"[" * 100_000, LARGE])
def test_what_is_no_set_of_keys_is_no_answer(issuer: Issuer, data: bytes) -> None:
    issuer.file.write_bytes(data)
    with pytest.raises(UnreachableError):
        read(issuer.tokens(), issuer.token())


def test_keys_that_cannot_be_used_are_left_out(issuer: Issuer) -> None:
    rows = [
        7,
        {},
        {"kty": 7},
        {"kty": "RSA"},
        {"kty": "RSA", "n": 7},
        {"kty": "EC", "crv": "?"},
        {"kty": "new"},
    ]
    rows += json.loads(public("ec"))["keys"]
    issuer.file.write_bytes(json.dumps({"keys": rows}).encode())
    assert read(issuer.tokens(), issuer.token()) is not None


Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def served(*answers: Answer) -> Iterator[tuple[str, list[str]]]:
    """A server that gives these answers; its address, and what was asked for."""
    asked: list[str] = []
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            left.pop(0)(self)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def sends(data: bytes, status: int = 200, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name), value)
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def test_keys_come_from_a_url_and_are_kept(issuer: Issuer) -> None:
    with served(sends(public("ec"))) as (address, asked):
        tokens = issuer.tokens(JWKS=f"{address}/keys")
        for _ in range(3):
            assert read(tokens, issuer.token()) is not None
        assert asked == ["/keys"]


def test_many_callers_at_once_fetch_the_keys_once(issuer: Issuer) -> None:
    async def all_at_once(tokens: TokenVerifier) -> list[Principal | None]:
        return await asyncio.gather(*(tokens.principal(issuer.token()) for _ in range(50)))

    with served(sends(public("ec"))) as (address, asked):
        assert None not in asyncio.run(all_at_once(issuer.tokens(JWKS=f"{address}/keys")))
        assert asked == ["/keys"]


@pytest.mark.attack
def test_a_redirection_is_not_followed(issuer: Issuer) -> None:
    for other in ("/other", f"file://{issuer.file}"):
        with served(sends(b"", 302, Location=other), sends(public("ec"))) as (address, asked):
            tokens = issuer.tokens(JWKS=f"{address}/keys")
            with pytest.raises(UnreachableError):
                read(tokens, issuer.token())
            assert asked == ["/keys"]


@pytest.mark.attack
@pytest.mark.parametrize(
    "answer",
    [
        sends(LARGE),
        sends(public("ec"), 404),
        sends(public("ec"), 500),
        sends(public("ec")[:-9], 200, ContentLength="9999"),
        sends(b"zz", 200, TransferEncoding="chunked"),
        lambda handler: handler.wfile.write(b"no HTTP at all") and None,
        lambda handler: handler.connection.close(),
    ],
)
def test_an_answer_that_is_too_large_or_broken_is_given_up(issuer: Issuer, answer: Answer) -> None:
    def quietly(handler: BaseHTTPRequestHandler) -> None:
        try:
            answer(handler)
        except ConnectionError:
            handler.close_connection = True

    with served(quietly) as (address, _), pytest.raises(UnreachableError):
        read(issuer.tokens(JWKS=f"{address}/keys"), issuer.token())

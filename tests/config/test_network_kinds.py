"""What the values of settings about the network may be."""

from __future__ import annotations

from typing import Any

import pytest

from carrel.config.kind import InvalidValueError, SettingKind
from carrel.config.network_kinds import ADDRESS, ALGORITHMS, DOCUMENT, HOST_NAME, ORIGINS, is_loopback


@pytest.mark.parametrize(
    ("kind", "value", "result"),
    [
        (HOST_NAME, "127.0.0.1", "127.0.0.1"),
        (HOST_NAME, "::", "::"),
        (HOST_NAME, "localhost", "localhost"),
        (HOST_NAME, "a_b.example.", "a_b.example."),
        (ADDRESS, "box:1", "box:1"),
        (ADDRESS, "10.0.0.1:65535", "10.0.0.1:65535"),
        (ADDRESS, "[::1]:50051", "[::1]:50051"),
        (ADDRESS, "grpcs://box:1", "grpcs://box:1"),
        (ORIGINS, ["https://A.example"], ("https://a.example",)),
        (ORIGINS, ["http://[::1]:3000"], ("http://[::1]:3000",)),
        (DOCUMENT, "https://issuer.example/keys?v=1", "https://issuer.example/keys?v=1"),
        (DOCUMENT, "http://127.0.0.1:8000/keys", "http://127.0.0.1:8000/keys"),
        (DOCUMENT, "/etc/keys.json", "/etc/keys.json"),
        (DOCUMENT, "~/keys.json", "/home/me/keys.json"),
        (ALGORITHMS, ["EdDSA"], ("EdDSA",)),
    ],
)
def test_a_value_is_made(kind: SettingKind[object], value: Any, result: object) -> None:
    assert kind.check(value, "/home/me") == result


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (HOST_NAME, ""),
        (HOST_NAME, "a b"),
        (HOST_NAME, "-a"),
        (HOST_NAME, "a/b"),
        (HOST_NAME, "host:80"),
        (HOST_NAME, "a" * 64),
        (HOST_NAME, "a." * 130),
        (ADDRESS, "box"),
        (ADDRESS, "box:"),
        (ADDRESS, "box:0"),
        (ADDRESS, "box:65536"),
        (ADDRESS, "::1:50051"),
        (ADDRESS, "[box]:1"),
        (ADDRESS, "grpcx://box:1"),
        (ADDRESS, "me@box:1"),
        (ADDRESS, 1),
        (ORIGINS, "https://a.example"),
        (ORIGINS, ["*"]),
        (ORIGINS, ["null"]),
        (ORIGINS, ["https://a.example/"]),
        (ORIGINS, ["https://a.example:0"]),
        (ORIGINS, ["https://me@a.example"]),
        (DOCUMENT, "keys.json"),
        (DOCUMENT, "ftp://issuer.example/keys"),
        (DOCUMENT, "http://issuer.example/keys"),
        (DOCUMENT, "http://127.0.0.1.issuer.example/keys"),
        (DOCUMENT, "https://me:word@issuer.example/keys"),
        (ALGORITHMS, ["none"]),
        (ALGORITHMS, ["HS256"]),
        (ALGORITHMS, "RS256"),
    ],
)
def test_a_value_of_another_kind_is_refused(kind: SettingKind[object], value: Any) -> None:
    with pytest.raises(InvalidValueError, match="must be "):
        kind.check(value, "/home/me")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "::1"])
def test_loopback_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "10.0.0.1", "localhost.example", "127.0.0.1.example"])
def test_what_others_reach_is_no_loopback(host: str) -> None:
    assert not is_loopback(host)

"""Callers without a key cannot make a service hold much memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from carrel.values import MIB
from tests.attack.strangers import GRPC_ATTACKS, HTTP_ATTACKS, TLS_ATTACKS, Attack, Target, attacking
from tests.conformance.server import Server
from tests.fronts.test_server_tls import Authority, write

pytestmark = [pytest.mark.attack, pytest.mark.thorough, pytest.mark.timeout(900)]

ONE_BYTES = 50 * MIB
"""What one attack may make the service grow by."""
ALL_BYTES, ALL_BYTES_OF_TLS = 50 * MIB, 64 * MIB
"""The same of all of them one after the other, and then at once; OpenSSL does not give back all it frees."""


@pytest.fixture(params=["plain", "tls"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    """A service that has answered its first calls."""
    write(tmp_path, *Authority().issue(1))
    has_tls = request.param == "tls"
    files = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    words = ("--no-access-log", *(files if has_tls else ()))
    with Server(tmp_path / "sessions", {"CARREL_SERVE_REQUIRE_KEY": "1"}, *words) as server:
        http, grpc = ("127.0.0.1", server.port), ("127.0.0.1", server.grpc_port)
        found = Target(server.process.pid, http, grpc, has_tls)
        with attacking(found):
            found.warm_up()
        yield found


def grown_by(target: Target, *attacks: Attack) -> int:
    """By how many bytes the service was larger meanwhile."""
    target.forget_peak()
    before = target.resident_bytes()
    with attacking(target):
        threads = [Thread(target=attack, args=(target,)) for attack in attacks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return target.peak_bytes() - before


def test_callers_without_a_key_do_not_make_a_service_grow(target: Target) -> None:
    attacks = (*HTTP_ATTACKS, *GRPC_ATTACKS, *(TLS_ATTACKS if target.has_tls else ()))
    most = ALL_BYTES_OF_TLS if target.has_tls else ALL_BYTES
    before = target.resident_bytes()
    for attack in attacks:
        grown = grown_by(target, attack)
        print(f"{attack.__name__}: {grown / MIB:.0f} MiB, {(target.peak_bytes() - before) / MIB:.0f} in all")
        assert grown < ONE_BYTES, attack.__name__
    assert target.resident_bytes() - before < most
    grown_by(target, *attacks)
    print(f"all at once: {(target.peak_bytes() - before) / MIB:.0f} in all")
    assert target.peak_bytes() - before < most

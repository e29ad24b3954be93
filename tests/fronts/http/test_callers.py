"""Who may call over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from carrel.fronts.http.handlers import changes
from carrel.service.authentication.key_store import KeyStore, NewKey
from tests.fronts.http.front import Front, code_of, served
from tests.fronts.http.handlers.test_executions import EVENTS, events
from tests.fronts.http.test_disconnect import eventually


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A service whose every caller must have a key."""
    place = tmp_path_factory.mktemp("guarded") / "sessions"
    origins = "https://console.example"
    with served(place, require_key="1", cors_origins=origins, shutdown_seconds="2") as running:
        yield running


def bearer(front: Front, **wanted: object) -> dict[str, str]:
    keys = KeyStore(front.root)
    try:
        _, text = keys.create(NewKey(**wanted))  # type: ignore[arg-type]
    finally:
        keys.close()
    return {"Authorization": f"Bearer {text}"}


def test_without_a_key_only_the_state_of_the_service_is_told(guarded: Front) -> None:
    for path in ("/healthz", "/readyz", "/openapi.json"):
        assert guarded.client.get(path).status_code == 200
    for path in ("/metrics", "/api/v1/sessions", "/api/v1/tools", "/api/v1/sessions/s/files/f"):
        for headers in ({}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic eDp5"}):
            answer = guarded.client.get(path, headers=headers)
            assert (answer.status_code, code_of(answer)) == (401, "caller.unknown")
            assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_key_opens_the_sessions_of_its_tenant_alone(guarded: Front) -> None:
    ann = bearer(guarded, name="ann", tenant="ann", role="developer")
    bob = bearer(guarded, name="bob", tenant="bob", role="developer")
    place = "/api/v1/sessions/shared-name"
    assert guarded.client.put(place, headers=ann).status_code == 200
    assert guarded.client.put(f"{place}/files/f", content=b"ann's", headers=ann).status_code == 200
    missing = guarded.client.get(f"{place}/files/f", headers=bob)
    assert (missing.status_code, code_of(missing)) == (404, "session.missing")
    assert guarded.client.get("/api/v1/sessions", headers=bob).json()["sessions"] == []
    assert guarded.client.get(f"{place}/files/f", headers=ann).content == b"ann's"


def test_metrics_are_not_for_tenants(guarded: Front) -> None:
    tenant = bearer(guarded, name="tenant", role="developer")
    watcher = bearer(guarded, name="watcher", role="metrics")
    refused = guarded.client.get("/metrics", headers=tenant)
    assert (refused.status_code, code_of(refused)) == (403, "access.role")
    chosen = guarded.client.get("/metrics", headers={**tenant, "Carrel-Role": "metrics"})
    assert (chosen.status_code, code_of(chosen)) == (403, "access.role")
    assert "carrel_http_request_seconds" in guarded.client.get("/metrics", headers=watcher).text
    made = guarded.client.put("/api/v1/sessions/s/files/f", content=b"", headers=watcher)
    assert made.status_code != 200


def test_of_two_keys_none_counts(guarded: Front) -> None:
    keys = [bearer(guarded, name=name, role="developer")["Authorization"] for name in ("gus", "hal")]
    for shown in (keys, keys[::-1], keys[:1] * 2):
        headers = [("Authorization", each) for each in shown]
        answer = guarded.client.get("/api/v1/sessions", headers=headers)
        assert (answer.status_code, code_of(answer)) == (401, "caller.unknown")


def test_a_role_holds_and_only_allowed_ones_can_be_chosen(guarded: Front) -> None:
    key = bearer(guarded, name="carl", tenant="carl", role="critic", roles=("developer",))
    place = "/api/v1/sessions/s"
    guarded.client.put(place, headers=key)
    refused = guarded.client.put(f"{place}/files/f", content=b"x", headers=key)
    assert (refused.status_code, code_of(refused)) == (403, "access.role")
    (event,) = guarded.client.get(f"{place}/changes", headers=key).json()["events"]
    assert (event["operation"], event["actor"], event["error"]) == ("file_write", "carl", "access.role")
    chosen = key | {"Carrel-Role": "developer"}
    assert guarded.client.put(f"{place}/files/f", content=b"x", headers=chosen).status_code == 200
    other = guarded.client.get(f"{place}/files/f", headers=key | {"Carrel-Role": "generalist"})
    assert (other.status_code, code_of(other)) == (403, "access.role")


def test_a_caller_who_calls_too_often_is_told_when_to_come_back(guarded: Front) -> None:
    key = bearer(guarded, name="dan", tenant="dan", role="developer", rate_per_minute=2)
    answers = [guarded.client.get("/api/v1/sessions", headers=key) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert code_of(answers[2]) == "limit.rate"
    assert 1 <= int(answers[2].headers["retry-after"]) <= 60


def test_one_tenant_does_not_take_all_places(tmp_path: Path) -> None:
    with served(tmp_path / "sessions", max_requests="4", shutdown_seconds="2") as few, ExitStack() as stack:
        mine, too, other = (
            bearer(few, name=name, tenant=tenant, role="developer")
            for name, tenant in (("ann", "a"), ("art", "a"), ("ben", "b"))
        )
        few.client.put("/api/v1/sessions/s", headers=mine)
        for _ in range(2):
            stream = few.client.stream("GET", "/api/v1/sessions/s/changes", headers=mine | EVENTS)
            assert stack.enter_context(stream).status_code == 200
        for key in (mine, too):
            answer = few.client.get("/api/v1/sessions", headers=key)
            assert (answer.status_code, code_of(answer)) == (503, "limit.requests")
        assert few.client.get("/api/v1/sessions", headers=other).status_code == 200
        stack.close()
        eventually(lambda: few.client.get("/api/v1/sessions", headers=mine).status_code == 200)


def test_a_web_page_may_call_only_if_it_is_configured(guarded: Front) -> None:
    asked = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "authorization"}
    place = "/api/v1/sessions/s/files/f"
    mine = {"Origin": "https://console.example"}
    answer = guarded.client.options(place, headers=asked | mine)
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == "https://console.example"
    assert "PUT" in answer.headers["access-control-allow-methods"]
    assert answer.headers["access-control-allow-headers"] == "authorization"
    assert guarded.client.get(place, headers=mine).headers["access-control-allow-origin"]
    for origin in ("https://evil.example", "null"):
        answer = guarded.client.options(place, headers=asked | {"Origin": origin})
        assert answer.status_code == 405
        assert "access-control-allow-origin" not in answer.headers


def test_a_page_in_the_browser_of_the_operator_is_not_the_operator(front: Front) -> None:
    for headers in (
        {"Origin": "https://evil.example"},
        {"Host": "evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"X-Forwarded-For": "203.0.113.9"},
        {"X-Forwarded-Server": "proxy.example"},
        {"CF-Connecting-IP": "203.0.113.9"},
    ):
        answer = front.client.get("/api/v1/sessions", headers=headers)
        assert (answer.status_code, code_of(answer)) == (401, "caller.unknown")
    assert front.client.get("/api/v1/sessions").status_code == 200


def test_who_has_no_key_any_more_is_told_of_no_more_changes(
    guarded: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "REVALIDATE_SECONDS", 0)
    key = bearer(guarded, name="fay", tenant="fay", role="developer")
    place = "/api/v1/sessions/s"
    guarded.client.put(place, headers=key)
    with guarded.client.stream("GET", f"{place}/changes", headers=key | EVENTS) as answer:
        assert answer.status_code == 200
        keys = KeyStore(guarded.root)
        keys.revoke("fay")
        keys.close()
        ((name, _, document),) = events(answer)
    assert (name, document["code"]) == ("error", "caller.unknown")


def test_no_key_is_ever_told(guarded: Front, tmp_path: Path) -> None:
    key = bearer(guarded, name="eve", tenant="eve", role="developer")
    answer: httpx2.Response = guarded.client.get("/api/v1/sessions/%00", headers=key)
    secret = key["Authorization"].removeprefix("Bearer ")
    assert secret not in answer.text
    assert secret not in str(answer.headers)

"""What the service says of itself."""

from __future__ import annotations

import json
import logging
import time
from importlib.metadata import version
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from carrel.fronts.http.access_log import PAUSE_SECONDS
from carrel.fronts.http.routes import ROUTES
from carrel.service.operations import OPERATIONS
from tests.fronts.http.front import Front, Session, code_of, served


def test_the_service_says_that_it_runs_and_takes_calls(front: Front) -> None:
    assert front.client.get("/healthz").json() == {"status": "ok", "version": version("carrel")}
    assert front.client.get("/readyz").json()["status"] == "ready"


def test_a_service_without_its_directory_is_not_ready(tmp_path: Path) -> None:
    with served(tmp_path / "sessions") as front:
        (tmp_path / "sessions" / ".carrel" / "registry.db").unlink(missing_ok=True)
        (tmp_path / "sessions").rename(tmp_path / "elsewhere")
        answer = front.client.get("/readyz")
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert front.client.get("/healthz").status_code == 200
        (tmp_path / "elsewhere").rename(tmp_path / "sessions")


def test_requests_are_counted_by_their_routes(session: Session) -> None:
    session.get("/files/missing")
    text = session.front.client.get("/metrics").text
    route = "/api/v1/sessions/{session_id}/files/{path*}"
    numbers = {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.items() >= {"route": route, "method": "GET", "status": "404"}.items()
        and sample.labels.get("le", "+Inf") == "+Inf"
    }
    assert numbers["carrel_http_request_seconds_count"] >= 1
    assert numbers["carrel_http_request_seconds_bucket"] == numbers["carrel_http_request_seconds_count"]
    assert "carrel_sessions_open" in text
    assert session.id not in text


def test_refusals_and_mistakes_are_counted_by_their_codes(tmp_path: Path) -> None:
    with served(tmp_path / "sessions") as front:
        session = front.session()
        session.get("/files/%2e%2e/x")
        for command in ("git status", "cat /etc/passwd", "cat 'x", "ls $(pwd)", "ls --colour-me"):
            session.post("/exec", json={"command": command})
        front.client.get("/api/v1/sessions", headers={"Authorization": "Bearer no-key"})
        numbers = {
            (sample.name, sample.labels["code"]): sample.value
            for family in text_string_to_metric_families(front.client.get("/metrics").text)
            for sample in family.samples
            if sample.name in ("carrel_refusals_total", "carrel_mistakes_total")
        }
    assert numbers == {
        ("carrel_refusals_total", "path.escape"): 1,
        ("carrel_refusals_total", "access.outside"): 1,
        ("carrel_refusals_total", "shell.metacharacter"): 1,
        ("carrel_refusals_total", "caller.unknown"): 1,
        ("carrel_mistakes_total", "shell.command"): 1,
        ("carrel_mistakes_total", "shell.syntax"): 1,
        ("carrel_mistakes_total", "shell.usage"): 1,
    }


def test_metrics_can_be_switched_off(tmp_path: Path) -> None:
    with served(tmp_path / "sessions", metrics="0") as front:
        answer = front.client.get("/metrics")
        assert (answer.status_code, code_of(answer)) == (404, "request.unknown")


def test_every_answer_has_the_headers_that_keep_a_browser_quiet(session: Session) -> None:
    for answer in (
        session.get("/files"),
        session.get("/files/missing"),
        session.front.client.get("/nothing"),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_request_has_an_id_that_the_client_may_choose(front: Front) -> None:
    mine = front.client.get("/healthz", headers={"X-Request-Id": "mine-1"})
    assert mine.headers["x-request-id"] == "mine-1"
    others = [front.client.get("/healthz", headers={"X-Request-Id": bad}) for bad in ("", "a b", "x" * 65)]
    assert len({answer.headers["x-request-id"] for answer in others}) == 3


def test_what_is_not_there_and_what_cannot_be_done_are_told_alike(session: Session) -> None:
    client = session.front.client
    for path in (
        "/",
        "/api",
        "/api/v1/sessions/s/files/../../x/y",
        "/api/v2/sessions",
        "/api/v1/sessions/s/none",
    ):
        answer = client.get(path)
        assert (answer.status_code, code_of(answer)) == (404, "request.unknown")
    answer = client.patch("/api/v1/sessions")
    assert (answer.status_code, code_of(answer)) == (405, "request.unknown")
    assert answer.headers["allow"] == "POST, GET, HEAD"
    assert client.options("/api/v1/sessions").status_code == 405


def test_every_request_is_logged_on_one_line_without_what_it_holds(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "carrel.access"):
        session.get(
            "/search?query=secret-1", headers={"X-Request-Id": "logged", "Cookie": "secret-2"}
        ).raise_for_status()
        session.front.client.get("/api/v1/sessions/%C2%9B31m%0A", headers={"X-Request-Id": "odd"})
        while not any("/healthz" in record.getMessage() for record in caplog.records):
            # What comes soon after another is told a moment later.
            session.front.client.get("/healthz")
            time.sleep(PAUSE_SECONDS)
    records = [record.getMessage() for record in caplog.records if record.name == "carrel.access"]
    lines = [line for record in records for line in record.splitlines()]
    assert not [line for line in lines if "secret" in line]
    line = next(json.loads(line) for line in lines if json.loads(line)["request_id"] == "logged")
    odd = next(json.loads(line) for line in lines if json.loads(line)["request_id"] == "odd")
    assert (odd["status"], odd["session"]) == (400, None)
    assert line.pop("ms") >= 0
    assert line.pop("bytes") > 0
    assert line == {
        "event": "http.request",
        "request_id": "logged",
        "method": "GET",
        "route": "/api/v1/sessions/{session_id}/search",
        "status": 200,
        "caller": "local",
        "tenant": None,
        "session": session.id,
        "peer": "127.0.0.1",
    }


# The description


def test_every_route_is_described_once(front: Front) -> None:
    document = front.client.get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    described = {
        operation["operationId"]
        for item in document["paths"].values()
        for operations in (item, item.get("x-methods", {}))
        for name, operation in operations.items()
        if name != "x-methods"
    }
    routes = {route.name for route in ROUTES} - {"operation"}
    assert described == routes | {f"operation_{name}" for name in OPERATIONS}


def test_every_reference_in_the_description_leads_somewhere(front: Front) -> None:
    text = front.client.get("/openapi.json").text
    components = json.loads(text)["components"]["schemas"]
    for part in text.split('"$ref":"')[1:]:
        assert part.partition('"')[0].removeprefix("#/components/schemas/") in components

"""Requests as spans of OpenTelemetry."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from carrel.config.load import load
from carrel.errors import ConfigError
from carrel.fronts.http.traces import Traces
from tests.fronts.http.front import served

trace = pytest.importorskip("opentelemetry.trace")
sdk = pytest.importorskip("opentelemetry.sdk.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")

PARENT = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_a_request_is_a_span_of_the_trace_that_the_client_names(tmp_path: Path) -> None:
    exporter = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    with served(tmp_path / "sessions", traces="1") as front:
        headers = {"traceparent": f"00-{PARENT}-00f067aa0ba902b7-01"}
        front.client.get("/api/v1/sessions/missing/files/secret", headers=headers)
    (span,) = exporter.get_finished_spans()
    assert span.name == "GET /api/v1/sessions/{session_id}/files/{path*}"
    assert format(span.context.trace_id, "032x") == PARENT
    assert span.attributes["http.response.status_code"] == 404
    assert "secret" not in span.to_json()


def test_traces_that_nobody_could_send_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigError, match=r"carrel\[otel\]"):
        Traces.of(load({"CARREL_SERVE_TRACES": "1"}).serve)

"""An OpenTelemetry span per request, if configured."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from carrel.config.settings import ServeSettings
from carrel.errors import ConfigError
from carrel.fronts.http.request import Request

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""The variable with the address of the collector; setting it enables traces too."""


class Traces:
    """Records a span per request, as part of the client's trace if it sends one."""

    @classmethod
    def of(cls, settings: ServeSettings) -> Traces | None:
        """Return the traces that the settings enable, or `None`.

        The variable may be meant for other programs, so it is ignored if OpenTelemetry is not installed.

        Raises:
            ConfigError: The settings enable traces, and OpenTelemetry is not installed.
        """
        if not settings.traces and not os.environ.get(ENDPOINT):
            return None
        try:
            return cls()
        except ImportError:
            if settings.traces:
                raise ConfigError("serve.traces needs OpenTelemetry: pip install 'carrel[otel]'") from None
            return None

    def __init__(self) -> None:
        from opentelemetry import propagate, trace

        self._propagate = propagate
        self._trace = trace
        _export(trace)
        self._tracer = trace.get_tracer("carrel")

    @contextmanager
    def span(self, request: Request) -> Iterator[None]:
        """Record a span during the block."""
        carrier = {
            name: text
            for name in ("traceparent", "tracestate")
            if (text := request.header(name.encode("ascii"))) is not None
        }
        with self._tracer.start_as_current_span(
            request.scope["method"],
            context=self._propagate.extract(carrier),
            kind=self._trace.SpanKind.SERVER,
        ) as span:
            yield
            if request.route is not None:
                span.update_name(f"{request.scope['method']} {request.route.path}")
                span.set_attribute("http.route", request.route.path)
            span.set_attribute("http.request.method", request.scope["method"])
            span.set_attribute("http.response.status_code", request.status)
            span.set_attribute("carrel.request_id", request.request_id)


def _export(trace: Any) -> None:  # Any: a package that may not be installed
    """Export spans as the environment configures, unless the embedding program has set a provider."""
    from opentelemetry.sdk.trace import TracerProvider

    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    name = os.environ.get("OTEL_SERVICE_NAME", "carrel")
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)

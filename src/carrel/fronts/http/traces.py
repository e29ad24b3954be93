"""An OpenTelemetry span per request, if configured."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from carrel.config.settings import ServeSettings
from carrel.errors import ConfigError
from carrel.fronts.http.request import Request

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""The variable that says where spans go; setting it switches them on as well."""


class Traces:
    """Tells about no request."""

    are_on = False

    @staticmethod
    def of(settings: ServeSettings) -> Traces:
        """What the settings ask for.

        The variable may be meant for other programs, so that nobody is told if it cannot be followed.

        Raises:
            ConfigError: They ask for traces, and OpenTelemetry is not installed.
        """
        if not settings.traces and not os.environ.get(ENDPOINT):
            return Traces()
        try:
            return _Spans()
        except ImportError:
            if settings.traces:
                raise ConfigError("serve.traces needs OpenTelemetry: pip install 'carrel[otel]'") from None
            return Traces()

    def span(self, call: Request) -> AbstractContextManager[None]:
        """Tell about one request meanwhile."""
        return nullcontext()


class _Spans(Traces):
    """Tells about each request, as part of the trace that the client names."""

    are_on = True

    def __init__(self) -> None:
        from opentelemetry import propagate, trace

        self._propagate = propagate
        self._trace = trace
        _export(trace)
        self._tracer = trace.get_tracer("carrel")

    @contextmanager
    def span(self, call: Request) -> Iterator[None]:
        carrier = {
            name: text
            for name in ("traceparent", "tracestate")
            if (text := call.header(name.encode("ascii"))) is not None
        }
        with self._tracer.start_as_current_span(
            call.scope["method"],
            context=self._propagate.extract(carrier),
            kind=self._trace.SpanKind.SERVER,
        ) as span:
            yield
            if call.route is not None:
                span.update_name(f"{call.scope['method']} {call.route.path}")
                span.set_attribute("http.route", call.route.path)
            span.set_attribute("http.request.method", call.scope["method"])
            span.set_attribute("http.response.status_code", call.status)
            span.set_attribute("carrel.request_id", call.request_id)


def _export(trace: Any) -> None:  # Any: a package that may not be installed
    """Send spans to where the environment says, unless the program that embeds us has seen to that."""
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

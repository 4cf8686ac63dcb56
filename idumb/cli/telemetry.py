"""Sends the spans of a run with OpenTelemetry's own libraries, which only this command imports."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from idumb import __version__
from idumb.app.core.services import Result
from idumb.app.reading import debugging
from idumb.app.reading.debugging import Span
from idumb.domain.errors import Refusal, WorkFailed

if TYPE_CHECKING:
    from idumb.composition.container import Container

_AT_ONCE = 500
"""Spans in one request: collectors limit its size."""


def export(services: Container, name: str) -> Result:
    """Send the spans of a run to the collector that the variables OTEL_EXPORTER_OTLP_* name."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import SpanExportResult
    except ImportError as missing:
        words, hint = "The libraries of OpenTelemetry are not installed.", "pip install 'idumb[otel]'"
        raise Refusal("log.no-otel", words, hint=hint) from missing
    except ValueError as problem:  # it reads some of its variables when it is imported
        raise _unusable(str(problem)) from problem
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)  # one line below says what went wrong
    run, rows = debugging.spans_of(services, name)
    clean = services.redactor  # a secret may be known that was none when the log was written
    rows = [row._replace(attributes=clean.value({**row.attributes}), error=clean.redact(row.error)) for row in rows]
    try:
        made, exporter = as_opentelemetry(run, rows), OTLPSpanExporter()
    except ValueError as problem:
        raise _unusable(str(problem)) from problem
    if not made:
        raise _unusable("OTEL_SDK_DISABLED is true")
    for first in range(0, len(made), _AT_ONCE):
        if exporter.export(made[first : first + _AT_ONCE]) is not SpanExportResult.SUCCESS:
            raise WorkFailed(
                "log.not-sent",
                f"The collector did not take the spans of run {run}.",
                hint="Set OTEL_EXPORTER_OTLP_ENDPOINT, such as http://localhost:4318, then run the command again",
            )
    return Result({"run": run, "trace": _digits(run, 32), "spans": len(made)})


def _unusable(why: str) -> WorkFailed:
    hint = "Correct that variable, then run the command again"
    return WorkFailed("log.not-sent", f"OpenTelemetry cannot work with its variables: {why}.", hint=hint)


def as_opentelemetry(run: str, rows: Sequence[Span]) -> Sequence[Any]:
    """Return the spans as OpenTelemetry has them. The same run gives the same ids, so that nothing is there twice."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import IdGenerator, TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON
    from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

    class Ids(IdGenerator):  # type: ignore[misc]
        key = run

        def generate_span_id(self) -> int:
            return int(_digits(self.key, 16), 16)

        def generate_trace_id(self) -> int:
            return int(_digits(run, 32), 16)

    ids, kept = Ids(), InMemorySpanExporter()
    ours = Resource({"service.name": "idumb", "service.version": __version__})
    provider = TracerProvider(ALWAYS_ON, id_generator=ids, resource=ours.merge(OTELResourceDetector().detect()))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer, parents = provider.get_tracer("idumb", __version__), dict[str, Any]()
    for row in rows:
        ids.key = row.key
        above = parents.get(row.parent)
        span = tracer.start_span(
            row.name,
            None if above is None else set_span_in_context(above),
            SpanKind.CLIENT if row.name.startswith("invoke_agent ") else SpanKind.INTERNAL,
            dict(row.attributes),
            start_time=_nanoseconds(row.start),
        )
        if row.error:
            span.set_status(Status(StatusCode.ERROR, row.error))
        span.end(_nanoseconds(row.end))
        parents[row.key] = span
    return tuple(kept.get_finished_spans())


def _digits(key: str, count: int) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:count]


def _nanoseconds(at: str) -> int:
    return round(datetime.fromisoformat(at).timestamp() * 1_000_000) * 1_000

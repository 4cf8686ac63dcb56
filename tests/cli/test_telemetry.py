"""`idumb debug export`: a run as a trace of OpenTelemetry, made after the fact from the log (R-OPS-1)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.trace import SpanKind

from idumb.app.reading import debugging
from idumb.cli import opened_services, telemetry
from tests.cli.test_report_page import reviewed
from tests.support import ended_runs
from tests.support.prepared import Prepared


@pytest.mark.usefixtures("home")
def test_a_run_is_a_trace_of_tasks_attempts_and_agent_calls(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exporter in memory has them with the names and attributes of the conventions for GenAI."""
    project = prepared.get(reviewed)
    monkeypatch.chdir(project.folder)
    with opened_services.opened(as_json=True) as services:
        id, rows = debugging.spans_of(services, "1")
        made = telemetry.as_opentelemetry(id, rows)
        again = telemetry.as_opentelemetry(*debugging.spans_of(services, id))
    by_id = {span.context.span_id: span for span in made}
    assert len(by_id) == len(made) == len(rows)

    def path(span: Any) -> tuple[str, ...]:
        return (*path(by_id[span.parent.span_id]), span.name) if span.parent else (span.name,)

    calls = [span for span in made if span.name == "invoke_agent coder"]
    assert [path(span) for span in calls] == [
        ("invoke_workflow 1", "task T1-01", f"attempt {number}", "invoke_agent coder") for number in (1, 2)
    ]
    assert {name: value for name, value in calls[0].attributes.items() if name.startswith("gen_ai.")} == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "command",
        "gen_ai.agent.name": "coder",
        "gen_ai.request.model": "middle",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
    }
    assert calls[0].kind == SpanKind.CLIENT
    failed = next(span for span in made if span.name == "attempt 1" and span.attributes["idumb.task"] == "T1-01")
    assert (failed.status.is_ok, failed.status.description) == (False, "AC-1 failed")
    (task,) = (span for span in made if span.name == "task T1-01")
    assert task.status.is_ok
    assert all(span.start_time <= span.end_time for span in made)
    inside = [span for span in made if span.parent]
    assert all(by_id[span.parent.span_id].start_time <= span.start_time for span in inside)
    assert all(span.end_time <= by_id[span.parent.span_id].end_time for span in inside)
    assert "waited" in {span.name for span in made}
    assert [span.context.span_id for span in again] == [span.context.span_id for span in made]


@contextmanager
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A server that takes what is sent, at an address of this machine."""
    taken: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", taken
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.usefixtures("home")
def test_the_spans_go_to_the_collector_that_the_environment_names(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without what became a secret since."""
    project = prepared.get(reviewed)
    secret = project.json("debug", "inspect", "1").data["tasks"][0]["commit"]
    project.configure(f"{project.read('.idumb/config.yaml')}environment: [API_KEY]\n")
    with collector() as (address, taken):
        names = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_EXPORTER_OTLP_COMPRESSION": "none", "API_KEY": secret}
        for name, value in names.items():
            monkeypatch.setenv(name, value)
        answer = project.json("debug", "export", "1")
    assert answer.code == 0, answer.out + answer.err
    ((path, body),) = taken
    (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
    sent = resource.scope_spans[0].spans
    assert (path, len(sent)) == ("/v1/traces", answer.data["spans"])
    assert {span.trace_id.hex() for span in sent} == {answer.data["trace"]}
    assert secret.encode() not in body
    assert b"[redacted:" in body
    assert "idumb" in {each.value.string_value for each in resource.resource.attributes}
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    refused = project.json("debug", "export", "1")
    assert (refused.code, refused.error["code"]) == (1, "log.not-sent")


@pytest.mark.nightly
@pytest.mark.usefixtures("home")
def test_a_variable_that_opentelemetry_refuses_or_that_switches_it_off_sends_nothing(prepared: Prepared) -> None:
    project = prepared.get(reviewed)
    for name, value in (("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many"), ("OTEL_SDK_DISABLED", "true")):
        answer = project.idumb("debug", "export", "1", "--json", environment={name: value})
        assert (answer.code, answer.error["code"], name in answer.error["message"]) == (1, "log.not-sent", True)


def test_without_the_extra_one_line_says_what_to_install(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    project = prepared.get(ended_runs.done)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    refused = project.json("debug", "export", "1")
    assert (refused.code, refused.error["code"]) == (4, "log.no-otel")
    assert refused.error["hint"] == "pip install 'idumb[otel]'"

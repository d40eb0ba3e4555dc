"""Export by OTLP from commands: to a collector where one is named, with a word where the extra is missing."""

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from engine_shim.telemetry import export
from engine_shim.telemetry.export import TRACES, _set_up
from engine_shim.telemetry.export_failures import ExportFailures
from support.loopback import Loopback, http, serving
from support.served_host import write_host

pytestmark = pytest.mark.anyio
WITHOUT_EXTRA = "import sys; sys.modules['opentelemetry'] = None; "
LISTS_MODULES = """
import atexit, sys
atexit.register(lambda: sys.stderr.write(str([each for each in sys.modules if each.startswith("opentelemetry")])))
"""
PROGRAM = "from engine_shim.cli.main import main; import sys; main(sys.argv[1:])"


async def command(
    folder: Path, *words: str, program: str = PROGRAM, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """A command in a process of its own, with these variables."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", program, *words],
        cwd=folder,
        env={**inherited, "AGENT_CORE_STORE": str(folder / "runs.db"), "XDG_DATA_HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=100,
        input="How many?\n",
    )


def spans_of(collector: Loopback) -> list[Any]:
    bodies = [each.body for each in collector.requests if each.target.endswith("/v1/traces")]
    return [
        span
        for body in bodies
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def metrics_of(collector: Loopback) -> set[str]:
    bodies = [each.body for each in collector.requests if each.target.endswith("/v1/metrics")]
    return {
        metric.name
        for body in bodies
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


async def test_run_exports_its_spans_and_metrics_before_it_ends(tmp_path: Path) -> None:
    write_host(tmp_path)
    async with serving(http(200)) as collector:
        endpoint = collector.url.removesuffix("/v1")
        ran = await command(
            *(tmp_path, "run", "workflows/desk.json", "--input", "message=How many?", "--json"),
            OTEL_EXPORTER_OTLP_ENDPOINT=endpoint,
        )
    assert ran.returncode == 0, ran.stderr
    run = json.loads(ran.stdout)["run_id"]
    spans = spans_of(collector)
    assert [each.name for each in spans][-1] == "invoke_workflow desk"
    assert len(spans) == 5
    for span in spans:
        assert run in [each.value.string_value for each in span.attributes if each.key == "agent_core.run.id"]
    assert {"gen_ai.client.operation.duration", "gen_ai.workflow.duration"} <= metrics_of(collector)
    assert b"agent-core" in collector.requests[0].body


@pytest.mark.exhaustive
async def test_chat_exports_its_turns(tmp_path: Path) -> None:
    write_host(tmp_path)
    async with serving(http(200)) as collector:
        traces = f"{collector.url}/traces"
        ran = await command(tmp_path, "chat", "--agent", "clerk", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=traces)
    assert ran.returncode == 0, ran.stderr
    assert "invoke_agent clerk" in [each.name for each in spans_of(collector)]
    assert metrics_of(collector) == set()


@pytest.mark.exhaustive
async def test_missing_extra_is_named_in_one_line(tmp_path: Path) -> None:
    write_host(tmp_path)
    words = (tmp_path, "run", "workflows/count.json", "--input", "sum=1+1", "--json")
    ran = await command(*words, program=WITHOUT_EXTRA + PROGRAM, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert ran.returncode == 0, ran.stderr
    told = [line for line in ran.stderr.splitlines() if "OTEL" in line]
    assert told == [
        "agent-core: OTEL_EXPORTER_OTLP_ENDPOINT is set, but nothing is exported: pip install 'agent-core[telemetry]'"
    ]


@pytest.mark.exhaustive
async def test_collector_that_is_not_there_fails_no_run(tmp_path: Path) -> None:
    write_host(tmp_path)
    ran = await command(
        *(tmp_path, "run", "workflows/count.json", "--input", "sum=1+1", "--json"),
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
        OTEL_EXPORTER_OTLP_TIMEOUT="1",
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["status"] == "completed"
    told = [line for line in ran.stderr.splitlines() if "export" in line]
    assert len(told) == 1
    assert told[0].startswith("agent-core: telemetry is not exported: ")


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"OTEL_BSP_MAX_QUEUE_SIZE": "1"}, "telemetry is not exported: max_export_batch_size must be less"),
        ({"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is 'grpc', but only"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc', but only"),
    ],
)
def test_what_cannot_be_exported_as_the_environment_says_is_told_once(
    environment: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert _set_up({TRACES: "http://127.0.0.1:9/v1/traces", **environment}) == []
    assert [told in each.getMessage() for each in caplog.records] == [True]


def record(text: str, level: int = logging.ERROR, created: float = 1.0) -> logging.LogRecord:
    made = logging.LogRecord("opentelemetry", level, "", 0, text, (), None)
    made.created = created
    return made


def test_attempt_that_is_made_again_is_no_failure_and_a_failure_is_told_once_an_hour(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures = ExportFailures()
    failures.emit(record("Found invalid value for export interval, using default", logging.WARNING))
    failures.exports = True
    failures.emit(
        record("Transient error Away encountered while exporting spans batch, retrying in 1s.", logging.WARNING)
    )
    for created in (2.0, 3.0, 4000.0):
        failures.emit(record("Failed to export spans batch.", created=created))
    assert [each.getMessage() for each in caplog.records] == [
        "telemetry: Found invalid value for export interval, using default",
        "telemetry is not exported: Failed to export spans batch. (Away)",
        "telemetry is not exported: Failed to export spans batch.",
    ]


def test_what_is_told_of_an_export_has_no_key(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Bearer s3cr3t,x-key=My%20s3cr3t%0A1")
    failures = ExportFailures()
    failures.emit(record("Header format invalid: Bearer s3cr3t"))
    failures.emit(record("Max retries exceeded with url: /v1/traces?key=s3cr3t (Caused by it)"))
    failures.emit(record(f"return character(s) in header value: {chr(10).join(['My s3cr3t', '1'])!r}"))
    failures.emit(record("No connection adapters were found for 'me:s3cr3t@collector:4318/v1/traces'"))
    assert [each.getMessage() for each in caplog.records] == [
        "telemetry: Header format invalid: …",
        "telemetry: Max retries exceeded with url: /v1/traces?… (Caused by it)",
        "telemetry: return character(s) in header value: '…'",
        "telemetry: No connection adapters were found for '…@collector:4318/v1/traces'",
    ]


def test_collector_that_hangs_holds_no_command_up_and_one_that_breaks_fails_none(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Provider:
        def __init__(self, flush: Callable[[float], object]) -> None:
            self.force_flush = flush

    monkeypatch.setattr(export, "FLUSH_S", 0.01)
    answered = Event()
    export._flush([Provider(lambda _: answered.wait()), Provider(lambda _: {}["gone"])])
    answered.set()
    assert sorted(each.getMessage() for each in caplog.records) == [
        "telemetry is not exported: KeyError: 'gone'",
        "telemetry is not exported: the collector has not answered within 0.01 s",
    ]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "10000")
    assert export._longest_flush() == export.LONGEST_FLUSH_S


@pytest.mark.exhaustive
async def test_nothing_of_opentelemetry_is_imported_where_nothing_is_set(tmp_path: Path) -> None:
    write_host(tmp_path)
    program = LISTS_MODULES + PROGRAM
    ran = await command(tmp_path, "run", "workflows/count.json", "--input", "sum=1+1", program=program)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.endswith("[]")


@pytest.mark.exhaustive
async def test_log_has_the_ids_of_the_runs_span(tmp_path: Path) -> None:
    write_host(tmp_path)
    async with serving(http(200)) as collector:
        ran = await command(
            *(tmp_path, "run", "workflows/desk.json", "--input", "message=How many?"),
            *("--log-level", "info", "--log-format", "json"),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url.removesuffix("/v1"),
        )
    assert ran.returncode == 0, ran.stderr
    lines = [json.loads(line) for line in ran.stderr.splitlines() if line.startswith("{")]
    spans = {each.name: (each.trace_id.hex(), each.span_id.hex()) for each in spans_of(collector)}
    told = {line["event"]: (line.get("trace_id"), line.get("span_id")) for line in lines if line["run_id"]}
    assert told["step"] == told["tool_call"] == spans["invoke_agent agent_core"]
    assert told["run_finished"] == spans["invoke_workflow desk"]
    assert re.fullmatch("[0-9a-f]{32}", told["step"][0] or "")

"""What the packages log, on stderr: as lines for a person, or as one JSON object a line."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal

PACKAGES = ("agent_core", "engine_shim", "utools")
LIBRARIES = ("aiohttp", "asyncio", "mcp", "psycopg", "temporalio")
"""Their warnings are written like ours; without a handler Python writes them between ours as they are."""
TOLD_BY_US = "psycopg.pool"
"""Warns of a connection that is lost, as the error does that we tell."""
Level = Literal["debug", "info", "warning", "error"]
Format = Literal["text", "json"]


class TextHandler(logging.Handler):
    """Writes each message as a line of this command, to whatever stderr is then."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"agent-core: {record.getMessage()}\n")
        if record.exc_info:
            sys.stderr.write(logging.Formatter().formatException(record.exc_info) + "\n")


class JsonHandler(logging.Handler):
    """Writes each record as a JSON object in a line: ts, level, event, run_id, and the record's fields."""

    def emit(self, record: logging.LogRecord) -> None:
        line: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", "message"),
            "run_id": getattr(record, "run_id", None),
            **getattr(record, "fields", {"logger": record.name, "message": record.getMessage()}),
            **_trace_of(record),
        }
        if record.exc_info:
            line["exception"] = logging.Formatter().formatException(record.exc_info)
        sys.stderr.write(json.dumps(line, default=str) + "\n")


def _trace_of(record: logging.LogRecord) -> dict[str, str]:
    """Return the ids of the span that a record is about, or that is the current one; none where nothing is traced."""
    if (trace := getattr(record, "trace_id", None)) is not None:
        return {"trace_id": trace, "span_id": getattr(record, "span_id", "")}
    if (api := sys.modules.get("opentelemetry.trace")) is None:
        return {}
    context = api.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}


def configure_log(*, level: Level, form: Format = "text") -> None:
    """Let the packages log to stderr, and libraries warn there."""
    for package in PACKAGES:
        logging.getLogger(package).setLevel(level.upper())
    for name in (*PACKAGES, *LIBRARIES):
        logging.getLogger(name).handlers = [JsonHandler() if form == "json" else TextHandler()]
    logging.getLogger(TOLD_BY_US).setLevel(logging.ERROR)


def logs_json() -> bool:
    """Return whether stderr is for programs: every line of it is JSON."""
    return any(isinstance(handler, JsonHandler) for handler in logging.getLogger(PACKAGES[0]).handlers)

"""explain_failures(): what OpenTelemetry logs of an export, in a line of ours, and without what is secret."""

import logging
import os
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from utools.lazy_pattern import lazy_compile

TRANSIENT: Final = lazy_compile(r"Transient error (.*) encountered while exporting .*")
"""An attempt that failed, and is made again."""
QUERY: Final = lazy_compile(r"\?[^\s)'\"]+")
"""The query of a URL, in which vendors take keys."""
PASSWORD: Final = lazy_compile(r"[^\s'\"/:@]*:[^\s'\"/@]+@")
"""A user with a password in a URL."""
AGAIN_S: Final = 3600.0
"""For how long nothing more is said of failures: OpenTelemetry says it again at each attempt."""
SHORTEST: Final = 4
LONGEST: Final = 400
log = logging.getLogger("engine_shim")


class ExportFailures(logging.Handler):
    """Says in one line each what OpenTelemetry does not take of its variables, and, once it exports, why nothing
    arrives."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.exports = False
        self._said = set[str]()
        self._attempt, self._silent_until = "", 0.0

    def emit(self, record: logging.LogRecord) -> None:
        text = _in_line(record)
        if not self.exports:
            if text not in self._said:
                log.warning("telemetry: %s", text)
            self._said.add(text)
        elif attempt := TRANSIENT.fullmatch(text):
            self._attempt = attempt[1]
        else:
            why, self._attempt = f"{text} ({self._attempt})" if self._attempt else text, ""
            if record.created >= self._silent_until:
                self._silent_until = record.created + AGAIN_S
                log.warning("telemetry is not exported: %s", why)


def explain_failures() -> None:
    """Explain what OpenTelemetry logs from now on, unless the program has a handler of its own for that."""
    exporters = logging.getLogger("opentelemetry")
    if not exporters.handlers:
        exporters.addHandler(ExportFailures())
        exporters.propagate = False


def note_exports() -> None:
    """Take what is logged from now on for failures of exports."""
    for each in logging.getLogger("opentelemetry").handlers:
        if isinstance(each, ExportFailures):
            each.exports = True


def _in_line(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    text = record.getMessage() + (f" ({type(error).__name__}: {error})" if error else "")
    for secret in _headers():
        text = text.replace(secret, "…")
    text = PASSWORD.sub("…@", QUERY.sub("?…", " ".join(text.split())))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _headers() -> Iterator[str]:
    """Yield the headers that exports have, since most of them are keys: as they are written, and their values as they
    are sent and as errors quote them."""
    for name, value in os.environ.items():
        if name.startswith("OTEL_EXPORTER_OTLP") and name.endswith("HEADERS"):
            for each in value.split(","):
                sent = unquote(each.partition("=")[2]).strip()
                yield from (text for text in (each.strip(), sent, repr(sent)[1:-1]) if len(text) >= SHORTEST)

"""Meters: how long operations took and the tokens that they used, as OpenTelemetry metrics of the conventions."""

from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry.metrics import Histogram, MeterProvider

from engine_shim.telemetry import names
from engine_shim.telemetry.attributes import split_model
from engine_shim.telemetry.operations import Ended, Source
from engine_shim.telemetry.timing import duration_of

CALL_BUCKETS: Final = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
AGENT_BUCKETS: Final = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6]
WORKFLOW_BUCKETS: Final = [1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200]
TOKEN_BUCKETS: Final = [4**power for power in range(14)]
DURATIONS: Final[Mapping[str, tuple[str, Sequence[float], str]]] = {
    "chat": (names.CHAT_DURATION, CALL_BUCKETS, "GenAI operation duration."),
    "execute_tool": (names.TOOL_DURATION, CALL_BUCKETS, "The duration of a single tool execution."),
    "invoke_agent": (names.AGENT_DURATION, AGENT_BUCKETS, "The duration of a single agent invocation."),
    "invoke_workflow": (names.WORKFLOW_DURATION, WORKFLOW_BUCKETS, "GenAI workflow duration."),
}
"""The metric of each operation's duration, its buckets as the conventions want them, and what it says."""


class Meters:
    """The instruments of one meter provider."""

    def __init__(self, provider: MeterProvider, version: str) -> None:
        meter = provider.get_meter(names.SCOPE, version)
        self._durations: dict[str, Histogram] = {
            kind: meter.create_histogram(name, "s", text, explicit_bucket_boundaries_advisory=buckets)
            for kind, (name, buckets, text) in DURATIONS.items()
        }
        self._tokens = meter.create_histogram(
            names.TOKEN_USAGE,
            "{token}",
            "Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKEN_BUCKETS,
        )

    def end(self, ended: Ended, source: Source) -> None:
        """Record an operation that has ended."""
        seconds, instrument = duration_of(ended), self._durations.get(ended.operation.kind)
        if instrument is None:
            return
        attributes = _attributes_of(ended, source)
        if seconds is not None:
            instrument.record(seconds, attributes)
        # the conventions forbid estimated counts
        if (reply := ended.reply) and not reply.usage.get("estimated"):
            for kind in ("input", "output"):
                self._tokens.record(reply.usage[f"{kind}_tokens"], {**attributes, names.TOKEN_TYPE: kind})


def _attributes_of(ended: Ended, source: Source) -> dict[str, str]:
    operation = ended.operation
    found = {} if ended.error is None else {names.ERROR_TYPE: ended.error}
    match operation.kind:
        case "chat":
            provider, model = split_model(operation.name, source.default_provider)
            found |= {names.OPERATION: operation.kind, names.PROVIDER: provider, names.REQUEST_MODEL: model}
            if (reply := ended.reply) is not None:
                found[names.RESPONSE_MODEL] = split_model(reply.model, "")[1]
        case "execute_tool":
            found |= {names.TOOL_NAME: operation.name, names.TOOL_TYPE: "function"}
            if operation.agent:
                found[names.AGENT_NAME] = operation.agent
        case "invoke_agent":
            model = split_model(operation.config["model"], "")[1]
            found |= {names.AGENT_NAME: operation.agent, names.REQUEST_MODEL: model}
        case _:
            found[names.WORKFLOW_NAME] = operation.workflow
    return found

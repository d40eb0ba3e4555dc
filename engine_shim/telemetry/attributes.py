"""The name, kind and attributes of an operation's span, by the semantic conventions. No content is among them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agent_core.effects import Json
from engine_shim.telemetry import names
from engine_shim.telemetry.operations import Ended, Operation, Source

Value = str | bool | int | float | Sequence[str]
Attributes = Mapping[str, Value]
PROVIDERS: Final = {"gemini": "gcp.gemini"}
"""The conventions' word for a vendor that has another one here."""


def span_name(operation: Operation) -> str:
    """The span's name: the operation, and what it is an operation of."""
    name = split_model(operation.name, "")[1] if operation.kind == "chat" else operation.name
    return f"{operation.kind} {name}"


def split_model(model: str, default_provider: str) -> tuple[str, str]:
    """The provider, as the conventions call it, and the model that it is asked for."""
    provider, colon, name = model.partition(":")
    if not colon:
        provider, name = default_provider, model
    return PROVIDERS.get(provider, provider), name


def attributes_at_start(operation: Operation, source: Source) -> Attributes:
    """What is known of an operation when it begins."""
    given: dict[str, Value | None] = {
        names.OPERATION: operation.kind,
        names.AGENT_NAME: operation.agent or None,
        names.CONVERSATION: operation.conversation,
        names.RUN: source.run,
        names.STRAND: operation.place.path,
        names.RECORD: operation.place.n,
        names.STEP: operation.step,
        names.TENANT: source.tenant or None,
        **dict(_of_kind(operation, source)),
    }
    return {name: value for name, value in given.items() if value is not None}


def _of_kind(operation: Operation, source: Source) -> Iterator[tuple[str, Value | None]]:
    started = operation.started
    match operation.kind:
        case "invoke_workflow":
            yield names.WORKFLOW_NAME, operation.name
            yield names.VERSION, started["definition"].get("version", "1")
            yield names.FORKED_FROM, started.get("forked", {}).get("run")
        case "invoke_agent":
            provider, model = split_model(operation.config["model"], source.default_provider)
            yield names.PROVIDER, provider
            yield names.REQUEST_MODEL, model
        case "chat":
            provider, model = split_model(operation.name, source.default_provider)
            yield names.PROVIDER, provider
            yield names.REQUEST_MODEL, model
            for key, name in names.REQUEST_OPTIONS.items():
                yield name, operation.config.get(key)
        case "execute_tool":
            yield names.TOOL_NAME, operation.name
            yield names.TOOL_TYPE, "function"
            yield names.EFFECT, started["effect"]
            yield names.TOOL_CALL, started["id"] if operation.agent else None


def attributes_at_end(ended: Ended) -> Attributes:
    """What is known of an operation when it has ended."""
    record, given = ended.record, dict[str, Value | None]()
    if ended.error is not None:
        given[names.ERROR_TYPE] = ended.error
    match ended.operation.kind:
        case "chat" if record.get("reply") == "said":
            given |= _reply_attributes(record)
        case "execute_tool":
            given[names.CACHED] = record.get("cached") or None
        case "invoke_agent":
            given |= {names.REASON: record["finish_reason"], names.STEPS: ended.steps}
        case "invoke_workflow":
            given[names.REASON] = record["status"]
    return {name: value for name, value in given.items() if value is not None}


def _reply_attributes(record: Json) -> dict[str, Value | None]:
    usage = record["usage"]
    return {
        names.RESPONSE_MODEL: split_model(record["model"], "")[1],
        names.FINISH_REASONS: (record["finish_reason"],),
        names.INPUT_TOKENS: usage["input_tokens"],
        names.OUTPUT_TOKENS: usage["output_tokens"],
        names.ESTIMATED: usage.get("estimated") or None,
    }

"""The name, kind and attributes of an operation's span, by the semantic conventions. No content is among them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agent_core.effects import ModelReply, ToolReply
from agent_core.journal.facts import Answered, RunFinished
from engine_shim.telemetry import names
from engine_shim.telemetry.operations import Ended, Operation, Source

Value = str | bool | int | float | Sequence[str]
Attributes = Mapping[str, Value]
PROVIDERS: Final = {"gemini": "gcp.gemini"}
"""The conventions' word for a vendor that has another one here."""


def span_name(operation: Operation) -> str:
    """Return the span's name: the operation, and what it is an operation of."""
    name = split_model(operation.name, "")[1] if operation.kind == "chat" else operation.name
    return f"{operation.kind} {name}"


def split_model(model: str, default_provider: str) -> tuple[str, str]:
    """Return the provider, as the conventions call it, and the model that it is asked for."""
    provider, colon, name = model.partition(":")
    if not colon:
        provider, name = default_provider, model
    return PROVIDERS.get(provider, provider), name


def attributes_at_start(operation: Operation, source: Source) -> Attributes:
    """Return what is known of an operation when it begins."""
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
    run, call = operation.run, operation.call
    match operation.kind:
        case "invoke_workflow" if run is not None:
            yield names.WORKFLOW_NAME, operation.name
            yield names.VERSION, run.definition.get("version", "1")
            yield names.FORKED_FROM, run.forked["run"] if run.forked else None
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
        case "execute_tool" if call is not None:
            yield names.TOOL_NAME, operation.name
            yield names.TOOL_TYPE, "function"
            yield names.EFFECT, call.effect
            yield names.TOOL_CALL, call.id if operation.agent else None


def attributes_at_end(ended: Ended) -> Attributes:
    """Return what is known of an operation when it has ended."""
    given = dict[str, Value | None]()
    if ended.error is not None:
        given[names.ERROR_TYPE] = ended.error
    match ended.operation.kind, ended.fact:
        case "chat", Answered(answer=ModelReply() as reply):
            given |= _reply_attributes(reply)
        case "execute_tool", Answered(answer=ToolReply(cached=True)):
            given[names.CACHED] = True
        case "invoke_agent", RunFinished(reason=reason):
            given |= {names.REASON: reason, names.STEPS: ended.steps}
        case "invoke_workflow", RunFinished(reason=reason):
            given[names.REASON] = reason
        case _:
            pass
    return {name: value for name, value in given.items() if value is not None}


def _reply_attributes(reply: ModelReply) -> dict[str, Value | None]:
    usage = reply.usage
    return {
        names.RESPONSE_MODEL: split_model(reply.model, "")[1],
        names.FINISH_REASONS: (reply.finish_reason,),
        names.INPUT_TOKENS: usage["input_tokens"],
        names.OUTPUT_TOKENS: usage["output_tokens"],
        names.CACHED_TOKENS: usage.get("cached_tokens"),
        names.CACHE_WRITE_TOKENS: usage.get("cache_write_tokens"),
        names.REASONING_TOKENS: usage.get("reasoning_tokens"),
        names.ESTIMATED: usage.get("estimated") or None,
    }

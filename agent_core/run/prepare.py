"""Preparing an agent's run: from a config and a registry to the body of `run_started`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, cast

import orjson
from pydantic import BaseModel

from agent_core.config import AgentConfig, Document, read_config
from agent_core.errors import DefinitionError
from agent_core.inherited import Inherited
from agent_core.journal.record import FORMAT
from agent_core.loop.budget import limits_of
from agent_core.loop.masked import marks_in
from agent_core.loop.plan_check import PLAN
from agent_core.loop.reading import may_read_on, reading_policy
from agent_core.models.client import ModelInfo, ModelInfoOf
from agent_core.origins.opening import opening_sources, shown_text
from agent_core.outputs import Json, Placed
from agent_core.prompts.limits import describe_limits
from agent_core.prompts.profile import is_small
from agent_core.prompts.render import render, templates
from agent_core.prompts.tools import tool_definitions
from agent_core.protocol.messages import as_read, is_empty, last_turns, read_placed
from agent_core.records import AgentNote, AgentStartedBody, DocumentRecord, LimitsRecord
from agent_core.rules import CURRENT, RecordedRules
from agent_core.run.examples import ShownExamples, read_examples, write_examples
from agent_core.run.model_options import model_options
from agent_core.run.tool_policies import tool_policies
from agent_core.tool_policy import Policies
from agent_core.words.catalogue import Words, words_in
from utools.problems import Problem, gathering, refuse
from utools.registry import ToolRegistry
from utools.schema.config_schema import ConfigSchema
from utools.schema.json_value import NotJson, as_json
from utools.secrets.redaction import Redactor
from utools.tool import Tool

MAX_REPLY = 8192
"""Tokens that are left for a reply in a model's window, where nothing says how many."""
Prepare = Callable[[str, str, Any, Inherited], Mapping[str, Any]]
"""(run, strand, config, what the parent hands down) -> the body of `run_started`."""


def prepare_agent(
    run: str,
    path: str,
    config: Any,
    inherited: Inherited,
    *,
    registry: ToolRegistry,
    at: str,
    redactor: Redactor | None = None,
    base: Path | None = None,
    info: ModelInfoOf | None = None,
) -> AgentStartedBody:
    """Everything that the loop needs, so that a replay needs nothing else. DefinitionErrors for a bad config."""
    read, clean = read_config(to_journal(config)), redactor or Redactor({})
    tools, placed, texts = _read_parts(read, registry, inherited, clean, base)
    conversation = [message for _, message in placed]
    limits, words = limits_of(read, inherited), words_in(read.language)
    known = info(read.model, {"base_url": read.base_url, "api": read.api}) if info else None
    small = _is_small(read, known)
    needs_turns = small and "examples" not in read.templates
    if needs_turns:
        own = [name for name in ("observation", "tool_error") if name not in read.templates]
        texts.update({name: texts[f"small_{name}"] for name in own})
    variables = _variables(read, tools, limits, words)
    as_turns = needs_turns or read.protocol == "tools"
    written = {code: tool.examples for code in tools if not (tool := registry.get(code)).is_built_in or as_turns}
    examples = read_examples(read, tools, written, texts, as_turns=as_turns)
    history = _choose_history(read, conversation)
    messages = as_read(history)
    system = _write_system(read, texts, variables, conversation, messages, words, examples)
    body: AgentStartedBody = {
        "loop": "agent",
        "format": FORMAT,
        "run": run,
        "at": at,
        "call_prefix": sha256(f"{run}\0{path}".encode()).hexdigest()[:8],
        "config": config_record(read, clean),
        "tools": clean.value(tools),
        "messages": clean.value([{"role": "system", "content": system}, *messages]),
        "texts": clean.value(texts),
        "sources": clean.value(opening_sources(read, tools, placed, [{}, *history], inherited)),
        "examples": clean.value(examples.turns),
        "options": clean.value(model_options(_at_its_temperature(read, small=small), tools)),
        "limits": limits,
        "redaction": clean.rules,
        "versions": {"agent_core": installed_version()},
        "rules": cast(RecordedRules, CURRENT),
    }
    if known is not None and known.api is not None:
        body["api"] = known.api
    if (window := _question_tokens(read, known)) is not None:
        body["window"] = window
    if read.documents:
        body["documents"] = [_document_record(each) for each in read.documents]
    if isinstance(read.agent, dict):
        body["agent"] = cast(AgentNote, read.agent)
    if tools and read.mode == "react" and read.observation_max_len and may_read_on(read, tools):
        body["reading"] = reading_policy(words)
    return body


def config_record(config: AgentConfig, clean: Redactor) -> Json:
    """Return a config as `run_started` holds it; the agent that it is of has a key of its own there."""
    shown = config.model_dump(mode="json", exclude={"agent": True, "documents": {"__all__": {"text"}}})
    return {**clean.value(shown), "model": config.model}


def _document_record(document: Document) -> DocumentRecord:
    text = document.text or ""
    return {
        "label": document.label,
        "sha256": sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        "characters": len(text),
        "shown": len(shown_text(document)),
    }


class _Parts(NamedTuple):
    """What a config brings together: its tools, its conversation with the place of each message, and the templates."""

    tools: Policies
    conversation: list[Placed]
    texts: dict[str, str]


def _read_parts(
    config: AgentConfig, registry: ToolRegistry, inherited: Inherited, clean: Redactor, base: Path | None
) -> _Parts:
    """Return the parts of a config; DefinitionErrors with all that is wrong with them."""
    problems: list[Problem] = []
    tools: Policies = {}
    conversation: list[Placed] = []
    texts: dict[str, str] = {}
    with gathering(problems):
        if config.answer_schema is not None:
            ConfigSchema(config.answer_schema, foreign=True, where="answer_schema")
    with gathering(problems):
        tools = tool_policies(config, registry, inherited.get("fills", ()))
    problems += _secret_presets(tools, clean)
    if config.mode == "plan" and PLAN in tools:
        message = "in plan mode this code is reserved for the plan that waits for a person; rename the tool"
        problems.append(Problem("allowed_tools", str(DefinitionError(message, value=PLAN))))
    problems += _unknown_servers(config, registry)
    with gathering(problems):
        conversation = _read_conversation(config)
    with gathering(problems):
        protocol = "plan" if config.mode == "plan" else config.protocol
        texts = templates(config.language, config.templates, base, protocol=protocol)
    refuse(problems)
    return _Parts(tools, conversation, texts)


def _unknown_servers(config: AgentConfig, registry: ToolRegistry) -> Iterator[Problem]:
    """Yield the documents that no server of this host has."""
    known = ", ".join(sorted(registry._readers)) or "none"
    for index, document in enumerate(config.documents):
        if document.server not in registry._readers:
            what = f"this host has no such MCP server; there are {known}"
            yield Problem(f"documents/{index}/server", str(DefinitionError(what, value=document.server)))


def _question_tokens(config: AgentConfig, known: ModelInfo | None) -> int | None:
    """Return the tokens that a question may have when the config does not say: the model's window without its reply."""
    if config.max_input_tokens is not None or known is None or known.context_window is None:
        return None
    reply = config.max_output_tokens or min(known.output_limit or MAX_REPLY, known.context_window // 4)
    return max(1, known.context_window - reply)


def _secret_presets(tools: Policies, clean: Redactor) -> Iterator[Problem]:
    """Yield a problem for each preset with a secret's value, which would reach the tool as a placeholder: the author
    must name the secret instead."""
    marks = marks_in(clean.rules)
    for code, policy in tools.items():
        if clean.value(policy["preset"]) != policy["preset"] or marks.faults(policy["preset"]):
            message = "holds the value of a secret; name the environment variable instead, which the tool reads itself"
            yield Problem(f"allowed_tools/{code}/preset", message)


def to_journal(value: Any) -> Any:
    """Return the value as plain JSON; DefinitionError for what no journal can hold: NaN, huge integers, lone
    surrogates."""
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_unset=True)  # what is not given may depend on the model
    try:
        return as_json(dict(value) if isinstance(value, Mapping) else value)
    except NotJson as error:
        _explain_not_json(value)
        raise DefinitionError(str(error), where="config") from None


def _explain_not_json(config: Any) -> None:
    """DefinitionError for what belongs elsewhere: the type of an answer, a tool in place of its code."""
    if isinstance(config, Mapping) and isinstance(config.get("answer_schema"), type):
        message = "is a type; give it to the call, as answer_schema=, which then gives an object"
        raise DefinitionError(message, where="config/answer_schema", value=config["answer_schema"].__name__)
    allowed = config.get("allowed_tools") if isinstance(config, Mapping) else None
    for index, each in enumerate(allowed if isinstance(allowed, list | tuple) else ()):
        if isinstance(each, Tool):
            message = f"is a Tool; write its code, {each.code!r}, and give the Tool in registry="
            raise DefinitionError(message, where=f"config/allowed_tools/{index}")


def _read_conversation(config: AgentConfig) -> list[Placed]:
    """Return the conversation as the config gives it, with the prompt as its last turn."""
    messages = [] if config.messages_json is None else read_placed(config.messages_json)
    if config.prompt is not None:
        messages = [*messages, ("prompt", {"role": "user", "content": config.prompt})]
    if all(message["role"] == "system" or is_empty(message) for _, message in messages):
        raise DefinitionError("there is no message to answer", where="messages_json")
    return messages


def _choose_history(config: AgentConfig, conversation: Sequence[Json]) -> list[Json]:
    """Return the messages of the conversation that a model is shown, the user's turn last."""
    others = [message for message in conversation if message["role"] != "system" and not is_empty(message)]
    return last_turns(others, config.max_history_messages)


def _write_system(
    config: AgentConfig,
    texts: Json,
    variables: dict[str, str],
    conversation: Sequence[Json],
    history: Sequence[Json],
    words: Words,
    examples: ShownExamples,
) -> str:
    """Return the system text, fixed parts first so that prefix caches hit."""
    leading = [message["content"] for message in conversation if message["role"] == "system"]
    variables = {
        **variables,
        "conversation_history": "\n".join(f"{m['role']}: {m['content']}" for m in history[:-1]),
        "user_message": history[-1]["content"] if history else "",
    }
    protocol = [render(texts[name], variables) for name in (["plan"] if config.mode == "plan" else ["system", "react"])]
    if config.answer_schema is not None:
        protocol.append(render(texts["answer"], {"answer_schema": orjson.dumps(config.answer_schema).decode()}))
    documents = [words.document.format(label=each.label, text=shown_text(each)) for each in config.documents]
    shown = write_examples(config, texts, variables, examples)
    parts = [*protocol, config.system_prompt, *leading, config.developer_prompt, *documents, *shown]
    return "\n\n".join(filter(None, parts))


def _variables(config: AgentConfig, tools: Policies, limits: LimitsRecord, words: Words) -> dict[str, str]:
    """Return what templates may name of the run itself."""
    return {
        "tool_definitions": tool_definitions(tools, words, brief=config.prompts == "small"),
        "limits": describe_limits(limits, words, timeout=config.timeout),
        "max_steps": _show_limit(config.max_steps, words),
        "max_tool_calls": _show_limit(config.max_tool_calls, words),
        "observation_max_len": _show_limit(config.observation_max_len, words),
    }


def _is_small(config: AgentConfig, known: ModelInfo | None) -> bool:
    """Return whether the model is a small one. It gets examples as turns of the conversation, since it calls no tool
    that it has only read of; and temperature 0 if its author sets none, since a step by chance leads it astray."""
    return config.prompts == "small" or is_small(config.model) or bool(known and known.small)


def _at_its_temperature(config: AgentConfig, *, small: bool) -> AgentConfig:
    if small and "temperature" not in config.model_fields_set:
        return config.model_copy(update={"temperature": 0.0})
    return config


def _show_limit(value: int | None, words: Words) -> str:
    return str(value) if value else words.unlimited


@lru_cache
def installed_version() -> str:
    """Return the version of the installed distribution."""
    try:
        return version("agent-core")
    except PackageNotFoundError:
        return "0"

"""AgentExecutor: one turn of a conversation with an agent of the catalogue, as one run of the agent loop."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

from agent_core.agents.catalog import AgentCatalog
from agent_core.agents.errors import AgentError, MaxStepsExceeded, ModelCallFailed
from agent_core.agents.result import ConversationResult, read_result
from agent_core.agents.turn import narrow_limits
from agent_core.errors import DefinitionError
from agent_core.journal.control import Decisions
from agent_core.journal.store import Journal
from agent_core.models.client import ModelClient
from agent_core.outputs import Json
from agent_core.run.answer_type import Answer, AnswerReader, AnswerType
from agent_core.run.event_stream import stream_events
from agent_core.run.events import Event, StreamResult
from agent_core.run.node import run_agent
from agent_core.run.row_listener import Observe
from agent_core.run.secrets import Secrets
from utools.defaults import default_registry
from utools.registry import ToolRegistry

RAISED: Mapping[str, type[AgentError]] = {"max_steps": MaxStepsExceeded, "model_error": ModelCallFailed}
"""Finish reasons that are an error here."""


@dataclass(frozen=True, slots=True)
class ConversationOptions:
    """What one turn differs in from the agent's own policy.

    `conversation_history` are the messages before this turn. `max_steps` 0 and `temperature` None are the agent's own;
    a temperature of 0 is 0. `base_path` is the directory that file tools see, inside that of the host.
    `max_tool_calls` and `max_tokens` (read and written), unless 0 or None, narrow the agent's own limits.
    `conversation` is the id of the stored conversation that the turn belongs to, for the record.
    """

    conversation_history: Sequence[Json] = ()
    max_steps: int = 0
    temperature: float | None = None
    base_path: str | os.PathLike[str] | None = None
    max_tool_calls: int | None = None
    max_tokens: int | None = None
    conversation: str | None = None


class AgentExecutor:
    """Talks with the agents of a catalogue.

    Args:
        catalog: The agents.
        root: The directory of the host, below which the `base_path` of a turn is.
        tools_at: Makes the registry of a turn for its directory; by default that of the built-in tools. A program that
            has its tools in one registry gives `lambda directory: registry`.
        model: A client or `provider:name`, which answers for every agent; by default their own models do.
        journal: A journal, its file's path or its database's URL, in which all turns are recorded; by default their
            records end with the process.
        secrets: What tools may read of the environment.
        observe: Gives what follows each turn for telemetry.
    """

    def __init__(
        self,
        catalog: AgentCatalog,
        *,
        root: str | os.PathLike[str] = ".",
        tools_at: Callable[[Path], ToolRegistry] = default_registry,
        model: ModelClient | str | None = None,
        journal: Journal | str | os.PathLike[str] | None = None,
        secrets: Secrets | None = None,
        observe: Observe | None = None,
    ) -> None:
        self.catalog = catalog
        self._root = Path(root).resolve()
        self._tools_at, self._has_usual_tools = lru_cache(tools_at), tools_at is default_registry
        self.journal = journal
        self._model, self._secrets, self._observe = model, secrets, observe

    @overload
    async def execute_conversation(
        self,
        agent_name: str,
        user_message: str,
        options: ConversationOptions | None = None,
        *,
        answer_schema: AnswerType[Answer] | None = None,
        run_id: str | None = None,
        decisions: Decisions | None = None,
        by: str = "caller",
        deps: object = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> ConversationResult[Answer]: ...
    @overload
    async def execute_conversation(
        self,
        agent_name: str,
        user_message: str,
        options: ConversationOptions | None = None,
        *,
        answer_schema: Mapping[str, Any],
        run_id: str | None = None,
        decisions: Decisions | None = None,
        by: str = "caller",
        deps: object = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> ConversationResult[Any]: ...
    async def execute_conversation(
        self,
        agent_name: str,
        user_message: str,
        options: ConversationOptions | None = None,
        *,
        answer_schema: AnswerType[Any] | Mapping[str, Any] | None = None,
        run_id: str | None = None,
        decisions: Decisions | None = None,
        by: str = "caller",
        deps: object = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> ConversationResult[Any]:
        """Let an agent answer a message; a turn that waits for a person continues under its `run_id`, with `decisions`
        that `by` made. `answer_schema` and `deps` are as of `run_agent`.

        AgentNotFound, and MaxStepsExceeded and ModelCallFailed with the result as far as it got; DefinitionError for a
        base_path outside the host's root and for messages that are none; AnswerError for an answer that its type
        refuses. A cancelled caller cancels the run.
        """
        options, reader = options or ConversationOptions(), AnswerReader.of(answer_schema)
        if not isinstance(options, ConversationOptions):
            raise DefinitionError("must be ConversationOptions(…)", where="options", value=options)
        if not user_message and not decisions:  # the agent would answer the message before it once more
            raise DefinitionError("must be a text that is not empty", where="user_message", value=user_message)
        config, note = self.catalog.config_of(agent_name)
        overrides = _overrides(options, config)
        told: Json = {**note, "overrides": sorted(overrides)}
        if options.conversation is not None:
            told["conversation"] = options.conversation
        history, tools = list(options.conversation_history), self._tools_at(self._directory(options.base_path))
        self._check_offered(config, tools)
        output = await run_agent(
            reader.add_to({**config, **overrides, "messages_json": history, "prompt": user_message, "agent": told}),
            registry=tools,
            model=self._model,
            journal=self.journal,
            run_id=run_id,
            decisions=decisions,
            by=by,
            deps=deps,
            on_event=on_event,
            secrets=self._secrets,
            observe=self._observe,
        )
        result: ConversationResult[Any] = read_result(agent_name, output)
        if error := RAISED.get(output.finish_reason):
            message = output.error["message"] if output.error else output.finish_reason
            raise error(f"agent {agent_name!r}: {message}", result)
        return replace(result, output=reader.read(output))

    @overload
    def stream_conversation(
        self,
        agent_name: str,
        user_message: str,
        options: ConversationOptions | None = None,
        *,
        answer_schema: AnswerType[Answer] | None = None,
        run_id: str | None = None,
        decisions: Decisions | None = None,
        by: str = "caller",
        deps: object = None,
    ) -> AsyncGenerator[Event | StreamResult[ConversationResult[Answer]], None]: ...
    @overload
    def stream_conversation(
        self,
        agent_name: str,
        user_message: str,
        options: ConversationOptions | None = None,
        *,
        answer_schema: Mapping[str, Any],
        run_id: str | None = None,
        decisions: Decisions | None = None,
        by: str = "caller",
        deps: object = None,
    ) -> AsyncGenerator[Event | StreamResult[ConversationResult[Any]], None]: ...
    def stream_conversation(
        self,
        agent_name: str,
        user_message: str,
        options: ConversationOptions | None = None,
        *,
        answer_schema: AnswerType[Any] | Mapping[str, Any] | None = None,
        run_id: str | None = None,
        decisions: Decisions | None = None,
        by: str = "caller",
        deps: object = None,
    ) -> AsyncGenerator[Event | StreamResult[ConversationResult[Any]], None]:
        """Yield the events of `execute_conversation` as they happen, and last `{"event": "result", "result": …}`.

        To stop iterating cancels the run, as with `stream_agent`. What `execute_conversation` raises, the iteration
        raises: a turn without an answer too.
        """
        return stream_events(
            lambda hear: self.execute_conversation(
                agent_name,
                user_message,
                options,
                answer_schema=answer_schema,
                run_id=run_id,
                decisions=decisions,
                by=by,
                deps=deps,
                on_event=hear,
            )
        )

    def _check_offered(self, config: Json, tools: ToolRegistry) -> None:
        """DefinitionError for a tool that the catalogue knows, where the executor was not told how to make it."""
        allowed = [each if isinstance(each, str) else each["tool"] for each in config["allowed_tools"]]
        lacking = [code for code in allowed if code in self.catalog.codes and code not in tools]
        if lacking and self._has_usual_tools:
            message = f"the catalogue knows the tool {lacking[0]!r}, and the executor has the built-in ones alone"
            raise DefinitionError(f"{message}: give it tools_at=lambda directory: registry", where="tools_at")

    def _directory(self, base_path: str | os.PathLike[str] | None) -> Path:
        directory = (self._root / (base_path or "")).resolve()
        if not directory.is_relative_to(self._root):
            raise DefinitionError(f"must lie inside {self._root}", where="base_path", value=str(base_path))
        if not directory.is_dir():
            raise DefinitionError("there is no such directory", where="base_path", value=str(base_path))
        return directory


def _overrides(options: ConversationOptions, config: Json) -> Json:
    """Return the keys of the agent's config that the turn sets otherwise."""
    given = narrow_limits(config, options.max_tool_calls, options.max_tokens)
    if options.max_steps:
        given["max_steps"] = options.max_steps
    if options.temperature is not None:
        given["temperature"] = options.temperature
    return given

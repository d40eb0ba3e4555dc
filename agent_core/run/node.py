"""The node: one agent run for a program, `run_agent` and its kin, and the same as the tool `agent_core`."""

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import Any, overload

from agent_core.config import AgentConfig
from agent_core.journal.control import Decisions
from agent_core.journal.store import Journal
from agent_core.models.client import ModelClient
from agent_core.outputs import Json
from agent_core.run.agent_drive import CODE, drive_agent
from agent_core.run.agent_output import OUTPUT, AgentOutput
from agent_core.run.answer_type import Answer, AnswerReader, AnswerType
from agent_core.run.arguments import model_of, open_journal
from agent_core.run.cancellation import in_own_task
from agent_core.run.event_listener import EventListener
from agent_core.run.event_stream import stream_events
from agent_core.run.events import Event, StreamResult
from agent_core.run.row_listener import Observe
from agent_core.run.secrets import Secrets
from agent_core.run.sync import run_sync
from utools.registry import ToolRegistry
from utools.tool import Args, Tool, ToolContext, ToolResult
from utools.words.text import Text


@overload
async def run_agent(
    config: Mapping[str, Any] | AgentConfig,
    *,
    registry: ToolRegistry | Iterable[Tool],
    answer_schema: AnswerType[Answer] | None = None,
    model: ModelClient | str | None = None,
    journal: Journal | str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    decisions: Decisions | None = None,
    deps: object = None,
    on_event: Callable[[Event], None] | None = None,
    secrets: Secrets | None = None,
    by: str = "caller",
    observe: Observe | None = None,
) -> AgentOutput[Answer]: ...
@overload
async def run_agent(
    config: Mapping[str, Any] | AgentConfig,
    *,
    registry: ToolRegistry | Iterable[Tool],
    answer_schema: Mapping[str, Any],
    model: ModelClient | str | None = None,
    journal: Journal | str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    decisions: Decisions | None = None,
    deps: object = None,
    on_event: Callable[[Event], None] | None = None,
    secrets: Secrets | None = None,
    by: str = "caller",
    observe: Observe | None = None,
) -> AgentOutput[Any]: ...
async def run_agent(
    config: Mapping[str, Any] | AgentConfig,
    *,
    registry: ToolRegistry | Iterable[Tool],
    answer_schema: AnswerType[Any] | Mapping[str, Any] | None = None,
    model: ModelClient | str | None = None,
    journal: Journal | str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    decisions: Decisions | None = None,
    deps: object = None,
    on_event: Callable[[Event], None] | None = None,
    secrets: Secrets | None = None,
    by: str = "caller",
    observe: Observe | None = None,
) -> AgentOutput[Any]:
    """Run one agent to its outcome, or on from where its journal ends.

    An unfinished `run_id` (or unfinished JSONL file) continues, a finished one gives its output without acting.
    `registry` may be a list of tools. `model`, a client or `provider:name`, answers every question; without it the
    config's `provider:name` does. `journal` may be a file's path, JSONL (.jsonl) or SQLite (.db, .sqlite, .sqlite3), or
    the URL of a PostgreSQL database.
    `answer_schema` is the type of the final answer, which is then an object of it: a pydantic model, a dataclass, a
    TypedDict, a TypeAdapter; of a JSON Schema it is JSON. Without one, and without one in the config, it is a text.
    `deps` is an object that the tools get as `context.deps`; it is neither recorded nor shown to the model, and each
    call of this function that goes on with a run gives its own.
    `decisions` are a person's decisions on what waits, by (strand, n), and `by` names who decided. `observe` gives what
    follows the run for telemetry. Raises DefinitionError for a bad config, or for another config than the run began
    with, DecisionError for a decision that fits nothing, JournalError when the journal cannot be used, AnswerError for
    an answer that its type refuses, though it fits the schema, NoEventLoop outside an event loop of asyncio. A
    cancelled caller cancels the run, whose journal then ends as any other's.
    """
    reader = AnswerReader.of(answer_schema)
    with open_journal(journal) as opened:
        output = await in_own_task(
            drive_agent(
                reader.add_to(config),
                ToolRegistry.from_tools(registry),
                model_of(model),
                opened,
                run_id,
                decisions,
                secrets or Secrets(),
                by,
                deps=deps,
                listener=EventListener(on_event) if on_event else None,
                observe=observe,
            )
        )
    return reader.read(output)


@overload
def run_agent_sync(
    config: Mapping[str, Any] | AgentConfig,
    *,
    registry: ToolRegistry | Iterable[Tool],
    answer_schema: AnswerType[Answer] | None = None,
    model: ModelClient | str | None = None,
    journal: Journal | str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    decisions: Decisions | None = None,
    deps: object = None,
    on_event: Callable[[Event], None] | None = None,
    secrets: Secrets | None = None,
    by: str = "caller",
    observe: Observe | None = None,
) -> AgentOutput[Answer]: ...
@overload
def run_agent_sync(
    config: Mapping[str, Any] | AgentConfig,
    *,
    registry: ToolRegistry | Iterable[Tool],
    answer_schema: Mapping[str, Any],
    model: ModelClient | str | None = None,
    journal: Journal | str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    decisions: Decisions | None = None,
    deps: object = None,
    on_event: Callable[[Event], None] | None = None,
    secrets: Secrets | None = None,
    by: str = "caller",
    observe: Observe | None = None,
) -> AgentOutput[Any]: ...
def run_agent_sync(
    config: Mapping[str, Any] | AgentConfig,
    *,
    registry: ToolRegistry | Iterable[Tool],
    answer_schema: AnswerType[Any] | Mapping[str, Any] | None = None,
    model: ModelClient | str | None = None,
    journal: Journal | str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    decisions: Decisions | None = None,
    deps: object = None,
    on_event: Callable[[Event], None] | None = None,
    secrets: Secrets | None = None,
    by: str = "caller",
    observe: Observe | None = None,
) -> AgentOutput[Any]:
    """`run_agent` for a caller without an event loop; inside one, it runs in a thread of its own."""
    return run_sync(
        lambda: run_agent(
            config,
            registry=registry,
            answer_schema=answer_schema,
            model=model,
            journal=journal,
            run_id=run_id,
            decisions=decisions,
            deps=deps,
            on_event=on_event,
            secrets=secrets,
            by=by,
            observe=observe,
        )
    )


@overload
def stream_agent(
    config: Mapping[str, Any] | AgentConfig,
    *,
    registry: ToolRegistry | Iterable[Tool],
    answer_schema: AnswerType[Answer] | None = None,
    model: ModelClient | str | None = None,
    journal: Journal | str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    decisions: Decisions | None = None,
    deps: object = None,
    secrets: Secrets | None = None,
    by: str = "caller",
    observe: Observe | None = None,
) -> AsyncGenerator[Event | StreamResult[AgentOutput[Answer]], None]: ...
@overload
def stream_agent(
    config: Mapping[str, Any] | AgentConfig,
    *,
    registry: ToolRegistry | Iterable[Tool],
    answer_schema: Mapping[str, Any],
    model: ModelClient | str | None = None,
    journal: Journal | str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    decisions: Decisions | None = None,
    deps: object = None,
    secrets: Secrets | None = None,
    by: str = "caller",
    observe: Observe | None = None,
) -> AsyncGenerator[Event | StreamResult[AgentOutput[Any]], None]: ...
def stream_agent(
    config: Mapping[str, Any] | AgentConfig,
    *,
    registry: ToolRegistry | Iterable[Tool],
    answer_schema: AnswerType[Any] | Mapping[str, Any] | None = None,
    model: ModelClient | str | None = None,
    journal: Journal | str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    decisions: Decisions | None = None,
    deps: object = None,
    secrets: Secrets | None = None,
    by: str = "caller",
    observe: Observe | None = None,
) -> AsyncGenerator[Event | StreamResult[AgentOutput[Any]], None]:
    """Yield the events of `run_agent` as they happen, and last `{"event": "result", "result": …}` with its output.

    The run begins with the iteration and never waits for it. To stop iterating cancels the run; `contextlib.aclosing`
    around the iterator waits for its end there.
    """
    return stream_events(
        lambda hear: run_agent(
            config,
            registry=registry,
            answer_schema=answer_schema,
            model=model,
            journal=journal,
            run_id=run_id,
            decisions=decisions,
            deps=deps,
            on_event=hear,
            secrets=secrets,
            by=by,
            observe=observe,
        )
    )


def agent_tool(registry: ToolRegistry | Iterable[Tool], model: ModelClient | str | None = None) -> Tool:
    """Return the tool `agent_core`: as a workflow's node, or as another agent's tool, it is a run in a child strand,
    whose tools get the `deps` of the run that it is nested in."""
    registry, model = ToolRegistry.from_tools(registry), model_of(model)

    async def execute(args: Args, context: ToolContext) -> ToolResult:
        output = await run_agent(args, registry=registry, model=model, deps=context.deps)
        success = output.finish_reason == "final"
        error = None if success else Text("ended by {reason}", reason=output.finish_reason)
        return ToolResult(success, output.model_dump(), error)

    return Tool(
        code=CODE,
        description="Let an agent work on a task of its own with the tools it is allowed, and give its answer.",
        config_schema=_node_schema(),
        output_schema=OUTPUT,
        execute=execute,
        effect="nested",
        foreign=True,
    )


def _node_schema() -> Json:
    """Return the ConfigSchema: a model that calls an agent sends it a prompt; every other key is the author's."""
    schema = AgentConfig.model_json_schema()
    authored = {name: {**rule, "x-author": True} for name, rule in schema["properties"].items() if name != "prompt"}
    prompt = {**schema["properties"]["prompt"], "description": "The task."}
    told = {key: value for key, value in schema.items() if key not in ("title", "description")}
    return {**told, "properties": {"prompt": prompt, **authored}}

"""The node: one agent run for a caller, `run_agent` and `run_agent_sync`."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, overload

from agent_core.config import AgentConfig
from agent_core.journal.control import Decisions
from agent_core.journal.store import Journal
from agent_core.models.client import ModelClient
from agent_core.run.agent_drive import drive_agent
from agent_core.run.agent_output import AgentOutput
from agent_core.run.answer_type import Answer, AnswerReader, AnswerType
from agent_core.run.arguments import model_of, open_journal
from agent_core.run.cancellation import in_own_task
from agent_core.run.event_listener import EventListener, check_callback
from agent_core.run.events import Event
from agent_core.run.row_listener import Observe
from agent_core.run.secrets import Secrets
from agent_core.run.sync import run_sync
from utools.registry import ToolRegistry
from utools.tool import Tool

# `AgentOutput[Answer]` is written as a text: made at import, it is a class of pydantic, some 15 ms.


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
) -> "AgentOutput[Answer]": ...
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
) -> AgentOutput: ...
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
) -> AgentOutput:
    """Run one agent to its outcome, or on from where its journal ends.

    A cancelled caller cancels the run, whose journal then ends as any other's.

    Args:
        config: The agent: its model, its tools, its limits, its prompt.
        registry: A registry, or tools, of which `allowed_tools` of the config names those that it may call.
        answer_schema: The type of the final answer, which is then an object of it: a pydantic model, a dataclass, a
            TypedDict, a TypeAdapter; of a JSON Schema it is JSON. Without one, and without one in the config, it is a
            text.
        model: A client or `provider:name`, which answers every question; by default the config's `provider:name`.
        journal: A journal; a file's path, JSONL (.jsonl) or SQLite (.db, .sqlite, .sqlite3); or the URL of a PostgreSQL
            database. By default the records end with the process.
        run_id: The run's id. An unfinished one (or an unfinished JSONL file) continues, a finished one gives its output
            without acting.
        decisions: A person's decisions on what waits, by (strand, n).
        deps: An object that the tools get as `context.deps`; it is neither recorded nor shown to the model, and each
            call that goes on with a run gives its own.
        on_event: Called with each event, in the event loop.
        secrets: What tools may read of the environment.
        by: Who decided.
        observe: Gives what follows the run for telemetry.

    Returns:
        The output, however the run ended: only `finish_reason: final` is a success. Its `answer` is of the type that
            `answer_schema` names, also for type checkers: `run_agent(…, answer_schema=Verdict)` gives an
            `AgentOutput[Verdict]`.

    Raises:
        DefinitionError: A config that cannot be run, or another one than the run began with.
        DecisionError: A decision that fits nothing that waits.
        JournalError: A journal that cannot be used.
        AnswerError: An answer that its type refuses, though it fits the schema.
        NoEventLoop: The caller is outside an event loop of asyncio.

    Example:
        ```python
        import asyncio

        from agent_core import run_agent, run_agent_sync
        from agent_core.models import ScriptedModel
        from utools import tool


        @tool(effect="read")
        def stock(article: str) -> int:
            '''Count an article.'''
            return 12


        config = {"model": "scripted", "max_steps": 3, "allowed_tools": ["stock"], "prompt": "How many A-17 are there?"}
        replies = ['{"type":"action","tool":"stock","args":{"article":"A-17"}}', '{"type":"final","answer":"12."}']
        output = asyncio.run(run_agent(config, registry=[stock], model=ScriptedModel(replies)))
        assert output.final_answer == "12."
        output = run_agent_sync(config, registry=[stock], model=ScriptedModel(replies))
        assert output.used_tools["stock"]["count"] == 1
        ```
    """
    if on_event is not None:
        check_callback(on_event)
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
) -> "AgentOutput[Answer]": ...
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
) -> AgentOutput: ...
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
) -> AgentOutput:
    """Do what `run_agent` does, for a caller without an event loop; inside one, in a thread of its own.

    It returns and raises what `run_agent` does.

    Args:
        config: The agent: its model, its tools, its limits, its prompt.
        registry: A registry, or tools, of which the config names those that the agent may call.
        answer_schema: The type of the final answer.
        model: A client or `provider:name`, which answers every question.
        journal: A journal, or its path or URL.
        run_id: The run's id.
        decisions: A person's decisions on what waits, by (strand, n).
        deps: An object that the tools get as `context.deps`.
        on_event: Called with each event.
        secrets: What tools may read of the environment.
        by: Who decided.
        observe: Gives what follows the run for telemetry.

    Example:
        ```python
        from agent_core import run_agent_sync
        from agent_core.models import ScriptedModel

        config = {"model": "scripted", "max_steps": 2, "allowed_tools": [], "prompt": "What is an oasis?"}
        model = ScriptedModel(['{"type":"final","answer":"A spring in the desert."}'])
        assert run_agent_sync(config, registry=[], model=model).answer == "A spring in the desert."
        ```
    """
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

"""stream_agent: the events of an agent's run, as they happen."""

import os
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any, overload

from agent_core.config import AgentConfig
from agent_core.journal.control import Decisions
from agent_core.journal.store import Journal
from agent_core.models.client import ModelClient
from agent_core.run.agent_output import AgentOutput
from agent_core.run.answer_type import Answer, AnswerType
from agent_core.run.event_stream import stream_events
from agent_core.run.events import Event, StreamResult
from agent_core.run.node import run_agent
from agent_core.run.row_listener import Observe
from agent_core.run.secrets import Secrets
from utools.registry import ToolRegistry
from utools.tool import Tool


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
) -> "AsyncGenerator[Event | StreamResult[AgentOutput[Answer]], None]": ...
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
) -> AsyncGenerator[Event | StreamResult[AgentOutput], None]: ...
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
) -> AsyncGenerator[Event | StreamResult[AgentOutput], None]:
    """Yield the events of `run_agent` as they happen, and last `{"event": "result", "result": …}` with its output.

    The run begins with the iteration and never waits for it. To stop iterating cancels the run; `contextlib.aclosing`
    around the iterator waits for its end there. What `run_agent` raises, the iteration raises.

    Args:
        config: The agent: its model, its tools, its limits, its prompt.
        registry: A registry, or tools, of which the config names those that the agent may call.
        answer_schema: The type of the final answer.
        model: A client or `provider:name`, which answers every question.
        journal: A journal, or its path or URL.
        run_id: The run's id.
        decisions: A person's decisions on what waits, by (strand, n).
        deps: An object that the tools get as `context.deps`.
        secrets: What tools may read of the environment.
        by: Who decided.
        observe: Gives what follows the run for telemetry.

    Example:
        ```python
        import asyncio

        from agent_core import stream_agent
        from agent_core.models import ScriptedModel

        config = {"model": "scripted", "max_steps": 2, "allowed_tools": [], "prompt": "What is an oasis?"}
        model = ScriptedModel(['{"type":"final","answer":"A spring in the desert."}'])


        async def main():
            return [event async for event in stream_agent(config, registry=[], model=model)]


        *_, last = asyncio.run(main())
        assert last["event"] == "result" and last["result"].answer == "A spring in the desert."
        ```
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

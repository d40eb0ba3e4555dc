"""measure(): runs the cases, each as one agent run with a journal, and scores them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent_core.journal.memory import MemoryJournal
from agent_core.journal.store import Journal
from agent_core.models.client import Completion, Delta, ModelClient, ModelInfo, Question
from agent_core.run.node import run_agent
from agent_core.run.prepare import prepare_agent
from agent_core.run.run_id import new_run_id
from agent_core.run.secrets import Secrets
from engine_shim.evals.cases import Case, World
from engine_shim.evals.score import Scored, score
from engine_shim.evals.world import build_registry, write_files

QUIET = {"temperature": 0, "timeout": 0, "single_call_timeout": 600, "trace_max_bytes": 0}
"""Where it differs from the node's defaults: it measures what the model knows, not how fast or lucky it is."""


async def measure(
    cases: Sequence[Case],
    world: World,
    *,
    model: ModelClient,
    name: str = "scripted",
    settings: Mapping[str, Any] | None = None,
    repeat: int = 1,
    concurrency: int = 1,
    journal: Journal | None = None,
    secrets: Secrets | None = None,
    on_scored: Callable[[Scored], None] = lambda scored: None,
) -> list[Scored]:
    """Every case `repeat` times with a seed of its own each, `concurrency` at once; `on_scored` gets each as it ends.

    A script is asked by the case's id as its strand. `settings` are keys of the node's config; DefinitionError for
    one that is wrong, before any model is asked.
    """
    with TemporaryDirectory(prefix="agent-core-eval-") as home:
        write_files(world, Path(home))
        registry = build_registry(world, Path(home))
        journal = MemoryJournal() if journal is None else journal
        limit = asyncio.Semaphore(concurrency)

        def config_of(case: Case, seed: int) -> dict[str, Any]:
            tools = [tool.code for tool in registry.all()] if case.tools is None else case.tools
            config = {"max_steps": case.max_steps, "seed": seed, **QUIET, **(settings or {})}
            return config | {"model": name, "allowed_tools": tools, "prompt": case.message, "language": case.language}

        async def run(case: Case, seed: int) -> Scored:
            config = config_of(case, seed)
            async with limit:
                asking, run_id = ModelOfCase(model, case.id), new_run_id()
                output = await run_agent(
                    config, registry=registry, model=asking, journal=journal, run_id=run_id, secrets=secrets
                )
            scored = score(case, output.model_dump())
            on_scored(scored)
            return scored

        for case in cases:
            prepare_agent("", "agent", config_of(case, 0), {}, registry=registry, at="")
        return await asyncio.gather(*(run(case, seed) for seed in range(repeat) for case in cases))


class ModelOfCase:
    """A model that is asked with the case's id as the strand."""

    def __init__(self, model: ModelClient, case: str) -> None:
        self._model, self._case = model, case

    async def complete(self, question: Question) -> Completion:
        return await self._model.complete(replace(question, strand=self._case))

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        async with aclosing(self._model.stream(replace(question, strand=self._case))) as pieces:
            async for piece in pieces:
                yield piece

    def info(self) -> ModelInfo:
        return self._model.info()

    async def close(self) -> None:
        """The model is the caller's, who closes it."""

"""measure(): runs the cases, each as one agent run with a journal, and scores them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent_core.audit.refusals import find_refused
from agent_core.config import AgentConfig
from agent_core.journal.memory import MemoryJournal
from agent_core.journal.reader import read_tape
from agent_core.journal.store import Journal
from agent_core.models.client import Completion, Delta, ModelClient, ModelInfo, Question
from agent_core.run.node import run_agent
from agent_core.run.prepare import prepare_agent
from agent_core.run.run_id import new_run_id
from agent_core.run.secrets import Secrets
from engine_shim.definition.errors import Problem, problems_in, refuse
from engine_shim.errors import DefinitionError
from engine_shim.evals.cases import Case
from engine_shim.evals.fixtures import write_files
from engine_shim.evals.recorded import find_writes, with_whole_args
from engine_shim.evals.score import Scored, score
from engine_shim.evals.suite import Suite
from utools.registry import ToolRegistry

USUAL = {"max_steps": 6, "temperature": 0, "timeout": 0, "single_call_timeout": 600}
"""Where it differs from the node's defaults: it measures what the model knows, not how fast or lucky it is."""
USUAL_LENGTH: int = AgentConfig.model_fields["observation_max_len"].default


async def measure(
    suite: Suite,
    *,
    model: ModelClient,
    name: str = "scripted",
    settings: Mapping[str, Any] | None = None,
    repeat: int = 1,
    concurrency: int = 1,
    journal: Journal | None = None,
    secrets: Secrets | None = None,
    on_started: Callable[[Case], None] = lambda case: None,
    on_scored: Callable[[Scored], None] = lambda scored: None,
) -> list[Scored]:
    """Return every case `repeat` times with a seed of its own each, `concurrency` at once.

    `on_started` gets each case as it begins, `on_scored` each run as it ends.

    A script is asked by the case's name as its strand. `settings` are keys of the node's config; DefinitionErrors for
    one that is wrong, before any model is asked.
    """
    with TemporaryDirectory(prefix="agent-core-eval-") as home:
        write_files(suite.world, Path(home))
        shared = suite.build_registry({}, Path(home))
        registries = {
            case.name: suite.build_registry(case.canned, Path(home)) if case.canned else shared for case in suite.cases
        }
        journal = MemoryJournal() if journal is None else journal
        limit = asyncio.Semaphore(concurrency)

        def config_of(case: Case, seed: int) -> dict[str, Any]:
            config = {**USUAL, **suite.config_for(case, registries[case.name]), "seed": seed, **(settings or {})}
            return {**config, "model": name, "trace_max_bytes": 0}

        async def run(case: Case, seed: int) -> Scored:
            config, registry = config_of(case, seed), registries[case.name]
            async with limit:
                on_started(case)
                asking, run_id = ModelOfCase(model, case.name), new_run_id()
                output = await run_agent(
                    config, registry=registry, model=asking, journal=journal, run_id=run_id, secrets=secrets
                )
            facts = list(read_tape(journal.load(run_id), {"run_started", "asked", "decided"}))
            longest = config.get("observation_max_len", USUAL_LENGTH)
            trace = with_whole_args(output.trace, facts, output.journal["strand"], longest)
            ended = {**output.model_dump(), "trace": trace}
            scored = score(case, ended, refused=find_refused(facts), written=find_writes(facts))
            on_scored(scored)
            return scored

        refuse(fault for case in suite.cases for fault in _faults(case, config_of, registries[case.name], suite.lines))
        runs = [asyncio.ensure_future(run(case, seed)) for seed in range(repeat) for case in suite.cases]
        try:
            return await asyncio.gather(*runs)
        except Exception:  # such as a journal that cannot be written: the others would fail by it unheard
            for each in runs:
                each.cancel()
            await asyncio.gather(*runs, return_exceptions=True)
            raise


def _faults(
    case: Case, config_of: Callable[[Case, int], dict[str, Any]], registry: ToolRegistry, lines: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield why the agent of a case could not be started."""
    try:
        prepare_agent("", "agent", config_of(case, 0), {}, registry=registry, at="")
    except DefinitionError as error:
        for each in problems_in(error):
            yield Problem(f"{lines.get(case.name, case.name)}: {each.where}", each.message)


class ModelOfCase:
    """A model that is asked with the case's name as the strand."""

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

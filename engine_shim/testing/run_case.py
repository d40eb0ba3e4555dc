"""run_case(): one case of a test file as a run of its own, in memory, with mocks in place of what reaches outside."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent_core.audit.refusals import find_refused
from agent_core.decisions import decode_decision
from agent_core.errors import AgentCoreError
from agent_core.journal.control import calls_for_person
from agent_core.journal.path import node_of
from agent_core.journal.reader import read_tape
from agent_core.models.client import Completion, ModelClient, ModelError, Question
from agent_core.models.providers import Providers
from agent_core.models.scripted import ScriptedModel
from agent_core.statuses import ENDED
from engine_shim.definition.errors import DefinitionErrors
from engine_shim.definition.model import AGENT
from engine_shim.errors import DefinitionError, EngineError
from engine_shim.host.providers import open_providers
from engine_shim.runs.agents import build_catalog
from engine_shim.runs.drive import RunResult
from engine_shim.runs.engine import Engine
from engine_shim.store.run_store_memory import MemoryRunStore
from engine_shim.testing.cases import FlowCase
from engine_shim.testing.expectations import find_made, find_mismatches
from engine_shim.testing.load import FlowTests
from engine_shim.testing.mocks import mock_host

BY = "test"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What came of a case. `mismatches` say what was expected otherwise; it passed without any."""

    name: str
    seconds: float
    mismatches: list[str] = field(default_factory=list)
    result: RunResult | None = None

    @property
    def passed(self) -> bool:
        return not self.mismatches


class RepliesByNode(ScriptedModel):
    """Answers from a list for each node, which all its visits go through, or for a strand. A list alone is for all
    that is asked, in turn."""

    def __init__(self, replies: Sequence[Any] | Mapping[str, Sequence[Any]]) -> None:
        by_key = replies if isinstance(replies, Mapping) else {"": replies}
        super().__init__(by_key)
        self._lengths = {key: len(each) for key, each in by_key.items()}
        self._given = dict.fromkeys(by_key, 0)

    async def complete(self, question: Question) -> Completion:
        return await super().complete(self._placed(question))

    def _placed(self, question: Question) -> Question:
        """Return the question with the key of its list as the strand, and its place in that list. ModelError where the
        case has no reply to it."""
        asker = node_of(question.strand) or question.strand
        for key in (question.strand, node_of(question.strand), ""):
            if key in self._lengths:
                index, length = self._given[key], self._lengths[key]
                self._given[key] += 1
                if index >= length:
                    told = f"{asker} asks again after the last of its {length} `replies`; add one to this case"
                    raise ModelError(told if length else f"the case has no `replies` for {asker}", requests=0)
                return replace(question, strand=key, index=index)
        raise ModelError(f"the case has no `replies` for {asker}", requests=0)

    def explain_left(self) -> Iterator[str]:
        """Yield whose replies are left: a question may have gone from the workflow unseen."""
        for key, length in self._lengths.items():
            if (given := self._given[key]) < length:
                asked = f"{key} asked for {given} of its" if key else f"the models asked for {given} of the"
                yield f"expected a question for each of the `replies`, and {asked} {length}"


async def run_case(tests: FlowTests, case: FlowCase) -> CaseResult:
    """Run one case, and compare what came with what it expects. A case that cannot be run has failed."""
    began = time.monotonic()
    try:
        result, mismatches = await _run(tests, case)
    except DefinitionErrors as error:
        result, mismatches = None, [str(each) for each in error.problems]
    except (AgentCoreError, DefinitionError, EngineError) as error:
        result, mismatches = None, [str(error)]
    return CaseResult(case.name, time.monotonic() - began, mismatches, result)


async def _run(tests: FlowTests, case: FlowCase) -> tuple[RunResult, list[str]]:
    host = mock_host(tests.workflow, tests.tools, case.mock, [each.name for each in case.signals])
    providers = open_providers(tests.host, tests.path.parent)
    store, model = MemoryRunStore(), _choose_model(tests, case, providers)
    engine = Engine(
        host.tools,
        store=store,
        model=model,
        secrets=tests.host.secrets(),
        base_urls=tests.host.base_urls,
        default_provider=tests.host.default_provider,
        agents=build_catalog(tests.host, host.tools),
    )
    try:
        result = await engine.run(host.workflow, external=case.inputs)
        for signal in case.signals:
            if engine.status(result.run_id) in ENDED:
                break
            if engine.send_signal(result.run_id, signal.name, signal.data, by=BY):
                result = await engine.resume(result.run_id, by=BY)
        unasked: list[str] = []
        for decided in case.decisions:
            if not (calls := calls_for_person(result.waiting)):
                unasked.append(decided.decision)
                continue
            call, decision = calls[0], decode_decision(decided.model_dump())
            result = await engine.resume(result.run_id, decisions={(call["strand"], call["n"]): decision}, by=BY)
    finally:
        await providers.close()
    facts = read_tape(store.journal.load(result.run_id))
    mismatches = [*_explain_unmocked(host.unmocked)]
    mismatches += find_mismatches(case, result.as_json(), find_made(facts), find_refused(facts))
    mismatches += model.explain_left() if isinstance(model, RepliesByNode) else ()
    return result, [*mismatches, *_explain_unasked(unasked), *_explain_unsent(host.unsent)]


def _choose_model(tests: FlowTests, case: FlowCase, providers: Providers) -> ModelClient | None:
    """Return what answers in place of all models; None where the workflow names scripts or recorded runs alone."""
    if case.model is not None:
        return providers(case.model, {})
    if case.replies is not None:
        return RepliesByNode(case.replies)
    models = [node.config.get("model") for node in tests.workflow.nodes.values() if node.tool == AGENT]
    is_offline = all(isinstance(each, str) and each.startswith(("scripted:", "replay:")) for each in models)
    return None if is_offline else RepliesByNode({})


def _explain_unmocked(tools: list[str]) -> Iterator[str]:
    for tool in dict.fromkeys(tools):
        yield f"{tool} was called, and writes: mock it, as in mock: {{{tool}: {{output: …}}}}"


def _explain_unasked(decisions: list[str]) -> Iterator[str]:
    """Yield that nobody was asked: an approval may have gone from the workflow unseen."""
    if decisions:
        yield f"expected a call to wait for each of the `decisions`, and none waited for {', '.join(decisions)}"


def _explain_unsent(signals: Counter[str]) -> Iterator[str]:
    """Yield that nobody waited: a node that does may have gone from the workflow unseen."""
    if left := [name for name, times in signals.items() for _ in range(times)]:
        yield f"expected a node to wait for each of the `signals`, and none waited for {', '.join(left)}"

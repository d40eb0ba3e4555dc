"""TestModel: calls every allowed tool once, with arguments made from its schema, and answers."""

from collections.abc import Mapping
from typing import Any, Final

from agent_core.loop.judge import list_faults
from agent_core.loop.reading import READ_OBSERVATION
from agent_core.models.client import ModelError, Question
from agent_core.outputs import Json
from agent_core.protocol.parse import Action, Plan, PlanStep
from agent_core.protocol.parse import Final as Answer
from agent_core.testing.legal_args import NoLegalValue, find_faults, make_answer, make_args
from agent_core.testing.stand_in import Reply, StandIn, must_answer
from agent_core.words.catalogue import ENGLISH

UNSET: Final = object()


class TestModel(StandIn):
    """Calls the tools of the whitelist one after the other, each once, and answers then, or when it has to.

    The arguments are made from each tool's schema and what the node narrows it to (`args`): what is required, and no
    more. `args` gives those of a tool in their place, by its code. The answer is `answer`, else made from the
    `answer_schema`, else a sentence that names the tools. In plan mode the calls are the steps of one plan. A tool
    whose arguments cannot be made ends the run with `model_error`, which names it.
    """

    __test__ = False  # pytest takes a class of this name for tests

    def __init__(self, *, args: Mapping[str, Json] | None = None, answer: Any = UNSET, name: str = "test") -> None:
        super().__init__(name)
        self._args, self._answer = args or {}, answer

    async def answer(self, question: Question) -> Reply:
        """Return the next call, a plan of all calls, or the answer; raises ModelError."""
        tools = {code: tool for code, tool in question.tools.items() if code != READ_OBSERVATION}
        self._check_args(question.strand, tools)
        if must_answer(question) or question.index >= (1 if _plans(question) and tools else len(tools)):
            return Answer(self._make_answer(question, list(tools)))
        if _plans(question):
            steps = [PlanStep(n, code, code, self._make_args(code, tools[code])) for n, code in enumerate(tools, 1)]
            return Plan(tuple(steps))
        code = list(tools)[question.index]
        return Action(code, self._make_args(code, tools[code]))

    def _check_args(self, strand: str, tools: Mapping[str, Any]) -> None:
        """ModelError for arguments of a tool that an agent alone does not have; of several, another may have it."""
        unknown = [code for code in self._args if code not in tools]
        if unknown and "/" not in strand and all(tool["effect"] != "nested" for tool in tools.values()):
            known = ", ".join(tools) or "none"
            raise _error(f"TestModel has args for {unknown[0]!r}, which the run does not allow; it allows {known}")

    def _make_args(self, code: str, policy: Mapping[str, Any]) -> Json:
        if code in self._args:
            args = self._args[code]
            if faults := find_faults(policy, args):
                raise _error(f"TestModel has args for {code!r} that it does not take: {list_faults(faults, ENGLISH)}")
            return args
        try:
            return make_args(policy)
        except NoLegalValue as error:
            give = f"give them by TestModel(args={{{code!r}: {{…}}}})"
            raise _error(f"TestModel can make no arguments of the tool {code!r}: {error}; {give}") from None

    def _make_answer(self, question: Question, codes: list[str]) -> Any:
        if self._answer is not UNSET:
            return self._answer
        schema = question.config.get("answer_schema")
        if schema is None:
            return f"The test model has called {', '.join(codes)}." if codes else "The test model has called nothing."
        try:
            return make_answer(schema)
        except NoLegalValue as error:
            give = "give it by TestModel(answer=…)"
            raise _error(f"TestModel can make no answer for the answer_schema: {error}; {give}") from None


def _plans(question: Question) -> bool:
    return question.config.get("mode") == "plan"


def _error(message: str) -> ModelError:
    return ModelError(message, requests=0)

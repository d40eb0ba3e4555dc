"""Operations: what begins and ends in a run, as its records tell it, before anybody says how to show it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from agent_core.effects import ModelReply
from agent_core.journal.facts import Answered, Call, Fact, RecordedRun

Kind = Literal["invoke_workflow", "invoke_agent", "plan", "chat", "execute_tool"]
"""The names that the semantic conventions give to operations."""


@dataclass(frozen=True, slots=True)
class Source:
    """Whose operations they are: a run, its tenant, and the provider of models that are named without one."""

    run: str
    tenant: str = ""
    default_provider: str = "openai"


class Place(NamedTuple):
    """Where an operation begins: a record, and which of its operations, where one record begins two."""

    path: str
    n: int
    part: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a run. `name` is that of the workflow, agent, model or tool.

    `workflow` and `agent` are the innermost ones that it belongs to, itself included; empty where there is none.
    `began` is when a run began; the records do not say it of other operations. `run` is the workflow or agent itself,
    or that which asks; `call` is the call of a tool, and `step` the agent's step.
    """

    kind: Kind
    name: str
    place: Place
    parent: Place | None
    workflow: str = ""
    agent: str = ""
    conversation: str | None = None
    began: str | None = None
    run: RecordedRun | None = None
    call: Call | None = None
    step: int | None = None

    @property
    def is_nested(self) -> bool:
        """Whether it is the call of a run of its own, whose operations are told as well."""
        return self.call is not None and self.call.effect == "nested"

    @property
    def config(self) -> Mapping[str, Any]:
        """The config of its agent; empty for a workflow."""
        return {} if self.run is None else self.run.config


@dataclass(frozen=True, slots=True)
class Ended:
    """How an operation ended. `error` is a kind of failure, None for a success; `message` may hold content.

    `seconds` is how long it took, `at` when a record says that it ended; None where no record does. `fact` is what the
    record that ends it says. `steps` counts the steps of an agent's run.
    """

    operation: Operation
    fact: Fact
    error: str | None = None
    message: str | None = None
    seconds: float | None = None
    at: str | None = None
    steps: int = 0

    @property
    def reply(self) -> ModelReply | None:
        """The reply of a model, where it ends by one."""
        answer = self.fact.answer if isinstance(self.fact, Answered) else None
        return answer if isinstance(answer, ModelReply) else None


@dataclass(frozen=True, slots=True)
class Began:
    """An operation has begun."""

    operation: Operation


Change = Began | Ended

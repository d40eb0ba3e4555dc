"""ConversationResult: what came of one turn with an agent."""

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Generic

from typing_extensions import TypedDict, TypeVar

from agent_core.outputs import Json
from agent_core.protocol.clip import as_text
from agent_core.run.agent_output import AgentOutput

Answer = TypeVar("Answer", default=Any)


class ToolCount(TypedDict):
    """How often a turn called a tool."""

    tool_name: str
    count: int


class TurnUsage(TypedDict):
    """The tokens of a turn, by the names of OpenAI's API."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


@dataclass(frozen=True)
class ConversationResult(Generic[Answer]):
    """What came of one turn. `content` is the answer, empty without one; `messages` go into the next turn's history.

    `steps` counts model replies; `tool_calls` are {tool_name, count}, `usage` {prompt_tokens, completion_tokens,
    total_tokens}. `output` is the node's, with the trace, the finish reason and what waits for a person.
    """

    content: str
    messages: list[Json]
    steps: int
    tool_calls: list[ToolCount]
    usage: TurnUsage
    agent_name: str
    start_time: datetime
    end_time: datetime
    output: "AgentOutput[Answer]" = field(repr=False)

    @property
    def final_answer(self) -> Answer | None:
        """The answer, of the type that was asked for by `answer_schema`; None without one."""
        return self.output.final_answer

    def as_json(self) -> Json:
        """Return the result as a JSON object, without the node's output."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "output"}
        return {**own, "start_time": self.start_time.isoformat(), "end_time": self.end_time.isoformat()}


def read_result(agent_name: str, output: "AgentOutput[Answer]") -> ConversationResult[Answer]:
    """Return the result in a run's output."""
    usage = output.usage
    return ConversationResult(
        content="" if output.final_answer is None else as_text(output.final_answer),
        messages=output.messages_json,
        steps=max((step["step"] for step in output.trace), default=0),
        tool_calls=[{"tool_name": code, "count": used["count"]} for code, used in output.used_tools.items()],
        usage={
            "prompt_tokens": usage["input_tokens"],
            "completion_tokens": usage["output_tokens"],
            "total_tokens": usage["total_tokens"],
        },
        agent_name=agent_name,
        start_time=datetime.fromisoformat(output.started_at),
        end_time=datetime.fromisoformat(output.ended_at),
        output=output,
    )

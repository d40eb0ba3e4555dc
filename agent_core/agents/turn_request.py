"""TurnRequest: a turn of a stored conversation, as it is asked for or was recorded, and what is stored of it."""

from dataclasses import dataclass, field, replace

from agent_core.agents.conversation import ConversationOptions
from agent_core.agents.history import mark_messages
from agent_core.agents.result import ConversationResult
from agent_core.errors import DecisionError
from agent_core.journal.control import Decisions
from agent_core.journal.record import Tape
from agent_core.outputs import Json
from agent_core.run.agent_drive import ROOT
from agent_core.run.answer_type import AnswerReader
from utools.context.turns import Turn


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One turn that is asked for. `answer` reads its answer, `deps` is what its tools get."""

    agent: str
    message: str
    conversation: str
    run: str
    options: ConversationOptions
    decisions: Decisions | None = None
    by: str = "caller"
    answer: AnswerReader = field(default_factory=AnswerReader)
    deps: object = None


def read_start(tape: Tape) -> Json:
    rows = tape.get(ROOT)
    return rows[0].record() if rows else {}


def as_recorded(tape: Tape, asked: TurnRequest) -> TurnRequest:
    """Return the turn with the history and the limits that its run began with. DecisionError for another
    conversation's."""
    started = read_start(tape)
    note = started.get("agent", {})
    if note.get("conversation") != asked.conversation:
        raise DecisionError(f"run {asked.run!r} is no turn of the conversation {asked.conversation!r}")
    config = started["config"]
    options = ConversationOptions(
        conversation_history=config["messages_json"] or (),
        max_tool_calls=config["max_tool_calls"],
        max_tokens=config["total_token_budget"],
        conversation=asked.conversation,
    )
    answer = asked.answer if asked.answer.schema is not None else AnswerReader(config.get("answer_schema"))
    return replace(asked, options=options, answer=answer)


def stored_turn_of(result: ConversationResult) -> Turn:
    """Return what is stored of a turn: its messages, if it has ended, and cost or did anything."""
    output = result.output
    if output.waiting or not (output.usage["total_tokens"] or output.used_tools) or output.finish_reason == "paused":
        return []
    start = max(at for at, each in enumerate(result.messages) if each["role"] == "user")
    return mark_messages(result.messages[start:], output.run_id)


def least_of(limit: int | None, left: int) -> int:
    return min(limit, left) if limit else left

"""What plugins share: decisions as an engine carries them, and the failure of a run as an exception."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_core.decisions import Decision, decode_decision, encode_decision
from agent_core.errors import Damaged, DecisionError, DefinitionError, Unreadable
from agent_core.journal.control import Decisions
from agent_core.journal.store import Journal
from agent_core.node import list_waiting_sync
from agent_core.outputs import Json, WaitingCall
from agent_core.run.agent_output import AgentOutput


class AgentRunFailed(Exception):
    """An agent's run ended without an answer, and a retry gives the same. `run_id` is in the journal."""

    def __init__(self, run_id: str, finish_reason: str, message: str) -> None:
        super().__init__(run_id, finish_reason, message)
        self.run_id, self.finish_reason = run_id, finish_reason

    def __str__(self) -> str:
        return f"run {self.run_id} ended by {self.finish_reason}: {self.args[2]}"


class AgentRunLetGo(Exception):
    """An attempt was over before its run, which goes on in the next attempt."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)

    def __str__(self) -> str:
        return f"run {self.args[0]} goes on in the next attempt"


FINAL_ERRORS: Final = (AgentRunFailed, DefinitionError, DecisionError, Damaged, Unreadable)
"""What no retry mends."""


def encode_decisions(output: Mapping[str, Any], decisions: Mapping[int, Decision]) -> list[Json]:
    """Return decisions as JSON, by the place of each call in the `waiting` of an output. DecisionError for a place
    where none is."""
    waiting: Sequence[WaitingCall] = output["waiting"]
    for index in decisions:
        if index not in range(len(waiting)):
            message = f"no call waits at place {index!r}: {len(waiting)} wait, and the first has place 0"
            raise DecisionError(message, where="decisions")
    return [
        {"strand": waiting[index]["strand"], "n": waiting[index]["n"], **encode_decision(decision)}
        for index, decision in decisions.items()
    ]


def read_decisions(told: Sequence[Json]) -> Decisions:
    """Return decisions by (strand, n); the inverse of `encode_decisions`."""
    return {(each["strand"], each["n"]): decode_decision(each) for each in told}


def place_decisions(decisions: Sequence[Json], waiting: Sequence[Json]) -> list[Json]:
    """Return decisions with the place of the call that each is for: its own, else that of the call in its order.
    DecisionError for more of them than calls."""
    if len(decisions) > len(waiting):
        message = (
            f"there are {len(decisions)} decisions, and {len(waiting)} calls that wait: give one for each, in order"
        )
        raise DecisionError(message, where="decision")
    return [{"strand": call["strand"], "n": call["n"], **each} for call, each in zip(waiting, decisions, strict=False)]


def still_waits(run_id: str, journal: Journal) -> bool:
    """Return whether something waits in a run; nothing does in one that cannot be read any more, as its next attempt
    says."""
    try:
        return bool(list_waiting_sync(run_id, journal=journal))
    except (Damaged, Unreadable):
        return False


def give_output(output: AgentOutput) -> Json:
    """Return the outputs of the node as JSON, with their `status`. AgentRunFailed where the run failed or was
    cancelled, AgentRunLetGo where the attempt was over before it."""
    if output.status == "paused":
        raise AgentRunLetGo(output.run_id)
    if output.status in ("failed", "cancelled"):
        message = "" if output.error is None else output.error["message"]
        raise AgentRunFailed(output.run_id, output.finish_reason, message)
    return {"status": output.status, **output.model_dump(mode="json")}

"""RunCalls: which calls a run made, which were refused, and how it ended, by its journal or its output."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from agent_core.audit.refusals import Refusal, find_refused
from agent_core.journal.control import last_control, waiting_calls
from agent_core.journal.facts import Call, Fact, RunFinished, RunStarted
from agent_core.journal.reader import read_tape
from agent_core.journal.record import Tape
from agent_core.journal.source import Source, load_run
from agent_core.loop.trace import LEFT_OUT
from agent_core.outputs import Json
from agent_core.run.agent_output import AgentOutput
from agent_core.testing.recorded_model import is_tape

Run = AgentOutput | Source | Tape | tuple[Source, str]
"""The output of `run_agent`; a journal, the path of its file, the rows or the tape of a run; or one of these with the
id of the run, where there are several."""
UNKNOWN = "?"
"""The reason of a refusal that the run's output does not have."""


class MadeCall(NamedTuple):
    """A call that was let through: its tool, and what the model sent."""

    tool: str
    args: Json


@dataclass(frozen=True, slots=True)
class RunCalls:
    """`made` are the calls in their order, `refused` those that were refused or wait for a person. `ending` is how the
    run ended, or what it waits for: an agent's finish reason, a workflow's status; None for a run in between.
    `unclear` says of a tool why an output alone does not tell its calls; `cut` are those whose arguments
    it may lack."""

    made: Sequence[MadeCall]
    refused: Sequence[Refusal]
    ending: str | None
    answer: Any = None
    error: str | None = None
    unclear: Mapping[str, str] = field(default_factory=dict[str, str])
    cut: Collection[str] = ()


def read_calls(run: Run) -> RunCalls:
    """Return what a run did. JournalError when there is no such run, or it cannot be read."""
    if isinstance(run, AgentOutput):
        return _of_output(run)
    if is_tape(run):
        return _of_tape(run)
    match run:
        case (source, str(run_id)):
            return _of_tape(load_run(cast(Source, source), run_id)[1])
        case _:
            return _of_tape(load_run(run)[1])


def _of_tape(tape: Tape) -> RunCalls:
    facts = read_tape(tape)
    made = [MadeCall(fact.tool, fact.args) for fact in facts if isinstance(fact, Call)]
    ends = [fact for fact in facts if isinstance(fact, RunFinished)]
    roots = [end for end in ends if "/" not in end.strand]
    if not roots:
        return RunCalls(made, find_refused(facts), _find_rest(tape, facts))
    last = roots[-1]
    error = last.error["message"] if last.error else None
    return RunCalls(made, find_refused(facts), last.reason, last.answer, error)


def _find_rest(tape: Tape, facts: Sequence[Fact]) -> str | None:
    """Return why a run rests that has not ended, as its output says it."""
    if last_control(tape) == "pause":
        return "paused"
    waiting = waiting_calls(tape)
    if not waiting:
        return None
    is_workflow = any(isinstance(each, RunStarted) and each.begun.definition for each in facts)
    return "waiting" if is_workflow else waiting[0]["reason"]


def _of_output(output: AgentOutput) -> RunCalls:
    """Return what the trace shows. A call that it shows with an error has failed, or was refused: `used_tools` counts
    those that were let through."""
    shown = [(each["action"], each["error"]) for each in output.trace if each["action"] is not None]
    unclear = {tool: why for tool in output.used_tools if (why := _find_unclear(tool, shown, output))}
    made, refused = list[MadeCall](), list[Refusal]()
    for action, error in shown:
        tool, args = action["tool"], action["args"]
        used = output.used_tools.get(tool, {"count": 0})["count"]
        if error is None or used == _count(tool, shown):
            made.append(MadeCall(tool, args))
        else:
            refused.append(Refusal(tool, args, UNKNOWN))
    refused += [Refusal(each["tool"], each["args"], each["reason"]) for each in output.waiting]
    error = output.error["message"] if output.error else None
    cut = {action["tool"] for action, _ in shown if not action["args"]} if _may_lack_arguments(output) else ()
    return RunCalls(made, refused, output.finish_reason, output.final_answer, error, unclear, cut)


def _may_lack_arguments(output: AgentOutput) -> bool:
    """Return whether a trace may have been shortened by arguments, too: before them, each observation is left out."""
    observations = [each["observation"] for each in output.trace if each["observation"] is not None]
    return LEFT_OUT in observations and all(len(each.encode()) <= len(LEFT_OUT.encode()) for each in observations)


def _count(tool: str, shown: Sequence[tuple[Any, str | None]]) -> int:
    return sum(action["tool"] == tool for action, _ in shown)


def _find_unclear(tool: str, shown: Sequence[tuple[Any, str | None]], output: AgentOutput) -> str:
    """Return why the trace does not tell which calls of a tool were let through; empty where it does."""
    used = output.used_tools[tool]["count"]
    errors = [error for action, error in shown if action["tool"] == tool]
    if used > len(errors):
        return f"calls of {tool} are not in the output, whose trace was shortened to `trace_max_bytes`"
    if used not in (len(errors), errors.count(None)):
        return f"some calls of {tool} failed and others were refused, and the output does not say which"
    return ""

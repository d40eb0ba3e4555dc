"""example_of_run(): a recorded run as an example in a prompt: its request, its successful calls, its answer. Pure."""

from agent_core.errors import DefinitionError
from agent_core.journal.facts import RunFinished
from agent_core.journal.reader import find_agents, leave_nested, read_run, read_strands
from agent_core.journal.record import Tape
from agent_core.loop.reading import READ_OBSERVATION
from agent_core.outputs import Json
from agent_core.protocol.clip import as_text, clip
from engine_shim.evals.from_run import find_question
from engine_shim.evals.recorded import find_calls

LONGEST = 500
"""Characters of an output that an example shows whole."""


def example_of_run(tape: Tape) -> Json:
    """Return an entry of an agent's `examples`. DefinitionError for a run that did not end with an answer, and for one
    of several agents, or of none."""
    strands = read_strands(tape)
    agents = leave_nested(find_agents(strands))
    if len(agents) != 1:
        fault = f"an example is made of the run of one agent, and there are {', '.join(agents)}"
        fault = fault if agents else "no agent ran in this run, and an example shows what one did"
        raise DefinitionError(fault, where="run")
    (path,) = agents
    end = strands[path][-1]
    if not (isinstance(end, RunFinished) and end.reason == "final"):
        why = f"ended by {end.reason}" if isinstance(end, RunFinished) else "has not ended"
        raise DefinitionError(f"it {why}, and an example shows how a task is done", where=path)
    _, user = find_question(read_run(tape, path).config, path)
    made = [each for each in find_calls(strands, path) if each.tool != READ_OBSERVATION]
    calls = [
        {
            "tool": each.tool,
            "args": each.args,
            "output": each.output if len(as_text(each.output)) <= LONGEST else clip(as_text(each.output), LONGEST),
        }
        for each in made
        if each.succeeded
    ]
    return {"user": user, "calls": calls, "answer": end.answer}

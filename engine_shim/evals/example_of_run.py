"""example_of_run(): a recorded run as an example in a prompt: its request, its successful calls, its answer. Pure."""

from agent_core.errors import DefinitionError
from agent_core.journal.record import Tape
from agent_core.loop.reading import READ_OBSERVATION
from agent_core.protocol.clip import as_text, clip
from engine_shim.evals.from_run import Json, find_agent, find_question
from engine_shim.evals.recorded import find_made

LONGEST = 500
"""Characters of an output that an example shows whole."""


def example_of_run(tape: Tape, strand: str | None = None) -> Json:
    """An entry of an agent's `examples`. DefinitionError for a run that did not end with an answer."""
    path = find_agent(tape, strand)
    records = [row.record() for row in tape[path]]
    ending = records[-1].get("finish_reason")
    if ending != "final":
        why = "has not ended" if ending is None else f"ended by {ending}"
        raise DefinitionError(f"it {why}, and an example shows how a task is done", where=path)
    _, user = find_question(records[0]["config"], path)
    made = [each for each in find_made(tape, path) if each.tool != READ_OBSERVATION]
    done = [(each, each.answer["output"]) for each in made if each.answer is not None and each.answer.get("success")]
    calls = [
        {
            "tool": each.tool,
            "args": each.args,
            "output": output if len(as_text(output)) <= LONGEST else clip(as_text(output), LONGEST),
        }
        for each, output in done
    ]
    return {"user": user, "calls": calls, "answer": records[-1]["final_answer"]}

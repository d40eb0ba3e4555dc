"""How a workflow is asked by the messages of a conversation, and which of its outputs is the answer. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_core.outputs import Json
from agent_core.protocol.clip import as_text
from engine_shim.definition.model import AGENT, Definition
from engine_shim.definition.outputs import inputs_shape
from engine_shim.definition.template import read_whole

MESSAGES: Final = "messages"
TEXT: Final = "message"
ANSWER: Final = "answer"


def find_text_input(definition: Definition) -> str | None:
    """Return the input that takes the last message's text; None for a workflow that needs anything else.

    It is the only text that has to be given, or else the one called `message`. An input `messages` gets all of them.
    """
    inputs = definition.inputs or {}
    properties = inputs.get("properties", {})
    required = set(inputs.get("required", ())) - {MESSAGES}
    names = required or ({TEXT} if TEXT in properties else set())
    if len(names) != 1:
        return None
    (name,) = names
    kinds = inputs_shape(definition).at(name).kinds()
    return name if not kinds or "string" in kinds else None


def external_of_messages(definition: Definition, name: str, messages: Sequence[Json]) -> Json:
    """Return the run's inputs for a conversation whose last message is the user's; `name` is its input for a text."""
    takes_all = MESSAGES in (definition.inputs or {}).get("properties", {})
    return {name: messages[-1]["content"], **({MESSAGES: list(messages)} if takes_all else {})}


def find_answering_node(definition: Definition) -> str | None:
    """Return the agent whose answer is that of the workflow, as far as the definition says."""
    declared, agents = definition.outputs, [node.id for node in definition.nodes if node.tool == AGENT]
    if declared:
        template = declared.get(ANSWER, next(iter(declared.values())) if len(declared) == 1 else None)
        whole = read_whole(template) if isinstance(template, str) else None
        match None if whole is None else whole.path:
            case ("nodes", str(agent), "final_answer") if agent in agents:
                return agent
        return None
    return agents[0] if len(agents) == 1 else None


def find_streamed_node(definition: Definition) -> str | None:
    """Return the agent whose answer is shown as it is written; None where there is none, and for an answer of a type:
    what the model writes of it is not what is given in the end."""
    agent = find_answering_node(definition)
    configs = (node.config for node in definition.nodes if node.id == agent)
    return None if any(config.get("answer_schema") for config in configs) else agent


def read_answer(definition: Definition, outputs: Mapping[str, Any], path: Sequence[str]) -> str:
    """Return the answer among the outputs of a run that has completed: the declared `answer`, the only declared output,
    or all of them as JSON; where none is declared, the agent's answer, or the output of the last node."""
    declared = definition.outputs
    if declared:
        chosen = ANSWER if ANSWER in declared else next(iter(declared)) if len(declared) == 1 else None
        return as_text(outputs[chosen] if chosen else {name: outputs[name] for name in declared})
    agent = find_answering_node(definition)
    if agent is not None and agent in outputs:
        return as_text(outputs[agent]["final_answer"])
    return as_text(outputs[path[-1]]) if path else ""

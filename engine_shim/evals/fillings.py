"""find_fillings(): the inputs and nodes' outputs that filled an agent's config in a recorded run. Pure."""

from collections.abc import Mapping
from typing import Any

from agent_core.journal.path import parent_of
from agent_core.journal.reader import read_run
from agent_core.journal.record import Tape
from agent_core.outputs import Json
from engine_shim.definition.template import placeholders


def find_fillings(tape: Tape, strand: str, config: Mapping[str, Any], outputs: Mapping[str, Any]) -> Json:
    """Return the `inputs` and `nodes` of a case, of which only what the placeholders in `config` read.

    `strand` is the agent's, `outputs` are those of its workflow's nodes. What the run had not is left out.
    """
    flow = parent_of(strand)
    external = read_run(tape, flow).external if flow in tape else {}
    found = {"external": external, "nodes": outputs}
    kept: Json = {"external": {}, "nodes": {}}
    for _, each in placeholders(dict(config)):
        if each.path[0] in kept:
            _keep(kept, found, each.path)
    return {key: kept[root] for key, root in (("inputs", "external"), ("nodes", "nodes")) if kept[root]}


def _keep(kept: Json, found: Mapping[str, Any], path: tuple[str, ...]) -> None:
    """Add the value at a path, if there is one; of a list all items."""
    name, *below = path
    if name not in found:
        return
    value = found[name]
    if below and isinstance(value, Mapping):
        _keep(kept.setdefault(name, {}), value, tuple(below))
    else:
        kept[name] = value

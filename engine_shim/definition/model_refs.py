"""The models that a definition names, as far as that is known before it runs: where, and how each is reached. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from engine_shim.definition.model import AGENT, Definition, Node
from engine_shim.definition.template import read_placeholders
from engine_shim.definition.uses import uses_of_node

ModelRef = tuple[str, str, dict[str, Any]]
"""Where a model is named, its name, and the options that it is reached by."""
STAND_INS: dict[str, Any] = {
    "model": "probe",
    "max_steps": 1,
    "allowed_tools": [],
    "prompt": "probe",
    "messages_json": [{"role": "user", "content": "probe"}],
}
"""Values in place of the ones that placeholders give only in a run."""


def model_refs(definition: Definition) -> Iterator[ModelRef]:
    """Yield each model that the nodes name, and those that judge edges."""
    for index, node in enumerate(definition.nodes):
        yield from model_refs_of(node, f"nodes/{index}/config")
    asking = [(index, edge) for index, edge in enumerate(definition.edges or ()) if edge.ask]
    if definition.model is not None and any(edge.model is None for _, edge in asking):
        yield "model", definition.model, {}
    yield from ((f"edges/{index}/model", edge.model, {}) for index, edge in asking if edge.model is not None)


def model_refs_of(node: Node, where: str) -> Iterator[ModelRef]:
    """Yield each model that an agent's node names, for itself and for agents that are its tools."""
    for use in uses_of_node(node, where, (AGENT,)):
        if use.by_name:
            yield from _models_of(use.config, use.where)


def _models_of(config: Mapping[str, Any], where: str) -> Iterator[ModelRef]:
    """Yield the models of one agent; fallbacks are not reached by the options of the first. What is no text is a fault
    of its own, and names none."""
    known = known_config(config)
    if isinstance(known.get("model"), str) and known["model"] == config.get("model"):
        yield f"{where}/model", known["model"], known
    fallbacks = known.get("fallback_models")
    if not isinstance(fallbacks, list) or fallbacks != config.get("fallback_models"):
        return
    for index, name in enumerate(fallbacks):
        if isinstance(name, str):
            yield f"{where}/fallback_models/{index}", name, {}


def known_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return an agent's config before it runs, with stand-ins for what placeholders give later."""
    known = {key: value for key, value in config.items() if next(read_placeholders(value), None) is None}
    return {**{key: value for key, value in STAND_INS.items() if key in config}, **known}

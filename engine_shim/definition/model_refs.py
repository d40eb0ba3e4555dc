"""The models that a definition names for sure: where, and the options that each is reached by. Pure."""

from collections.abc import Iterator
from typing import Any

from engine_shim.definition.model import AGENT, Node, Workflow
from engine_shim.definition.validate import known_config

Asked = tuple[str, str, dict[str, Any]]
"""Where a model is named, its name, and the options it is reached by."""


def asked(workflow: Workflow) -> Iterator[Asked]:
    """Each model that the nodes name, and the edges'."""
    for index, node in enumerate(workflow.definition.nodes):
        yield from asked_by(node, f"nodes/{index}/config")
    model = workflow.definition.model
    if model is not None and any(edge.ask for edge in workflow.definition.edges or ()):
        yield "model", model, {}


def asked_by(node: Node, where: str) -> Iterator[Asked]:
    """Each model that an agent's node names; fallbacks are not reached by what is said of the first."""
    if node.tool != AGENT:
        return
    config = known_config(node)
    if config["model"] == node.config.get("model"):
        yield f"{where}/model", config["model"], config
    fallbacks = config.get("fallback_models") or ()
    for place, name in enumerate(fallbacks if fallbacks == node.config.get("fallback_models") else ()):
        yield f"{where}/fallback_models/{place}", name, {}

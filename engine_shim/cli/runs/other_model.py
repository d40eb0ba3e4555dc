"""with_model(): a workflow with one other model, for --model."""

from collections.abc import Mapping
from dataclasses import replace

import typer

from agent_core.config import OF_ITS_MODEL
from engine_shim.definition.load import Workflow, load_workflow
from engine_shim.definition.model import AGENT, Definition


def with_model(workflow: Workflow, model: str, limits: Mapping[str, int] | None = None) -> Workflow:
    """Return the same workflow with one other model in every agent node and judged edge, reached where its own name
    says.

    BadParameter for a workflow that asks no model.
    """
    if not asks_model(workflow.definition):
        message = f"--model {model!r}: no node of {workflow.definition.id!r} is an agent, so no model is asked"
        raise typer.BadParameter(message)
    data, given = workflow.as_json(), {"model": "--model"}
    for index, node in enumerate(data["nodes"]):
        if node["tool"] == AGENT:
            given[f"nodes/{index}/config/model"] = "--model"
            config = {key: value for key, value in node.get("config", {}).items() if key not in OF_ITS_MODEL}
            node["config"] = {**config, "model": model, **(limits or {})}
    for index, edge in enumerate(data.get("edges") or ()):
        if "model" in edge:
            given[f"edges/{index}/model"] = "--model"
            edge["model"] = model
    if "model" in data:
        data["model"] = model
    return replace(load_workflow(data, base=workflow.base), document=workflow.document, given=given)


def asks_model(definition: Definition) -> bool:
    """Return whether a definition names a model, for an agent or for an edge."""
    is_judged = definition.model is not None or any(edge.model is not None for edge in definition.edges or ())
    return is_judged or any(node.tool == AGENT for node in definition.nodes)

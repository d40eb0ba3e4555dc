"""with_model(): a workflow with one other model, for --model."""

from collections.abc import Mapping
from dataclasses import replace

import typer

from agent_core.config import OF_ITS_MODEL
from engine_shim.definition.load import Workflow, load_workflow
from engine_shim.definition.model import AGENT


def with_model(workflow: Workflow, model: str, limits: Mapping[str, int] | None = None) -> Workflow:
    """Return the same workflow with one other model in every agent node and judged edge, reached where its own name
    says.

    BadParameter for a workflow that asks no model.
    """
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
    elif len(given) == 1:
        raise typer.BadParameter(f"--model {model!r}: no node of {data['id']!r} is an agent, so no model is asked")
    return replace(load_workflow(data, base=workflow.base), document=workflow.document, given=given)

"""The README's table of the node's keys, as the schema describes them."""

import json

from agent_core.config import AgentConfig, PlanConfig


def config_table() -> str:
    """One row for each key: its default, and its description."""
    rows = [f"| `{key}` | {default} | {text} |" for key, default, text in config_rows()]
    return "\n".join(["| key | default | |", "|---|---|---|", *rows])


def config_rows() -> list[tuple[str, str, str]]:
    """(key, default, description) of each key, in the schema's order; `required` where a value is needed."""
    required = AgentConfig.model_json_schema()["required"]
    return [
        (name, "required" if name in required else _shown(field.default), str(field.description))
        for name, field in AgentConfig.model_fields.items()
    ]


def _shown(default: object) -> str:
    if default is None:
        return "–"
    if isinstance(default, PlanConfig):
        return f"`{json.dumps(default.model_dump())}`"
    return f"`{default}`" if isinstance(default, str) else str(default)

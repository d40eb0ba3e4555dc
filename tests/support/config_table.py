"""The tables of the node's keys, as the schema describes them, in the groups that the page shows."""

import json
import re

from agent_core.config import AgentConfig, PlanConfig
from engine_shim.web.bundle import STATIC

GROUPS = STATIC / "edit/agent_groups.js"


def config_table() -> str:
    """A table for each group of keys: the default, and the description."""
    rows = {key: f"| `{key}` | {default} | {text} |" for key, default, text in config_rows()}
    groups = [(title, [key for key in keys if key in rows]) for title, keys in _groups()]
    others = [key for key in rows if not any(key in keys for _, keys in groups)]
    tables = [
        "\n".join([f"| {title} | default | |", "|---|---|---|", *(rows[key] for key in keys)])
        for title, keys in [*groups, ("Other", others)]
        if keys
    ]
    return "\n\n".join(tables)


def _groups() -> list[tuple[str, list[str]]]:
    """The groups of the page, with their keys."""
    listed = re.search(r"GROUPS = (\[.*?\n\]);", GROUPS.read_text("utf-8"), re.DOTALL)
    assert listed is not None
    return [(title, keys) for title, keys, _ in json.loads(re.sub(r",\s*\]", "]", listed[1]))]


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

"""What a definition may do that its author may not mean: told by `validate`, and no reason not to run. Pure."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from agent_core.node import CODE as AGENT
from engine_shim.graph.definition import Workflow
from engine_shim.graph.problem import Problem

OPEN = "http_request"
TOLD = "may reach every public host; set allowed_domains to those that are meant"


def warnings(workflow: Workflow) -> Iterator[Problem]:
    """Each place at which a tool has more of the network than somebody wrote down."""
    for index, node in enumerate(workflow.definition.nodes):
        where = f"nodes/{index}/config"
        if node.tool == OPEN and "allowed_domains" not in node.config:
            yield Problem(f"{where}/allowed_domains", f"{OPEN} {TOLD}")
        entries = node.config.get("allowed_tools") if node.tool == AGENT else None
        for place, entry in enumerate(entries if isinstance(entries, list) else ()):
            if _is_open(entry):
                yield Problem(f"{where}/allowed_tools/{place}", f"{OPEN} {TOLD}, in its preset")


def _is_open(entry: Any) -> bool:
    """Whether an entry of the whitelist lets a model choose any public host."""
    pattern = entry.get("tool") if isinstance(entry, Mapping) else entry
    preset = entry.get("preset") if isinstance(entry, Mapping) else None
    bound = isinstance(preset, Mapping) and "allowed_domains" in preset
    return isinstance(pattern, str) and fnmatchcase(OPEN, pattern) and not bound

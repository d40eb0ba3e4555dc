"""What a small model wants of a workflow: an example of each tool that it is to call."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from agent_core.prompts.profile import is_small
from engine_shim.definition.errors import Problem
from engine_shim.definition.load import Workflow
from engine_shim.definition.model import AGENT
from engine_shim.definition.model_refs import known_config
from engine_shim.definition.uses import uses_of_node
from utools.registry import ToolRegistry


def find_missing_examples(workflow: Workflow, registry: ToolRegistry) -> Iterator[Problem]:
    """Yield the agents whose model is small by its name, and whose tools have no example to show it."""
    for index, node in enumerate(workflow.definition.nodes):
        for use in uses_of_node(node, f"nodes/{index}/config", (AGENT,)):
            config = known_config(use.config)
            if not is_small(str(config.get("model", ""))) or not _shows_examples(config):
                continue
            if lacking := [code for code in _list_tools(config, registry) if not registry.get(code).examples]:
                message = "a small model calls a tool far more surely once it has seen it called: give an example of"
                yield Problem(f"{use.where}/allowed_tools", f"{message} {', '.join(lacking)} (`examples` of the tool)")


def _shows_examples(config: Mapping[str, Any]) -> bool:
    """Return whether the model is shown the examples of its tools: those of the node stand in for them."""
    return config.get("examples") is None and config.get("protocol", "json") == "json"


def _list_tools(config: Mapping[str, Any], registry: ToolRegistry) -> list[str]:
    """Return the tools that an agent may call, as far as is known before it runs."""
    entries = config.get("allowed_tools")
    named = [each.get("tool") if isinstance(each, dict) else each for each in entries or () if each]
    denied = config.get("deny_tools") or ()
    codes = (tool.code for tool in registry.for_models())
    return [code for code in codes if _fits(code, named) and not _fits(code, denied)]


def _fits(code: str, globs: Any) -> bool:
    return any(isinstance(glob, str) and fnmatchcase(code, glob) for glob in globs)

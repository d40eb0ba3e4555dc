"""What a model reads before the conversation: of one tool, or of a workflow's agents."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from agent_core.agents.fill import fill_agents
from agent_core.prompts.tools import Described, tool_definitions
from agent_core.run.prepare import prepare_agent
from engine_shim.cli import output
from engine_shim.definition.load import load_workflow
from engine_shim.definition.model import AGENT
from engine_shim.definition.model_refs import known_config
from engine_shim.host.config import HostConfig
from engine_shim.runs.agents import build_catalog
from utools.registry import ToolRegistry
from utools.schema.config_schema import author_keys, visible

AS_WRITTEN = ("system_prompt", "developer_prompt", "prompt")
"""Texts that are shown with their placeholders."""
SPEAKERS = {"system": "system", "user": "user", "assistant": "model", "tool": "tool"}


class Prompt(NamedTuple):
    """What the agent of one node reads: its messages, and with native function calling its functions."""

    node: str
    messages: Sequence[Mapping[str, Any]]
    functions: Sequence[Mapping[str, Any]]


def show_tool_as_read(code: str, registry: ToolRegistry) -> int:
    """Write what a model reads of a tool under protocol: json, where the author binds nothing."""
    schema = registry._schema(code).schema
    shown: Described = {
        "visible": visible(schema, author_keys(schema)),
        "description": registry.get(code).description,
    }
    output.line(tool_definitions({code: shown}))
    return output.OK


def read_prompts(file: Path, host: HostConfig, registry: ToolRegistry) -> Iterator[Prompt]:
    """Yield what each agent of a workflow reads first. Placeholders are shown as they are written; a conversation that
    comes from another node is left out."""
    workflow, catalog = load_workflow(file), build_catalog(host, registry)
    for node in workflow.definition.nodes:
        if node.tool != AGENT:
            continue
        filled = fill_agents(node.config, catalog)
        texts = {key: filled[key] for key in AS_WRITTEN if isinstance(filled.get(key), str)}
        config = {**known_config(filled), **texts}
        body = prepare_agent("prompt", "agent", config, {}, registry=registry, at="", base=workflow.base)
        system, *history = body["messages"]
        given = history if "messages_json" not in filled else history[-1:] if "prompt" in texts else []
        yield Prompt(node.id, [system, *body.get("examples", ()), *given], body["options"].get("tools", ()))


def write_prompt(prompt: Prompt) -> None:
    """Write the messages and functions of one node as a person reads them."""
    output.line(f"== {prompt.node} ==")
    for message in prompt.messages:
        output.line(f"-- {SPEAKERS[message['role']]} --")
        calls = [orjson.dumps(call["function"]).decode() for call in message.get("tool_calls") or ()]
        for text in (message.get("content"), *calls):
            if text:
                output.line(text)
    for function in prompt.functions:
        output.line("-- function --")
        output.line(orjson.dumps(function["function"], option=orjson.OPT_INDENT_2).decode())

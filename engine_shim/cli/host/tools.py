"""The command tools: what this host offers, all that is known of one tool, and the approval of tools from elsewhere."""

import json
import logging
import re
import sys
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

import typer

from engine_shim.cli import output
from engine_shim.host.config import HostConfig
from engine_shim.host.find import load_host_config
from engine_shim.host.registry import build_registry, pinned_sources, undescribed_tools
from engine_shim.runs.prepare import with_runs
from utools.registry import ToolRegistry
from utools.sources.tool_lock_file import Change, Definition
from utools.tool import Tool

log = logging.getLogger("engine_shim")
BRIEF = 100
"""Characters of a description in a list."""


def list_tools(config: Path | None, *, as_json: bool) -> int:
    """List the tools of this host."""
    registry = tools_of(load_host_config(config))
    for message in undescribed_tools(registry):
        log.warning("%s", message)
    tools = registry.all()
    if as_json:
        output.document([{**_effect_as_data(tool), "description": tool.description} for tool in tools])
        return output.OK
    cells = [(tool.code, _describe_effect(tool), _shorten(tool.description)) for tool in tools]
    code, effect = (max(len(row[column]) for row in cells) for column in (0, 1))
    for row in cells:
        output.line(f"{row[0]:<{code}}  {row[1]:<{effect}}  {row[2]}".rstrip())
    return output.OK


def show_tool(code: str, config: Path | None, *, as_read: bool) -> int:
    """Write all that is known of one tool, or what a model reads of it."""
    registry = tools_of(load_host_config(config))
    if as_read:
        from engine_shim.cli.host.read_prompt import show_tool_as_read

        return show_tool_as_read(registry.get(code).code, registry)
    tool = registry.get(code)
    fields = {"code": tool.code, "description": tool.description, **_effect_as_data(tool)}
    more = {"output_schema": tool.output_schema, "fingerprint": tool.fingerprint}
    known = {key: value for key, value in more.items() if value is not None}
    output.document({**fields, "config_schema": registry._schema(code).schema, **known})
    return output.OK


def tools_of(host: HostConfig) -> ToolRegistry:
    """Return all tools of a host, those that are runs too."""
    return with_runs(build_registry(host), None)


def _effect_as_data(tool: Tool) -> dict[str, Any]:
    effect = "depends on its arguments" if callable(tool.effect) else tool.effect
    return {"code": tool.code, "effect": effect, "idempotent": tool.idempotent, "node_only": tool.node_only}


def _describe_effect(tool: Tool) -> str:
    """Return whether it reads or writes, and what else matters before it is allowed."""
    if tool.effect == "nested":
        return "run"
    decides = tool.effect["argument"] if isinstance(tool.effect, Mapping) else "its arguments"
    words: list[str] = [tool.effect if isinstance(tool.effect, str) else f"read or write, by {decides}"]
    words += ["idempotent"] if tool.idempotent and tool.effect != "read" else []
    words += ["nodes only"] if tool.node_only else []
    words += ["pinned"] if tool.fingerprint is not None else []
    return ", ".join(words)


def _shorten(description: str) -> str:
    """Return the first sentence, or as many words of it as a line holds."""
    sentence = re.split(r"(?<=[.!?])\s+(?=[A-Z`])|\n\s*\n", description.strip(), maxsplit=1)[0]
    text = " ".join(sentence.split())
    if len(text) <= BRIEF:
        return text
    return f"{text[: BRIEF - 1].rsplit(' ', 1)[0].rstrip(' ,;:')}…"


# ── approval ─────────────────────────────────────────────────────────────────────────────────────


def approve_tools(name: str | None, config: Path | None, *, yes: bool, as_json: bool) -> int:
    """Show what these sources, or all, offer otherwise than was approved, and approve it if the operator agrees."""
    sources = pinned_sources(load_host_config(config))
    chosen = [(each, [key for key in each.names if name in (None, key, f"{each.where}/{key}")]) for each in sources]
    if not any(keys for _, keys in chosen):
        known = ", ".join(f"{each.where}/{key}" for each in sources for key in each.names)
        why = f"there is no such source: {name}; there are {known}"
        raise typer.BadParameter(why if known else "no MCP server and no other host is configured")
    reviews = [source.review(*keys) for source, keys in chosen if keys]
    changes = [change for review in reviews for change in review.changes]
    if not as_json:
        for line in (line for change in changes for line in _describe_change(change)):
            output.line(line)
    if changes and not yes:
        if as_json or not sys.stdin.isatty():
            raise typer.BadParameter(
                "nothing was approved: read the changes, then approve them at a terminal or by --yes"
            )
        typer.confirm("Approve?", abort=True, err=True)
    for review in reviews:
        review.accept()
    found = [{"source": each.source, "tool": each.tool, "kind": each.kind} for each in changes]
    return output.answer({"approved": found}, f"approved; {output.count(len(changes), 'change')}", as_json=as_json)


def _describe_change(change: Change) -> Iterator[str]:
    """Yield a change, and what of the description and the schemas is new (+) and what is gone (-)."""
    yield f"{change.kind:<8} {change.source}: {change.tool}"
    before, after = ([] if each is None else _lines_of(each) for each in (change.before, change.after))
    if change.kind != "gone":
        for line in list(unified_diff(before, after, lineterm="", n=2))[2:]:
            if not line.startswith("@@"):
                yield f"  {line}"


def _lines_of(definition: Definition) -> list[str]:
    """Return what is approved of a tool, as lines that can be compared."""
    fields = definition.model_dump(exclude={"name", "description"}, exclude_defaults=True)
    return [*definition.description.splitlines(), *json.dumps(fields, indent=1, ensure_ascii=False).splitlines()[1:-1]]

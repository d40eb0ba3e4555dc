"""The graph of a definition as text for a terminal, as a Mermaid flowchart, and as data. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from engine_shim.definition.graph import Edge, Graph
from engine_shim.definition.model import AGENT, INVOKE, Definition, Node

WIDTH = 80
LONGEST_LABEL = 60
"""Characters of a line in a flowchart."""
_ESCAPES = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "\\": "#92;"}


# ── text ─────────────────────────────────────────────────────────────────────────────────────────


def draw_text(definition: Definition, graph: Graph) -> list[str]:
    """Lines of up to 80 characters: each node with what it does, then its edges in the order they are tried."""
    nodes = {node.id: node for node in definition.nodes}
    lines = [definition.name or definition.id]
    for name in graph.levels:
        mark = "▶" if name in graph.entries else " "
        tool, *details = _describe_node(nodes[name])
        edges = graph.outgoing[name]
        lines += ["", f"{mark} {name}  {tool}"]
        lines += [f"  {'│' if edges else ' '} {each}" for each in details]
        for edge in edges:
            corner = "└" if edge is edges[-1] else "├"
            arrow = "↺" if edge.back else "→"
            lines.append(f"  {corner}{arrow} {edge.target}  {_describe_edge(edge, edges, definition)}")
        if name in graph.ends:
            lines.append("  ■ end")
    return [_cut(line.rstrip(), WIDTH) for line in lines]


def _describe_node(node: Node) -> list[str]:
    """Return what a node calls, then its keys that change how it runs, one a line."""
    lines = [f"{node.tool} {node.config.get('workflow', '')}" if node.tool == INVOKE else node.tool]
    if node.foreach is not None:
        of = node.foreach if isinstance(node.foreach, str) else f"{len(node.foreach)} items"
        rest = ", goes on if one fails" if node.on_item_error == "continue" else ""
        lines.append(f"for each of {of}, {node.max_parallel} at once{rest}")
    if node.approval != "never":
        lines.append("waits for approval" + (" if it writes" if node.approval == "on_write" else ""))
    if node.tool == AGENT:
        lines += _describe_agent(node.config)
    if node.retry is not None:
        lines.append(f"up to {node.retry.max_attempts} attempts")
    if node.timeout:
        lines.append(f"at most {node.timeout:g} seconds")
    if node.on_error != "fail":
        lines.append(f"the run goes on if it fails{', and fails at its end' * (node.on_error == 'fail_at_end')}")
    return lines


def _describe_agent(config: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(model := config.get("model"), str):
        yield f"model {model}"
    entries = config.get("allowed_tools", [])
    if isinstance(entries, list):
        tools = f"tools {', '.join(map(_describe_tool, entries)) or 'none'}"
        yield from wrap(tools, LONGEST_LABEL, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _describe_tool(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    approval = entry.get("approval", "never")
    return f"{entry.get('tool')} (approval {approval})" if approval != "never" else str(entry.get("tool"))


def _describe_edge(edge: Edge, edges: Sequence[Edge], definition: Definition) -> str:
    """Return when an edge is taken."""
    group = [other for other in edges if other.on_error == edge.on_error]
    parts = ["on error"] if edge.on_error else []
    if edge.ask is not None:
        parts.append(f"if a model says: {edge.ask}")
    elif edge.when is not None:
        parts.append(f"when {edge.when}")
    elif any(other.conditional for other in group):
        parts.append("else")
    if edge.back:
        parts.append(f"up to {definition.max_iterations} times")
    return " ".join(", ".join(parts).split())


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


# ── Mermaid ──────────────────────────────────────────────────────────────────────────────────────


def draw_mermaid(definition: Definition, graph: Graph) -> list[str]:
    """Return the lines of a Mermaid flowchart; ids are numbers, so that no name of a node is a word of Mermaid."""
    index = {node.id: f"n{number}" for number, node in enumerate(definition.nodes)}
    lines = ["flowchart TD"]
    for node in definition.nodes:
        label = "<br/>".join(map(_escape, [node.id, *_describe_node(node)]))
        left, right = ("([", "])") if node.id in graph.entries else ("[[", "]]") if node.tool == INVOKE else ("[", "]")
        lines.append(f'    {index[node.id]}{left}"{label}"{right}')
    for name in graph.order:
        for edge in graph.outgoing[name]:
            arrow = "-.->" if edge.on_error else "-->"
            label = _escape(_describe_edge(edge, graph.outgoing[name], definition))
            shown = f'|"{label}"|' if label else ""
            lines.append(f"    {index[name]} {arrow}{shown} {index[edge.target]}")
    return lines


def _escape(text: str) -> str:
    """Return a text as a part of a quoted label: Mermaid's entity codes for what it, Markdown or HTML would read."""
    flat = _cut(" ".join(text.split()), LONGEST_LABEL)
    return "".join(_ESCAPES.get(character, character) for character in flat)


# ── data ─────────────────────────────────────────────────────────────────────────────────────────


def describe_graph(definition: Definition, graph: Graph) -> dict[str, Any]:
    """Return the nodes, each with its level, which is one below the lowest of those that it comes after; and the
    edges."""
    levels: dict[str, int] = {}
    for name in graph.levels:
        levels[name] = max((levels[edge.source] + 1 for edge in graph.incoming[name]), default=0)
    tools = {node.id: node.tool for node in definition.nodes}
    nodes = [
        {
            "id": name,
            "tool": tools[name],
            "level": levels[name],
            "entry": name in graph.entries,
            "end": name in graph.ends,
        }
        for name in graph.order
    ]
    edges = sorted((edge for each in graph.outgoing.values() for edge in each), key=lambda edge: edge.index)
    return {"nodes": nodes, "edges": [_describe_as_data(edge) for edge in edges]}


def _describe_as_data(edge: Edge) -> dict[str, Any]:
    on = "error" if edge.on_error else None
    about = {"from": edge.source, "to": edge.target, "when": edge.when, "ask": edge.ask}
    return {**about, "on": on, "back": edge.back}

"""The uses of tools in a definition: by its nodes, and by its agents as far as their configs say. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from engine_shim.definition.model import AGENT, Definition, Node
from engine_shim.definition.template import read_placeholders


class ToolUse(NamedTuple):
    """One use of a tool. `config` is what the author gives, at `where`; of an agent's tool, its preset alone.

    `by_name` says that the author names the tool itself, and not by a pattern that others fit as well.
    """

    where: str
    tool: str
    config: Mapping[str, Any]
    by_agent: bool = False
    by_name: bool = True

    def known(self) -> dict[str, Any]:
        """Return the values of the config that no placeholder fills later."""
        return {key: value for key, value in self.config.items() if _is_known(value)}


def uses_of(definition: Definition, codes: Sequence[str]) -> Iterator[ToolUse]:
    """Yield every use of one of these tools."""
    for index, node in enumerate(definition.nodes):
        yield from uses_of_node(node, f"nodes/{index}/config", codes)


def uses_of_node(node: Node, where: str, codes: Sequence[str]) -> Iterator[ToolUse]:
    """Yield a node's own use of its tool, and those of its agent."""
    if node.tool in codes:
        yield ToolUse(where, node.tool, node.config)
    if node.tool == AGENT:
        yield from _uses_of_agent(node.config, where, codes)


def _uses_of_agent(
    config: Mapping[str, Any], where: str, codes: Sequence[str], by_name: bool = True
) -> Iterator[ToolUse]:
    entries, denied = config.get("allowed_tools"), config.get("deny_tools")
    globs = [each for each in denied if isinstance(each, str)] if isinstance(denied, list) else []
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        pattern, preset = (entry.get("tool"), entry.get("preset")) if isinstance(entry, dict) else (entry, None)
        if not isinstance(pattern, str):
            continue
        given = preset if isinstance(preset, dict) else {}
        at = f"{where}/allowed_tools/{index}{'/preset' if given else ''}"
        for code in codes:
            if fnmatchcase(code, pattern) and not any(fnmatchcase(code, glob) for glob in globs):
                named = by_name and code == pattern
                yield ToolUse(at, code, given, by_agent=True, by_name=named)
                if code == AGENT:
                    yield from _uses_of_agent(given, at, codes, named)


def _is_known(value: Any) -> bool:
    return next(read_placeholders(value), None) is None

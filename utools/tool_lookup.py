"""ToolLookup: the tools of a host, found by their codes, and why others are not there."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from utools.calls.shared import SharedCalls
from utools.errors import UnknownTool
from utools.host_policy import HostPolicy
from utools.left_out import LeftOut
from utools.schema.config_schema import ConfigSchema, visible
from utools.tool import Tool

ReadDocument = Callable[[Mapping[str, Any]], Awaitable[str]]
"""Reads a document, {uri} or {name, arguments}; ToolError, or an OSError, when it cannot be read."""


class ToolLookup:
    """The tools of one host by their codes.

    `_policy` is the host's last word on each tool, `_readers` read the documents of its MCP servers, by name.
    `_origins` say where tools come from that are not built in, by code; `_left_out` are sources and tools that cannot
    be used.
    """

    def __init__(self, calls: SharedCalls | None, policy: HostPolicy | None) -> None:
        self._calls, self._policy = calls or SharedCalls(), policy or HostPolicy()
        self._readers: dict[str, ReadDocument] = {}
        self._origins: dict[str, str] = {}
        self._left_out: list[LeftOut] = []
        self._refused: dict[str, str] = {}
        self._private: frozenset[str] = frozenset()
        self._given: list[tuple[Tool, bool]] = []
        """Each tool, and whether a test has checked its schemas."""
        self._tools: dict[str, Tool] = {}
        self._schemas: dict[str, ConfigSchema] = {}

    def get(self, code: str) -> Tool:
        """Return the tool of a code.

        Args:
            code: The tool's code.

        Raises:
            UnknownTool: No tool has this code; it is a KeyError.
        """
        try:
            return self._tools[code]
        except KeyError:
            raise UnknownTool(code, self._tools, self._refusal(code)) from None

    def __contains__(self, code: str) -> bool:
        return code in self._tools

    def _name_holder(self, code: str) -> str:
        """Say whose tool has a code, where that is known."""
        if any(each.code == code and known_good for each, known_good in self._given):
            return ", a built-in one; give this one another code"
        return f", that of {self._origins[code]}; give one of them another code" if code in self._origins else ""

    def all(self) -> list[Tool]:
        """Return all tools, by code."""
        return [self._tools[code] for code in sorted(self._tools.keys() - self._private)]

    def for_models(self) -> list[Tool]:
        """Return the tools that a model may be shown, by code."""
        return [tool for tool in self.all() if not tool.node_only]

    def matching(self, patterns: Iterable[str]) -> list[str]:
        """Return the codes that fit one of the globs, sorted.

        Args:
            patterns: Codes, or globs such as `mcp.files.*`.
        """
        globs = tuple(patterns)
        known = sorted(self._tools.keys() - self._private)
        return [code for code in known if any(fnmatchcase(code, glob) for glob in globs)]

    def definitions(self, allow: Sequence[str] = ("*",), deny: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return tools in function-calling shape, without what only authors may set.

        Args:
            allow: Codes, or globs such as `mcp.files.*`.
            deny: Codes or globs that outweigh `allow`.
        """
        hidden = {*self.matching(deny), *(tool.code for tool in self.all() if tool.node_only)}
        return [self._definition(code) for code in self.matching(allow) if code not in hidden]

    def _definition(self, code: str) -> dict[str, Any]:
        schema = self._schemas[code]
        function = {
            "name": code,
            "description": self._tools[code].description,
            "parameters": visible(schema.schema, schema.author_keys),
        }
        return {"type": "function", "function": function}

    def _schema(self, code: str) -> ConfigSchema:
        """Return the compiled schema of a tool's arguments."""
        self.get(code)
        return self._schemas[code]

    def _refusal(self, code: str) -> str | None:
        """Return why this host does not offer a tool: its policy refuses it, or its source, or the tool, is left out.

        For a glob: why nothing fits it.
        """
        if code in self._tools:
            return None
        is_glob = any(char in code for char in "*?[")
        for each in self._left_out if not is_glob or not self.matching([code]) else ():
            if each.covers(code) or (is_glob and fnmatchcase(f"{each.name}.x", code)):
                return f"there is no {code}, since {each.name} cannot be used: {each.why}"
        return self._refused.get(code)

    def _refusal_for_models(self, code: str) -> str | None:
        """Return why no model may have a tool: this host does not offer it, or offers it to nodes alone."""
        if code in self and self.get(code).node_only:
            return f"{code} is for the nodes of workflows alone, and no model calls it: write a node with it"
        return self._refusal(code)

    def _is_due_to_left_out(self, message: str) -> bool:
        """Return whether a fault is told by `refusal` of a source or tool that is left out: it is not its author's."""
        return any(each.why in message for each in self._left_out)

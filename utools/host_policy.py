"""HostPolicy: the host's last word on tools: which there are, and the values that definitions may only narrow. Pure.

How a key may be narrowed is declared in a tool's schema by `x-narrow`:

subset      a list: entries of the host's list
patterns    a list: also entries that fit one of the host's patterns, as `api.example.com` fits `*.example.com`
path        a path: the host's, or one below it, as `data/in` is below `data`
prefix      names apart by colons: the host's, or one below it, as `app:chat` is below `app`
minimum     a number: the host's or less
true, false a boolean: that one is the stricter
            anything else must be equal
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from utools.errors import DefinitionError
from utools.schema.compiled import prepare_schema
from utools.tool import Args, Execute, Tool, ToolContext, is_async

Presets = Mapping[str, Any]
Schema = dict[str, Any]
_END = r"$(?!\n)"
"""The very end of a text, where `$` alone would allow a newline."""


@dataclass(frozen=True, slots=True)
class HostPolicy:
    """`presets` are values by tool and key; `allow_tools` and `deny_tools` are globs, of which deny wins.

    `allow_tools` does not speak of tools that are runs themselves: what they reach is up to the tools in them. A policy
    `within` another one refuses what that one refuses. `off` says of tools why they are not offered; `needs` names the
    key without whose preset a tool is not.
    """

    presets: Mapping[str, Presets] = field(default_factory=dict)
    allow_tools: Sequence[str] | None = None
    deny_tools: Sequence[str] = ()
    within: "HostPolicy | None" = None
    off: Mapping[str, str] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)

    def refusal(self, tool: Tool) -> str | None:
        """Return why this host does not offer a tool; None when it does."""
        if self.within is not None and (refusal := self.within.refusal(tool)):
            return refusal
        if refusal := self._refuse_code(tool.code, is_run=tool.effect == "nested"):
            return refusal
        if tool.code in self.off:
            return f"the host does not offer {tool.code}: {self.off[tool.code]}"
        preset, needed = self.presets.get(tool.code, {}), self.needs.get(tool.code)
        keys = _properties(tool).items()
        missing = [name for name, key in keys if (_is_host_key(key) or name == needed) and not preset.get(name)]
        if missing:
            return f"{tool.code} is off until the host sets {missing[0]}, in presets of agent-core.yaml"
        return None

    def admits(self, code: str) -> bool:
        """Return whether no list keeps a tool of this code from being offered."""
        is_admitted = self.within is None or self.within.admits(code)
        return is_admitted and self._refuse_code(code, is_run=False) is None

    def _refuse_code(self, code: str, *, is_run: bool) -> str | None:
        if _fits(code, self.deny_tools):
            return f"the host does not offer {code}: it is in deny_tools"
        if self.allow_tools is not None and not is_run and not _fits(code, self.allow_tools):
            return f"the host does not offer {code}: it is not in allow_tools"
        return None

    def bind(self, tool: Tool) -> Tool:
        """Return the tool with the host's presets filled in, and a schema that lets definitions only narrow them.

        DefinitionError for a key that the tool does not have, and a value that it refuses.
        """
        preset = self.presets.get(tool.code)
        if not preset:
            return tool
        _check_preset(tool, preset)
        schema = {**tool.config_schema, "properties": dict(_properties(tool))}
        for name, value in preset.items():
            schema["properties"][name] = narrow_schema(schema["properties"][name], value)
        schema["required"] = [name for name in schema.get("required", ()) if name not in preset]
        effect = _bind_effect(tool, preset)
        cache = None if effect in ("write", "nested") else tool.cache
        return replace(tool, config_schema=schema, effect=effect, cache=cache, execute=_fill(tool, preset))

    def describe_preset(self, code: str, key: str) -> str:
        """Return what to add to the fault of a definition's value; empty where the host presets nothing."""
        preset = self.presets.get(code, {})
        return f"; presets of agent-core.yaml bind {key} of {code} to {preset[key]!r} or less" if key in preset else ""


def narrow_schema(schema: Schema, value: Any) -> Schema:
    """Return the schema of a key that the host sets to `value`: only the author may give it, and only a narrower value.

    `x-preset` says, also in a recorded run, that the default is a host's.
    """
    return {**schema, **_narrowed(schema, value), "x-author": True, "x-preset": True, "default": value}


def _narrowed(schema: Schema, value: Any) -> Schema:
    match schema.get("x-narrow"), value:
        case "subset", list():
            return {"items": {"enum": value}}
        case "patterns", list():
            patterns = [{"pattern": _pattern_below(entry)} for entry in value if "*" in entry]
            return {"items": {"anyOf": [{"enum": value}, *patterns]} if patterns else {"enum": value}}
        case "path", str():
            return {"pattern": _pattern_of_paths(value)}
        case "prefix", str():
            return {"pattern": rf"^{re.escape(value.removesuffix(':'))}(:.*)?{_END}"}
        case "minimum", int() | float():
            return {"maximum": value}
        case ("true" | "false") as stricter, bool():
            return {"const": value} if value == (stricter == "true") else {}
        case _:
            return {"const": value}


def _pattern_below(pattern: str) -> str:
    """Return the regex of the entries that a pattern covers: names without wildcards, or one at their beginning."""
    return "^" + r"(\*\.)?[^*?\[\]]*".join(map(re.escape, pattern.split("*"))) + _END


def _pattern_of_paths(path: str) -> str:
    """Return the regex of a directory and of what is below it; no step leads up."""
    if path in ("", "."):
        return rf"^(?!/)(?!(.*/)?\.\.(/|$)).*{_END}"
    return rf"^{re.escape(path.rstrip('/'))}(?!.*/\.\.(/|$))(/.*)?{_END}"


def _check_preset(tool: Tool, preset: Presets) -> None:
    where, properties = f"presets/{tool.code}", _properties(tool)
    if unknown := [name for name in preset if name not in properties]:
        known = ", ".join(properties)
        raise DefinitionError(f"{tool.code} has no such key; there are {known}", where=f"{where}/{unknown[0]}")
    schema = prepare_schema({**tool.config_schema, "required": []}, foreign=tool.foreign, where=where)
    for fault in schema.faults(dict(preset)):
        if fault.pointer:
            raise DefinitionError(fault.message, where=f"{where}{fault.pointer}")


def _properties(tool: Tool) -> Schema:
    properties: Any = tool.config_schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _is_host_key(key: Any) -> bool:
    return isinstance(key, dict) and key.get("x-host") is True


def _bind_effect(tool: Tool, preset: Presets) -> Any:
    """Return the tool's effect; settled where it hangs on an argument that the host presets."""
    if isinstance(tool.effect, Mapping) and tool.effect["argument"] in preset:
        return tool.effect_of(dict(preset))
    if callable(tool.effect):
        return lambda args: tool.effect_of({**preset, **args})
    return tool.effect


def _fill(tool: Tool, preset: Presets) -> Execute:
    """Return what executes the tool with the presets that its arguments leave out."""
    if is_async(tool.execute):

        async def execute(args: Args, context: ToolContext) -> Any:
            return await tool.execute({**preset, **args}, context)

        return execute
    return lambda args, context: tool.execute({**preset, **args}, context)


def _fits(code: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(code, glob) for glob in globs)

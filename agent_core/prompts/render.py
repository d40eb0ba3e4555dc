"""Prompts: files per language, placeholders only; a workflow may give its own, by text or by path."""

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from string import Template

from agent_core.errors import DefinitionError
from utools.errors import ToolError

CONVERSATION = frozenset({"tool_definitions", "conversation_history", "user_message"})
OBSERVATION = frozenset({"tool", "observation", "request"})
TOOL_ERROR = frozenset({"tool", "error", "request"})
LIMITS = frozenset({"limits", "max_steps", "max_tool_calls", "observation_max_len"})
REPORT = frozenset({"steps", "user_message"})
OF_A_PLAN = frozenset({"plan", "replan", "summary"})
"""The prompts that plan mode alone has."""
NAMES: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "system": (CONVERSATION | LIMITS, frozenset({"tool_definitions"})),
    "react": (CONVERSATION | LIMITS, frozenset()),
    "examples": (CONVERSATION | LIMITS | {"examples"}, frozenset()),
    "example_turns": (CONVERSATION | LIMITS, frozenset()),
    "error": (frozenset({"error"}), frozenset({"error"})),
    "tool_error": (TOOL_ERROR, frozenset({"error"})),
    "small_tool_error": (TOOL_ERROR, frozenset({"error"})),
    "observation": (OBSERVATION, frozenset({"observation"})),
    "small_observation": (OBSERVATION, frozenset({"observation"})),
    "reading": (frozenset({"left", "args"}), frozenset({"args"})),
    "last_step": (frozenset(), frozenset()),
    "last_call": (frozenset(), frozenset()),
    "answer": (frozenset({"answer_schema"}), frozenset({"answer_schema"})),
    "plan": (CONVERSATION | LIMITS, frozenset({"tool_definitions"})),
    "replan": (REPORT, frozenset({"steps"})),
    "summary": (REPORT, frozenset({"steps"})),
}
"""Each prompt with the variables that it may use, and those that it must."""
PLAIN_EXAMPLE = "plain_example"
"""A request and its answer, which needs no tool, in a file of their own: no workflow replaces it."""


def templates(
    language: str, own: Mapping[str, str], base: Path | None = None, *, protocol: str = "json"
) -> dict[str, str]:
    """Return every template by name, the workflow's own first. A value that ends in .md or .txt is a file below `base`.

    `protocol` is json, tools, or plan for plan mode.

    DefinitionError for a name or a variable that there is not, and for one that is missing.
    """
    if unknown := sorted(set(own) - set(NAMES)):
        raise DefinitionError(f"no such prompt; there are {', '.join(NAMES)}", where=f"prompts/{unknown[0]}")
    names = [name for name in NAMES if protocol == "plan" or name not in OF_A_PLAN]
    texts = {name: _own(name, own[name], base) if name in own else built_in(language, name, protocol) for name in names}
    for name, text in texts.items():
        _check(name, text, protocol)
    return texts


def summary_template(own: str, base: Path) -> str:
    """Return a host's own template for summaries, its text or that of a file below `base`. DefinitionError likewise."""
    text, name = _own("", own, base), "conversation_history"
    _check_variables(text, "", frozenset({name}), frozenset({name}))
    return text


@lru_cache
def built_in(language: str, name: str, protocol: str = "json") -> str:
    """Return a template that ships with the package: the protocol's own, or the one that all share."""
    folder = files("agent_core.prompts").joinpath(language)
    own = folder.joinpath(protocol, f"{name}.md")
    return (own if own.is_file() else folder.joinpath(f"{name}.md")).read_text("utf-8").strip()


def is_file(template: object) -> bool:
    """Return whether a template of a config is the name of a file, and not its text."""
    return isinstance(template, str) and re.fullmatch(r"[^\n$]+\.(md|txt)", template) is not None


def _own(name: str, value: str, base: Path | None) -> str:
    if not is_file(value):
        return value
    from utools.files.protected_paths import protect
    from utools.files.sandbox import Sandbox

    protect((base or Path()) / value)
    try:
        with Sandbox(base or Path()).open(value) as file:
            return file.read().decode("utf-8", "replace").strip()
    except ToolError as error:
        raise DefinitionError(str(error), where=f"prompts/{name}" if name else "", value=value) from None


@lru_cache
def _check(name: str, text: str, protocol: str) -> None:
    allowed, required = NAMES[name]
    if name == "system" and protocol == "tools":
        required = frozenset()  # the tools travel in a field of their own
    _check_variables(text, f"prompts/{name}", allowed, required)


def _check_variables(text: str, where: str, allowed: frozenset[str], required: frozenset[str]) -> None:
    template = Template(text)
    if not template.is_valid():
        raise DefinitionError("a stray $; write $$ for a dollar sign", where=where)
    used = set(template.get_identifiers())
    if unknown := sorted(used - allowed):
        raise DefinitionError(
            f"unknown variable ${unknown[0]}; there are {', '.join(sorted(allowed)) or 'none'}", where=where
        )
    if missing := sorted(required - used):
        raise DefinitionError(f"the variable ${missing[0]} is missing", where=where)


def render(text: str, variables: Mapping[str, str]) -> str:
    """Return the text with its variables filled in, once: what is filled in is not looked at again."""
    return Template(text).substitute(variables)

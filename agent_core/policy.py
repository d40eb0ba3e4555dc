"""A run's policy: the whitelist with everything that judge has to know of each tool. Pure."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from fnmatch import fnmatchcase
from typing import Any, Final

from agent_core.config import AgentConfig, AllowedTool
from agent_core.errors import DefinitionError
from agent_core.outputs import Json
from agent_core.tool_policy import ToolBinding
from utools.errors import UnknownTool
from utools.problems import Problem, gathering, refuse
from utools.tool import Effect as ToolEffect

WILDCARDS: Final = frozenset("*?[")
Selected = dict[str, tuple[AllowedTool, str]]
"""The codes that a config allows, each with the entry that binds it and that entry's place in the config."""


def arguments_of(policy: Mapping[str, Any] | None, args: Json) -> Json:
    """Return what a tool gets: a copy of the author's preset, which other runs have too, and what the model sent. Judge
    refuses a model that sends preset keys."""
    preset = policy["preset"] if policy else None
    return {**deepcopy(preset), **args} if preset else dict(args)


def effect_of(policy: Mapping[str, Any] | None, args: Json) -> ToolEffect | None:
    """Return what a call would do, as far as the policy can tell; None when only the tool itself knows."""
    if policy is None:
        return "write"
    effect = policy["effect"]
    match effect:
        case "read" | "write" | "nested":
            known: ToolEffect = effect
            return known
        case str():  # `dynamic`
            return None
        case _:
            pass
    chosen = arguments_of(policy, args).get(effect["argument"], effect.get("default"))
    return "read" if isinstance(chosen, str) and chosen in effect["read"] else "write"


def select_tools(config: AgentConfig, codes: Sequence[str]) -> Selected:
    """Return the codes that a config allows. DefinitionErrors for the entries that cannot be used."""
    selected, problems = find_tools(config, codes)
    refuse(problems)
    return selected


def find_tools(config: AgentConfig, codes: Sequence[str]) -> tuple[Selected, list[Problem]]:
    """Return the codes that a config allows, and what is wrong with its entries.

    An exact code outweighs a glob; deny wins. Wrong are an unknown code, a glob without a tool, a code that is listed
    twice, and two globs that bind one tool differently.
    """
    chosen: Selected = {}
    exact: set[str] = set()
    problems: list[Problem] = []
    for index, entry in enumerate(config.allowed_tools):
        allowed = AllowedTool(tool=entry) if isinstance(entry, str) else entry
        with gathering(problems):
            _select(allowed, f"allowed_tools/{index}", codes, chosen, exact)
    return {code: bound for code, bound in chosen.items() if not is_denied(code, config)}, problems


def _select(
    allowed: AllowedTool,
    where: str,
    codes: Sequence[str],
    chosen: Selected,
    exact: set[str],
) -> None:
    """Add what one entry allows to the `chosen` codes; `exact` are those that are listed by their own code."""
    is_glob = has_wildcard(allowed.tool)
    matching = [code for code in codes if fnmatchcase(code, allowed.tool)] if is_glob else [allowed.tool]
    _check_known(matching, allowed.tool, codes, where)
    for code in matching:
        if not is_glob and code in exact:
            raise DefinitionError("this tool is listed twice", where=where, value=code)
        if is_glob and code in chosen and code not in exact:
            _check_same_binding(chosen[code][0], allowed, code, where)
        if not is_glob or code not in exact:
            chosen[code] = (allowed, where)
    exact.update(() if is_glob else matching)


def has_wildcard(name: str) -> bool:
    """Return whether an entry of `allowed_tools` is a glob."""
    return not WILDCARDS.isdisjoint(name)


def _check_same_binding(one: AllowedTool, other: AllowedTool, code: str, where: str) -> None:
    """Two globs may match one tool only when neither binds it, else one would loosen what the other tightens."""
    if one.model_copy(update={"tool": ""}) != other.model_copy(update={"tool": ""}):
        message = f"the pattern {one.tool!r} fits this tool too, and binds it differently; list it by its own code"
        raise DefinitionError(message, where=where, value=code)


def is_denied(code: str, config: AgentConfig) -> bool:
    """Return whether `deny_tools` names the tool."""
    return any(fnmatchcase(code, glob) for glob in config.deny_tools)


def _check_known(matching: Sequence[str], name: str, codes: Sequence[str], where: str) -> None:
    if not matching:
        raise DefinitionError("no tool fits this pattern", where=where, value=name)
    for code in matching:
        if code not in codes:
            raise DefinitionError(str(UnknownTool(code, codes)), where=where)


def _rules_of(allowed: AllowedTool) -> Json:
    """Return the origins that each argument needs; those of all arguments stand under `*`."""
    written: Any = allowed.model_dump(exclude_none=True)["provenance"]
    return dict(written) if isinstance(written, dict) else {"*": written}


def binding_of(allowed: AllowedTool, config: AgentConfig) -> ToolBinding:
    """Return how a whitelist's entry and the node's defaults bind a tool."""
    binding: ToolBinding = {
        "approval": allowed.approval or config.approval,
        "max_calls": allowed.max_calls,
        "timeout": allowed.timeout or None,
        "trusted": allowed.trusted,
        "args": allowed.args,
        "provenance": _rules_of(allowed),
    }
    if allowed.rate_limit:
        binding["rate_limit"] = allowed.rate_limit
    return binding

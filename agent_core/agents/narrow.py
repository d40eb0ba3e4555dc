"""narrow_agent(): the config of a workflow's node that names an agent, which its other keys may narrow. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from agent_core.agents.definition import AgentDefinition
from agent_core.config import OF_ITS_MODEL, AgentConfig
from agent_core.errors import DefinitionError
from agent_core.outputs import Json
from agent_core.records import AgentNote
from utools.problems import Problem, refuse

LIMITS: Final = (
    "max_steps", "max_tool_calls", "timeout", "single_call_timeout", "total_token_budget", "cost_budget",
    "max_output_tokens",
)  # fmt: skip
"""Keys that a node may set lower. In a node 0 and null stand for the agent's own value."""
STRICTER: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "approval": {"never": ("on_write", "on_unproven", "always"), "on_write": ("always",), "on_unproven": ("always",)},
    "after_untrusted": {"run": ("ask", "refuse"), "ask": ("refuse",)},
}
"""Keys whose values have an order: what a node may set instead of what the agent has."""
TASK: Final = ("prompt", "messages_json")
"""What the agent works on: every node gives it."""


def narrow_agent(agent: AgentDefinition, of_agent: tuple[Json, AgentNote], keys: Mapping[str, Any]) -> Json:
    """Return the config of a node that gives these keys besides the agent's name, and who it is, for the record.

    `of_agent` is the agent's own config and note. DefinitionErrors for what would give the agent more than its
    definition does.
    """
    config, note = of_agent
    refuse(_widenings(agent, config, keys, note["kept"]))
    own = {key: value for key, value in config.items() if key not in OF_ITS_MODEL or "model" not in keys}
    given = {key: value for key, value in keys.items() if not (key in LIMITS and value in (0, None))}
    chosen, denied = given.pop("allowed_tools", ["*"]), given.pop("deny_tools", [])
    left_out = [code for code in note["kept"] if not _fits(code, chosen) or _fits(code, denied)]
    return {
        **own,
        **given,
        "allowed_tools": [_ask_more(entry, given.get("approval")) for entry in config["allowed_tools"]],
        "deny_tools": [*dict.fromkeys([*config["deny_tools"], *denied, *left_out])],
        "agent": {
            "name": agent.name,
            "kept": [code for code in note["kept"] if code not in left_out],
            "dropped": {**note["dropped"], **dict.fromkeys(left_out, "left out by the node")},
            "overrides": sorted(key for key in keys if key not in TASK),
        },
    }


def _fits(code: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(code, glob) for glob in globs)


def _ask_more(entry: str | Json, approval: str | None) -> str | Json:
    """Return an entry of the whitelist whose own approval is no laxer than the node's."""
    if isinstance(entry, str) or approval not in STRICTER["approval"].get(str(entry["approval"]), ()):
        return entry
    return {**entry, "approval": approval}


def _widenings(agent: AgentDefinition, config: Json, keys: Mapping[str, Any], kept: Sequence[str]) -> Iterator[Problem]:
    """Yield what of a node's keys is no narrowing of the agent's config."""
    defaults = {key: field.default for key, field in AgentConfig.model_fields.items()}
    for key, value in keys.items():
        own: Any = config.get(key, defaults.get(key))
        if key == "system_prompt":
            yield Problem(key, f"belongs to the agent; write what this node adds in developer_prompt (got {value!r})")
        elif key == "extra":
            yield Problem(key, f"belongs to the agent: it may switch a vendor's tools on; leave it out (got {value!r})")
        elif key == "documents":
            yield Problem(key, f"belong to the agent, by its mcp_policy; leave them out (got {value!r})")
        elif key == "allowed_tools":
            yield from _unfit_tools(agent, value, kept)
        elif key == "deny_tools":
            yield from _unfit_denials(value)
        elif (key in LIMITS and not _is_within(value, own)) or (key == "max_repairs" and not _is_at_most(value, own)):
            yield Problem(key, f"agent {agent.name!r} is limited to {own}, which a node may only lower (got {value!r})")
        elif key in ("mode", "plan") and _leaves_out_confirmation(config, key, value):
            what = "lets a person confirm its plan; a node may not change that: mode is plan, plan has confirm: true"
            yield Problem(key, f"agent {agent.name!r} {what} (got {value!r})")
        elif key in STRICTER and value != own and value not in STRICTER[key].get(own, ()):
            stricter = STRICTER[key].get(own, ())
            may = f"a node may set {' or '.join(stricter)}" if stricter else "a node may not change that"
            yield Problem(key, f"agent {agent.name!r} has {own}; {may} (got {value!r})")


def _leaves_out_confirmation(config: Json, key: str, value: Any) -> bool:
    """Return whether a node's mode or plan would go on without the person who confirms the agent's plan."""
    if config.get("mode") != "plan" or not (config.get("plan") or {}).get("confirm"):
        return False
    return value != "plan" if key == "mode" else not (isinstance(value, Mapping) and value.get("confirm"))


def _is_within(value: Any, own: Any) -> bool:
    """Return whether a limit is no wider than the agent's; 0 and null stand for that one."""
    return value in (0, None) or (_is_at_most(value, value) if own in (0, None) else _is_at_most(value, own))


def _is_at_most(value: Any, most: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= most


def _unfit_tools(agent: AgentDefinition, value: Any, kept: Sequence[str]) -> Iterator[Problem]:
    if not isinstance(value, list):
        yield Problem("allowed_tools", str(DefinitionError("must be a list of codes or globs", value=value)))
        return
    for index, entry in enumerate(value):
        if not isinstance(entry, str):
            what = f"must be a code or a glob: only agent {agent.name!r} itself says how a tool is bound"
            yield Problem(f"allowed_tools/{index}", str(DefinitionError(what, value=entry)))
        elif not any(fnmatchcase(code, entry) for code in kept):
            known = ", ".join(kept) or "none"
            what = f"agent {agent.name!r} has no such tool; it has {known}"
            yield Problem(f"allowed_tools/{index}", str(DefinitionError(what, value=entry)))


def _unfit_denials(value: Any) -> Iterator[Problem]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        yield Problem("deny_tools", str(DefinitionError("must be a list of codes or globs", value=value)))

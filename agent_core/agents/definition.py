"""An agent as its author defines it, and the config of the runs that it stands for."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from agent_core.config import AgentConfig, AllowedTool, problems_of, read_config
from agent_core.outputs import Json
from agent_core.policy import find_tools, has_wildcard
from agent_core.records import AgentNote
from utools.problems import DefinitionErrors, Problem, gathering, refuse

NEVER_BY_DEFAULT = ("shell_command", "invoke_workflow", "agent_core", "context_manager")
"""Tools that an agent has only where its policy allows them by name."""
DEFAULT_STEPS = 10
OWN_KEYS = (
    "model", "system_prompt", "allowed_tools", "deny_tools", "messages_json", "prompt", "repair_scope",
    "primary_output", "trusted_text", "answer_schema", "agent", "documents",
)  # fmt: skip
"""Keys of a config that a `runtime_policy` cannot have."""
_PLACES = {"documents": "mcp_policy", "allowed_tools": "skill_policy/allow", "deny_tools": "skill_policy/deny"}
_DEFINED = ("model", "system_prompt")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class SkillPolicy(_Strict):
    """The tools that an agent has: codes, globs, or entries of a whitelist. Deny wins."""

    allow: list[str | AllowedTool] = []
    deny: list[str] = []


class McpResource(_Strict):
    """A resource of an MCP server; the model reads at most `max_len` characters of it."""

    server: str
    uri: str
    max_len: int = Field(default=16384, ge=1)


class McpPrompt(_Strict):
    """A prompt of an MCP server, with its arguments."""

    server: str
    name: str
    arguments: dict[str, str] = {}
    max_len: int = Field(default=16384, ge=1)


class McpPolicy(_Strict):
    """The MCP servers whose tools an agent may have, without it all of them; the resources and prompts that it reads
    as data."""

    servers: list[str] | None = None
    resources: list[McpResource] = []
    prompts: list[McpPrompt] = []


class AgentDefinition(_Strict):
    """One agent. `runtime_policy` has the keys of the node's config that limit a run, such as max_steps;
    `max_conversation_tokens` is what all turns of a stored conversation may cost, read and written."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    description: str = ""
    model: str = Field(min_length=1)
    system_prompt: str = ""
    skill_policy: SkillPolicy = SkillPolicy.model_construct()
    runtime_policy: dict[str, Any] = {}
    mcp_policy: McpPolicy = McpPolicy.model_construct()
    max_conversation_tokens: int | None = Field(default=None, ge=1)

    @field_validator("runtime_policy")
    @classmethod
    def _check_keys(cls, keys: dict[str, Any]) -> dict[str, Any]:
        """Names the keys that are not of a runtime policy."""
        known = [key for key in AgentConfig.model_fields if key not in OWN_KEYS]
        if unknown := sorted(set(keys) - set(known)):
            raise ValueError(f"unknown key {unknown[0]!r}; there are {', '.join(known)}")
        return keys


@dataclass(frozen=True, slots=True)
class Skills:
    """The tools of an agent on a host: its whitelist, the codes that it keeps, and why it lacks each of the others."""

    allowed: Sequence[str | AllowedTool]
    kept: Sequence[str]
    dropped: Mapping[str, str]


def read_agent(data: Any) -> AgentDefinition:
    """Return the definition in a document. DefinitionErrors for all its faults."""
    try:
        return AgentDefinition.model_validate(data)
    except ValidationError as error:
        raise DefinitionErrors(problems_of(error, AgentDefinition, "")) from None


def choose_skills(agent: AgentDefinition, codes: Sequence[str], bound: Set[str] = frozenset()) -> Skills:
    """Return the tools that an agent has of those of a host. DefinitionErrors for names that the host does not know.

    Without `allow` it has all but those of NEVER_BY_DEFAULT, and those `bound` to a preset of their author.
    """
    policy, problems = agent.skill_policy, list[Problem]()
    usual = [code for code in codes if code not in NEVER_BY_DEFAULT and code not in bound]
    allowed: Sequence[str | AllowedTool] = policy.allow or usual
    config = AgentConfig(model=agent.model, max_steps=1, allowed_tools=list(allowed))
    selected, faults = find_tools(config, codes)
    problems += [replace(each, where=_place(each.where)) for each in faults]
    problems += _unknown_denials(policy.deny, codes)
    refuse(problems)
    dropped = {code: why for code in codes if (why := _why_dropped(agent, code, selected, bound)) is not None}
    return Skills(allowed, [code for code in codes if code not in dropped], dropped)


def _why_dropped(agent: AgentDefinition, code: str, selected: Mapping[str, Any], bound: Set[str]) -> str | None:
    servers = agent.mcp_policy.servers
    if any(fnmatchcase(code, glob) for glob in agent.skill_policy.deny):
        return "denied"
    if code not in selected:
        if agent.skill_policy.allow:
            return "not allowed"
        return "needs a preset of its author" if code in bound else "never by default"
    if servers is not None and code.startswith("mcp.") and code.split(".")[1] not in servers:
        return "of another MCP server"
    return None


def _unknown_denials(deny: Sequence[str], codes: Sequence[str]) -> Iterator[Problem]:
    for index, glob in enumerate(deny):
        if not any(fnmatchcase(code, glob) for code in codes):
            what = (
                "no tool fits this pattern"
                if has_wildcard(glob)
                else f"there is no such tool; there are {', '.join(codes)}"
            )
            yield Problem(f"skill_policy/deny/{index}", f"{what} (got {glob!r})")


def config_of(agent: AgentDefinition, codes: Sequence[str], bound: Set[str] = frozenset()) -> tuple[Json, AgentNote]:
    """Return the config of a run of this agent, without its conversation, and what the run's record says of the agent.

    DefinitionErrors for all that no run can have, with their places in the agent's definition.
    """
    skills, problems = choose_skills(agent, codes, bound), list[Problem]()
    config: Json = {
        "max_steps": DEFAULT_STEPS,
        **agent.runtime_policy,
        "model": agent.model,
        "system_prompt": agent.system_prompt or None,
        "allowed_tools": [each if isinstance(each, str) else each.model_dump() for each in skills.allowed],
        "deny_tools": [code for code, why in skills.dropped.items() if why in ("denied", "of another MCP server")],
        "repair_scope": "unreadable",
    }
    if documents := [*agent.mcp_policy.resources, *agent.mcp_policy.prompts]:
        config["documents"] = [each.model_dump() for each in documents]
    with gathering(problems):
        read_config({**config, "prompt": "any"}, where="")
    refuse(replace(each, where=_place(each.where)) for each in problems)
    return config, {"name": agent.name, "kept": list(skills.kept), "dropped": dict(skills.dropped), "overrides": []}


def _place(where: str) -> str:
    """Return a place in a config as one in an agent's definition."""
    key, slash, rest = where.strip("/").partition("/")
    return f"{_PLACES.get(key, key if key in _DEFINED else f'runtime_policy/{key}')}{slash}{rest}"

"""AgentConfig: what a workflow's author may set on the node; its JSON Schema is the node's ConfigSchema. Pure."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent_core.errors import DefinitionError
from utools.calls.rate_limit import RateLimit
from utools.problems import DefinitionErrors, Problem, gathering, refuse
from utools.schema.model_faults import find_model_faults, keys_of

Approval = Literal["never", "always", "on_write"]
Limit = Annotated[int, Field(ge=0)] | None
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)] | None

_NOT_BUILT_YET = {
    "mode": ("react", "plan mode is not built yet; use 'react'"),
}
_FORMS = ("str", "AllowedTool", "list[dict[str,any]]")
"""What pydantic calls the forms of a value that may have several."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class AllowedTool(_Strict):
    """A tool on the whitelist, and what its use is bound by."""

    tool: str = Field(description="A tool's code, or a glob such as mcp.files.*")
    preset: dict[str, Any] = Field(default={}, description="Arguments that the author sets; no model sees them")
    approval: Approval | None = None
    max_calls: Limit = None
    rate_limit: str | None = Field(default=None, description="How often all on this host may call it, e.g. 10/min")
    timeout: Seconds = None
    trusted: bool = Field(default=False, description="Its answers count as trusted text for provenance")
    args: dict[str, Any] | None = Field(default=None, description="A JSON Schema that narrows what may be sent")
    provenance: dict[str, Literal["trusted"]] = {}


class PlanConfig(_Strict):
    """How plan mode goes on."""

    confirm: bool = False
    on_failure: Literal["skip", "abort", "replan"] = "abort"


class AgentConfig(_Strict):
    """The node's config. `null` or 0 means no limit; the sizes are characters, the times seconds."""

    model: str = Field(min_length=1, description="provider:name, e.g. openai:gpt-4o-mini")
    max_steps: Annotated[int, Field(ge=0)] | None = Field(description="Model replies, repairs included")
    allowed_tools: list[str | AllowedTool] = Field(description="Codes, globs or objects; empty means none")
    messages_json: list[dict[str, Any]] | str | None = None
    prompt: str | None = None
    system_prompt: str | None = None
    developer_prompt: str | None = None
    examples: list[str] | None = None
    language: Literal["en", "zh"] = "en"
    prompts: dict[str, str] = Field(default={}, description="Own templates by name: a text, or a file's path")
    mode: Literal["react", "plan"] = "react"
    protocol: Literal["json", "tools"] = "json"
    parsing: Literal["strict", "tolerant"] = "strict"
    response_format: Literal["auto", "text", "json_object", "json_schema"] = "auto"
    temperature: Annotated[float, Field(ge=0)] | None = 0.7
    top_p: float | None = None
    seed: int | None = None
    stop: list[str] | None = None
    max_output_tokens: Limit = None
    max_input_tokens: Limit = None
    tool_choice: Literal["auto", "none", "required"] = "auto"
    timeout: Seconds = 120
    single_call_timeout: Seconds = 30
    max_tool_calls: Limit = 10
    total_token_budget: Limit = 0
    cost_budget: Annotated[float, Field(ge=0)] | None = None
    observation_max_len: Annotated[int, Field(ge=0)] | None = 256
    trace_max_bytes: Annotated[int, Field(ge=0)] | None = 32768
    max_history_messages: Limit = 50
    max_repairs: Annotated[int, Field(ge=0)] = 1
    repair_scope: Literal["all", "unreadable"] = "all"
    deny_tools: list[str] = []
    approval: Approval = "never"
    answer_schema: dict[str, Any] | None = None
    primary_output: str = "final_answer"
    fallback_models: list[Annotated[str, Field(min_length=1)]] = Field(
        default=[], description="Asked in this order, from then on, when the model before gave no answer"
    )
    base_url: str | None = None
    api_key_env: str | None = None
    plan: PlanConfig = PlanConfig()
    trusted_text: list[str] | None = None


def read_config(config: Any, *, where: str = "config") -> AgentConfig:
    """The config as a model; DefinitionErrors for all its faults."""
    try:
        read = config if isinstance(config, AgentConfig) else AgentConfig.model_validate(config)
    except ValidationError as error:
        raise DefinitionErrors(_problems_of(error, where)) from None
    refuse(_problems_within(read, where))
    return read


def _problems_within(config: AgentConfig, where: str) -> Iterator[Problem]:
    """What is wrong with values that fit the schema."""
    for key, (built, reason) in _NOT_BUILT_YET.items():
        if (given := getattr(config, key)) != built:
            yield Problem(f"{where}/{key}", str(DefinitionError(reason, value=given)))
    for index, allowed in enumerate(config.allowed_tools):
        if isinstance(allowed, AllowedTool) and allowed.rate_limit is not None:
            problems: list[Problem] = []
            with gathering(problems):
                RateLimit.of(allowed.rate_limit, where=f"{where}/allowed_tools/{index}/rate_limit")
            yield from problems
    if config.tool_choice != "auto" and config.protocol != "tools":
        message = "belongs to native function calling; leave it out, or set protocol: tools"
        yield Problem(f"{where}/tool_choice", str(DefinitionError(message, value=config.tool_choice)))
    if config.messages_json is None and config.prompt is None:
        yield Problem(where, "give messages_json or prompt: the agent has nothing to answer")


def _problems_of(error: ValidationError, where: str) -> list[Problem]:
    """What pydantic finds, one problem for each place: it tries each form that a value may have."""
    problems: dict[str, Problem] = {}
    for fault in find_model_faults(error, keys_of(AgentConfig)):
        if fault.position[-1:] == ("str",) and isinstance(fault.value, dict):
            continue  # about the text that could be given instead of an object
        place = "/".join([where, *(str(part) for part in fault.position if part not in _FORMS)])
        problems.setdefault(place, Problem(place, fault.text))
    return list(problems.values())

"""AgentConfig: what a workflow's author may set on the node; its JSON Schema is the node's ConfigSchema. Pure."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent_core.errors import DefinitionError
from utools.calls.rate_limit import RateLimit

Approval = Literal["never", "always", "on_write"]
Limit = Annotated[int, Field(ge=0)] | None
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)] | None

_NOT_BUILT_YET = {
    "mode": ("react", "plan mode is not built yet; use 'react'"),
}


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
    """The config as a model; DefinitionError names the first key at fault and says how many more there are."""
    try:
        read = config if isinstance(config, AgentConfig) else AgentConfig.model_validate(config)
    except ValidationError as error:
        raise _definition_error(error, where) from None
    for key, (built, reason) in _NOT_BUILT_YET.items():
        if getattr(read, key) != built:
            raise DefinitionError(reason, where=f"{where}/{key}", value=getattr(read, key))
    for index, allowed in enumerate(read.allowed_tools):
        if isinstance(allowed, AllowedTool) and allowed.rate_limit is not None:
            RateLimit.of(allowed.rate_limit, where=f"{where}/allowed_tools/{index}/rate_limit")
    if read.tool_choice != "auto" and read.protocol != "tools":
        message = "belongs to native function calling; leave it out, or set protocol: tools"
        raise DefinitionError(message, where=f"{where}/tool_choice", value=read.tool_choice)
    if read.messages_json is None and read.prompt is None:
        raise DefinitionError("give messages_json or prompt: the agent has nothing to answer", where=where)
    return read


def _definition_error(error: ValidationError, where: str) -> DefinitionError:
    faults = error.errors(include_url=False, include_context=False)
    first = faults[0]
    location = "/".join([where, *(str(part) for part in first["loc"] if part not in ("str", "AllowedTool"))])
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    if first["type"] == "extra_forbidden":
        return DefinitionError(f"unknown key{more}", where=location)
    if first["type"] == "missing":
        return DefinitionError(f"this key is required{more}", where=location)
    return DefinitionError(f"{first['msg']}{more}", where=location, value=first.get("input"))

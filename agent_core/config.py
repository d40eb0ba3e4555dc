"""AgentConfig: what a workflow's author may set on the node; its JSON Schema is the node's ConfigSchema. Pure."""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent_core.errors import DefinitionError
from utools.calls.rate_limit import RateLimit
from utools.problems import DefinitionErrors, Problem, gathering, refuse
from utools.schema.model_faults import find_model_faults, keys_of

Approval = Literal["never", "always", "on_write", "on_unproven"]
AfterUntrusted = Literal["run", "ask", "refuse"]
Limit = Annotated[int, Field(ge=0)] | None
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)] | None

_MESSAGES = "dict[str,any]", "list[dict[str,any]]", "list[union[dict[str,any],list[dict[str,any]]]]"
_FORMS = ("str", "AllowedTool", "Example", *_MESSAGES)
"""What pydantic calls the forms of a value that may have several."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class Document(_Strict):
    """An MCP resource by its `uri`, or a prompt by its `name`, that the model reads as data.

    `text` is what it said when the run began; no definition has it.
    """

    server: str = Field(description="The MCP server, as the host's configuration calls it")
    uri: str | None = Field(default=None, description="Of a resource")
    name: str | None = Field(default=None, description="Of a prompt")
    arguments: dict[str, str] = Field(default={}, description="Of a prompt")
    max_len: Annotated[int, Field(ge=1)] = Field(default=16384, description="Characters that the model reads of it")
    text: str | None = Field(default=None, description="What it said when the run began")

    @property
    def label(self) -> str:
        """What the document is called: its server, and the URI of a resource or the name of a prompt."""
        return f"mcp.{self.server} {self.uri if self.uri is not None else f'prompt {self.name}'}"


class AnyOf(_Strict):
    """The origins that will do for an argument."""

    any_of: list[str] = Field(description="author, user, person, trusted, any, TOOL, TOOL:/PATH")
    up_to: Literal["host", "path"] | None = Field(default=None, description="What of a URL needs an origin; else all")


class AllowedTool(_Strict):
    """A tool on the whitelist, and what its use is bound by."""

    tool: str = Field(description="A tool's code, or a glob such as mcp.files.*")
    preset: dict[str, Any] = Field(default={}, description="Arguments that the author sets; no model sees them")
    approval: Approval | None = Field(default=None, description="When a person decides before it runs; else the node's")
    max_calls: Limit = Field(default=None, description="How often the run may call it")
    rate_limit: str | None = Field(default=None, description="How often all on this host may call it, e.g. 10/min")
    timeout: Seconds = Field(default=None, description="Seconds that a call may take, within single_call_timeout")
    trusted: bool = Field(default=False, description="Provenance trusts its answers, all of them and for any argument")
    args: dict[str, Any] | None = Field(default=None, description="A JSON Schema that narrows what may be sent")
    provenance: str | list[str] | dict[str, str | list[str] | AnyOf] = Field(
        default={}, description="Where an argument's value must stand: author, user, trusted, any, TOOL or TOOL:/PATH"
    )


class ExampleCall(_Strict):
    """A call in an example, and what the tool gave."""

    tool: str = Field(min_length=1, description="The tool's code")
    args: dict[str, Any] = Field(description="The arguments")
    output: Any = Field(description="What the tool gave: a text or any JSON value")


class Example(_Strict):
    """A conversation that shows the model how to work: a request, calls with what they gave, the answer."""

    user: str = Field(min_length=1, description="What the user asks")
    calls: list[ExampleCall] = Field(default=[], description="Calls with what they gave, in their order")
    answer: Any = Field(description="The answer")


class PlanConfig(_Strict):
    """How plan mode continues."""

    confirm: bool = Field(default=False, description="Whether a person confirms the plan")
    on_failure: Literal["skip", "abort", "replan"] = Field(
        default="abort", description="What follows a step that failed"
    )


OF_ENDPOINT: Final = ("base_url", "api_key_env", "api", "service_tier", "extra")
"""Keys that say how the config's own model is asked; a fallback model does not get them."""
OF_ITS_MODEL: Final = (*OF_ENDPOINT, "fallback_models")
"""Keys that are meant for the config's own model, and for no other."""


class AgentConfig(_Strict):
    """The node's config. `null` or 0 means no limit; the sizes are characters, the times seconds.

    Example:
        ```python
        from agent_core import AgentConfig

        config = AgentConfig(model="openai:gpt-4o-mini", max_steps=5, allowed_tools=["stock"], prompt="How many?")
        assert (config.timeout, config.approval) == (120, "never")
        ```
    """

    model: str = Field(min_length=1, description="provider:name, e.g. openai:gpt-4o-mini")
    max_steps: Annotated[int, Field(ge=0)] | None = Field(description="Model replies, repairs included")
    allowed_tools: list[str | AllowedTool] = Field(description="Codes, globs or objects; empty means none")
    messages_json: list[dict[str, Any] | list[dict[str, Any]]] | str | None = Field(
        default=None, description="The conversation: messages, lists of them, or their JSON; this or prompt is needed"
    )
    prompt: str | None = Field(default=None, description="The task; with messages_json, their last turn")
    system_prompt: str | None = Field(default=None, description="Added to the system message, after how to reply")
    developer_prompt: str | None = Field(default=None, description="Added to the system message, after system_prompt")
    examples: list[str | Example] | None = Field(
        default=None,
        description="Examples in the prompt, in place of the built-in ones: texts, or {user, calls, answer}",
    )
    language: Literal["en", "zh"] = Field(
        default="en", description="The language of all that the model reads of ours, prompts and errors alike: en or zh"
    )
    prompts: dict[str, str] | Literal["small"] = Field(
        default={}, description="Own templates by name: a text, or a file's path; small: as for a small model"
    )

    @property
    def templates(self) -> dict[str, str]:
        """The author's own templates."""
        return {} if self.prompts == "small" else self.prompts

    mode: Literal["react", "plan"] = Field(
        default="react", description="react: think and act step by step; plan: plan first, then act"
    )
    protocol: Literal["json", "tools"] = Field(
        default="json", description="json: one JSON object a reply; tools: native function calling, parallel calls too"
    )
    parsing: Literal["strict", "tolerant"] = Field(
        default="strict",
        description="tolerant also reads a code fence, a BOM, a think block, the first action of several",
    )
    response_format: Literal["auto", "text", "json_object", "json_schema"] = Field(
        default="auto", description="What the model is asked for; auto: the strictest that its endpoint takes"
    )
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(
        default=0.7, description="Sent to the model; null: left out; 0 for a small model where it is not given"
    )
    top_p: float | None = Field(default=None, description="Sent to the model")
    seed: int | None = Field(default=None, description="Sent to the model")
    stop: list[str] | None = Field(default=None, description="Sent to the model: texts that end a reply")
    reasoning: Literal["none", "low", "medium", "high"] | None = Field(
        default=None, description="How much the model thinks before it replies; null: as its vendor has it"
    )
    service_tier: str | None = Field(
        default=None, min_length=1, description="The class of service, in the vendor's own word, e.g. flex, priority"
    )
    user_id: str | None = Field(
        default=None,
        min_length=1,
        description="For whom the model is asked: an id that names nobody; some vendors have it",
    )
    extra: dict[str, Any] = Field(
        default={}, description="The vendor's own parameters, sent as they are beside the others"
    )
    max_output_tokens: Limit = Field(default=None, description="Sent to the model: tokens that a reply may have")
    max_input_tokens: Limit = Field(
        default=None,
        description="What does not fit is cut, oldest observations first; else the model's window, where known",
    )
    tool_choice: Literal["auto", "none", "required"] = Field(
        default="auto", description="Of protocol: tools; sent to the model"
    )
    timeout: Seconds = Field(default=120, description="Seconds for the run; waiting for a person does not count")
    single_call_timeout: Seconds = Field(
        default=30, description="Seconds for one answer of a model or tool, retries included"
    )
    max_tool_calls: Limit = Field(default=10, description="Tool calls in the run")
    total_token_budget: Limit = Field(default=0, description="Tokens in the run, read and written")
    cost_budget: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="USD in the run, where prices are known"
    )
    observation_max_len: Annotated[int, Field(ge=0)] | None = Field(
        default=2048, description="Characters of an observation that the model reads at once, and the trace shows"
    )
    trace_max_bytes: Annotated[int, Field(ge=0)] | None = Field(
        default=32768, description="Bytes of the trace in the output"
    )
    max_history_messages: Limit = Field(
        default=50, description="Messages of messages_json that the model reads, the last ones"
    )
    max_repairs: Annotated[int, Field(ge=0)] = Field(default=1, description="How often in a row something may go wrong")
    repair_scope: Literal["all", "unreadable"] = Field(
        default="all",
        description="What max_repairs counts: refused calls and failed tools too, or unreadable replies alone",
    )
    deny_tools: list[str] = Field(
        default=[], description="Codes or globs that are never allowed; they outweigh allowed_tools"
    )
    approval: Approval = Field(
        default="never", description="When a person decides on calls: never, always, on_write, on_unproven"
    )
    after_untrusted: AfterUntrusted = Field(
        default="run", description="What becomes of a write once a tool's untrusted answer was read: run, ask, refuse"
    )
    answer_schema: dict[str, Any] | None = Field(
        default=None, description="A JSON Schema that the final answer must fit"
    )
    primary_output: str = Field(
        default="final_answer", description="The output shown first, and what a parent agent gets"
    )
    fallback_models: list[Annotated[str, Field(min_length=1)]] = Field(
        default=[], description="Asked in this order, from then on, when the model before gave no answer"
    )
    base_url: str | None = Field(default=None, description="The model's endpoint, in place of its vendor's")
    api: Literal["chat", "native"] | None = Field(
        default=None,
        description="By chat completions, or by its vendor's own API (native); null: natively where it can be",
    )
    api_key_env: str | None = Field(
        default=None, description="The variable of its key, as the operator allows it there"
    )
    plan: PlanConfig = Field(
        default=PlanConfig.model_construct(),
        description="Of mode: plan: does a person confirm it; after a failed step skip, abort or replan",
    )
    documents: list[Document] = Field(
        default=[], description="MCP resources and prompts that the system message has as data"
    )
    agent: str | dict[str, Any] | None = Field(
        default=None, description="The agent of the host's catalogue that this is; the other keys narrow it"
    )
    trusted_text: list[str] | None = Field(
        default=None, description="What provenance trusts of the prompts, where they take nodes' outputs"
    )


def read_config(config: Any, *, where: str = "config") -> AgentConfig:
    """Return the config as a model; DefinitionErrors for all its faults."""
    try:
        read = config if isinstance(config, AgentConfig) else AgentConfig.model_validate(config)
    except ValidationError as error:
        raise DefinitionErrors(problems_of(error, AgentConfig, where)) from None
    refuse(_problems_within(read, where))
    return read


def _problems_within(config: AgentConfig, where: str) -> Iterator[Problem]:
    """Yield what is wrong with values that fit the schema."""
    if isinstance(config.agent, str):
        message = "names an agent, and there is no catalogue here: only workflows of a host with agents/*.yaml have one"
        yield Problem(f"{where}/agent", str(DefinitionError(message, value=config.agent)))
    for index, document in enumerate(config.documents):
        if (document.uri is None) == (document.name is None):
            yield Problem(f"{where}/documents/{index}", "give the uri of a resource, or the name of a prompt")
    if config.mode == "plan" and config.protocol != "json":
        message = "a plan is written as text; use protocol: json, or mode: react"
        yield Problem(f"{where}/protocol", str(DefinitionError(message, value=config.protocol)))
    if config.mode != "plan" and config.plan != PlanConfig():
        yield Problem(f"{where}/plan", "belongs to plan mode; leave it out, or set mode: plan")
    for index, allowed in enumerate(config.allowed_tools):
        if isinstance(allowed, AllowedTool) and allowed.rate_limit is not None:
            problems: list[Problem] = []
            with gathering(problems):
                RateLimit.from_text(allowed.rate_limit, where=f"{where}/allowed_tools/{index}/rate_limit")
            yield from problems
    if config.tool_choice != "auto" and config.protocol != "tools":
        message = "belongs to native function calling; leave it out, or set protocol: tools"
        yield Problem(f"{where}/tool_choice", str(DefinitionError(message, value=config.tool_choice)))
    bound = [entry for entry in config.allowed_tools if isinstance(entry, AllowedTool) and entry.provenance]
    if config.approval == "on_unproven" and config.allowed_tools and not bound:
        message = "asks only for what provenance does not prove: list the accepted origins in a tool's provenance"
        yield Problem(f"{where}/approval", str(DefinitionError(message, value=config.approval)))
    if config.messages_json is None and config.prompt is None:
        yield Problem(where, "give messages_json or prompt: the agent has nothing to answer")


def problems_of(error: ValidationError, model: type[BaseModel], where: str) -> list[Problem]:
    """Return what pydantic finds, one problem for each place: it tries each form that a value may have."""
    problems: dict[str, Problem] = {}
    for fault in find_model_faults(error, keys_of(model)):
        if fault.position[-1:] == ("str",) and isinstance(fault.value, dict):
            continue  # about the text that could be given instead of an object
        place = "/".join([*([where] if where else []), *(str(part) for part in fault.position if part not in _FORMS)])
        problems.setdefault(place, Problem(place, fault.text))
    return list(problems.values())

"""LLMNode: a node of a graph, and the agent that it is in the workflow's definition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from typing_extensions import TypedDict

from agent_core.config import AfterUntrusted, AllowedTool, Approval
from agent_core.errors import DefinitionError
from engine_shim.definition.model import AGENT

MAX_STEPS = 10
"""How many replies of its model a node has, unless its config says otherwise."""
CONVERSATION = ["{{external.history}}", "{{external.context}}", "{{run.messages}}"]
"""What a node reads after its system prompt: the finished turns, then all that was said since."""
OWN_KEYS = ("model", "allowed_tools", "system_prompt", "messages_json")
"""Keys of the config that follow from the node's other arguments."""


class NodeConfig(TypedDict, total=False):
    """The other keys of an agent's config, each as `AgentConfig` has it: texts, counts, seconds, characters, USD."""

    after_untrusted: AfterUntrusted
    agent: str | dict[str, Any] | None
    answer_schema: dict[str, Any] | None
    api: Literal["chat", "native"] | None
    api_key_env: str | None
    approval: Approval
    base_url: str | None
    cost_budget: float | None
    deny_tools: list[str]
    developer_prompt: str | None
    documents: list[dict[str, Any]]
    examples: list[str | dict[str, Any]] | None
    extra: dict[str, Any]
    fallback_models: list[str]
    language: Literal["en", "zh"]
    max_history_messages: int | None
    max_input_tokens: int | None
    max_output_tokens: int | None
    max_repairs: int
    max_steps: int | None
    max_tool_calls: int | None
    mode: Literal["react", "plan"]
    observation_max_len: int | None
    parsing: Literal["strict", "tolerant"]
    plan: dict[str, Any]
    primary_output: str
    prompt: str | None
    prompts: dict[str, str] | Literal["small"]
    protocol: Literal["json", "tools"]
    reasoning: Literal["none", "low", "medium", "high"] | None
    repair_scope: Literal["all", "unreadable"]
    response_format: Literal["auto", "text", "json_object", "json_schema"]
    seed: int | None
    service_tier: str | None
    single_call_timeout: float | None
    stop: list[str] | None
    temperature: float | None
    timeout: float | None
    tool_choice: Literal["auto", "none", "required"]
    top_p: float | None
    user_id: str | None
    total_token_budget: int | None
    trace_max_bytes: int | None
    trusted_text: list[str] | None


@dataclass(frozen=True, slots=True)
class LLMNode:
    """An agent: a model, the tools that it may call, and its system prompt.

    `tools` are codes, globs, or entries of a whitelist as an agent's config has them; `retry` is as in a definition.
    `config` are other keys of the agent's config, such as max_steps.
    """

    key: str
    description: str
    model: str
    tools: Sequence[str | Mapping[str, Any] | AllowedTool] = ()
    system_prompt: str = ""
    retry: Mapping[str, Any] | None = None
    config: NodeConfig = field(default_factory=NodeConfig)

    def to_definition(self) -> dict[str, Any]:
        """Return the node as the definition has it. DefinitionError for a tool or a model that is given as an
        object."""
        node = {"id": self.key, "tool": AGENT, "config": self._agent_config()}
        described = {"description": self.description} if self.description else {}
        retry = dict(self.retry) if isinstance(self.retry, Mapping) else self.retry
        return {**node, **described, **({"retry": retry} if retry else {})}

    def _agent_config(self) -> dict[str, Any]:
        for key in OWN_KEYS:
            if key in self.config:
                raise DefinitionError("is given by the node's own arguments", where=f"{self._place}/{key}")
        if not isinstance(self.model, str):
            message = "must be a name such as openai:gpt-4o-mini; Engine(model=…) takes a client"
            raise DefinitionError(message, where=f"{self._place}/model", value=type(self.model).__name__)
        if not isinstance(self.tools, Sequence) or isinstance(self.tools, str):
            message = "must be a list of codes, globs or objects"
            raise DefinitionError(message, where=f"{self._place}/tools", value=self.tools)
        prompt = {"system_prompt": self.system_prompt} if self.system_prompt else {}
        usual = {
            "max_steps": MAX_STEPS,
            "max_history_messages": None,
            "timeout": None,
            "repair_scope": "unreadable",
        }
        tools = [self._entry(tool, index) for index, tool in enumerate(self.tools)]
        own = {"model": self.model, "allowed_tools": tools, **prompt, "messages_json": CONVERSATION}
        return {**own, **usual, **self.config}

    def _entry(self, tool: Any, index: int) -> str | dict[str, Any]:
        """Return a tool as the whitelist has it."""
        if isinstance(tool, AllowedTool):
            return tool.model_dump(exclude_unset=True)
        if isinstance(tool, str):
            return tool
        if isinstance(tool, Mapping):
            return dict(tool)
        message = 'must be the code of a tool, or {"tool": code, …}; the host, or Engine([tool]), knows the tool itself'
        raise DefinitionError(message, where=f"{self._place}/tools/{index}", value=type(tool).__name__)

    @property
    def _place(self) -> str:
        return f"nodes/{self.key}"

"""LLMNode: a node of a graph, and the agent that it is in the workflow's definition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_core.config import AllowedTool
from agent_core.errors import DefinitionError
from engine_shim.definition.model import AGENT

MAX_STEPS = 10
"""How many replies of its model a node has, unless its config says otherwise."""
CONVERSATION = ["{{external.history}}", "{{external.context}}", "{{run.messages}}"]
"""What a node reads after its system prompt: the finished turns, then all that was said since."""
OWN_KEYS = ("model", "allowed_tools", "system_prompt", "messages_json")
"""Keys of the config that follow from the node's other arguments."""


@dataclass(frozen=True, slots=True)
class LLMNode:
    """An agent: a model, the tools that it may call, and its system prompt.

    `tools` are codes, globs, or entries of a whitelist as an agent's config has them; `retry` is as in a definition.
    `config` are the agent's other keys, such as max_steps.
    """

    key: str
    description: str
    model: str
    tools: Sequence[str | Mapping[str, Any] | AllowedTool] = ()
    system_prompt: str = ""
    retry: Mapping[str, Any] | None = None
    config: Mapping[str, Any] = field(default_factory=dict)

    def to_definition(self) -> dict[str, Any]:
        """The node as the definition has it. DefinitionError for a tool or a model that is given as an object."""
        node = {"id": self.key, "tool": AGENT, "config": self._agent_config()}
        described = {"description": self.description} if self.description else {}
        return {**node, **described, **({"retry": dict(self.retry)} if self.retry else {})}

    def _agent_config(self) -> dict[str, Any]:
        for key in OWN_KEYS:
            if key in self.config:
                raise DefinitionError("is given by the node's own arguments", where=f"{self._place}/{key}")
        if not isinstance(self.model, str):
            message = "must be a name such as openai:gpt-4o-mini; Engine(model=…) takes a client"
            raise DefinitionError(message, where=f"{self._place}/model", value=type(self.model).__name__)
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
        """A tool as the whitelist has it."""
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

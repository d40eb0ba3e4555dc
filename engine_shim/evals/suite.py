"""Suite: cases and what they are run with: the eval's own tools or a host's, and perhaps the agent of a workflow."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_core.config import OF_ITS_MODEL, AllowedTool
from agent_core.errors import DefinitionError
from agent_core.prompts.render import templates
from agent_core.run.agent_tool import agent_tool
from engine_shim.definition.inputs import external_of
from engine_shim.definition.load import Workflow
from engine_shim.definition.model import AGENT, Definition, Node
from engine_shim.definition.template import render
from engine_shim.evals.canned import canned_tool
from engine_shim.evals.cases import CannedTool, Case, Fixtures
from engine_shim.evals.fixtures import fixture_tools, known_tools
from engine_shim.host.config import HostConfig
from utools.errors import UnknownTool
from utools.registry import ToolRegistry

MODEL_KEYS = ("model", *OF_ITS_MODEL)
"""Keys of an agent's config that say which model is asked."""
QUESTION_KEYS = ("prompt", "messages_json")
FIXED = ("model", "fallback_models", *QUESTION_KEYS, "allowed_tools", "language")
"""Keys of an agent's config that the cases decide, or --model."""


@dataclass(frozen=True, slots=True)
class MeasuredAgent:
    """The agent of a workflow whose config is measured."""

    workflow: Workflow
    node: Node

    @property
    def measured_keys(self) -> dict[str, Any]:
        """The node's config as it is written, without its model and its question."""
        left_out = (*MODEL_KEYS, *QUESTION_KEYS)
        return {key: value for key, value in self.node.config.items() if key not in left_out}

    def config_for(self, case: Case) -> dict[str, Any]:
        """Return the node's config with its placeholders filled; of its question only where the case asks nothing
        itself."""
        left_out = MODEL_KEYS if case.message is None else (*MODEL_KEYS, *QUESTION_KEYS)
        written = {key: value for key, value in self.node.config.items() if key not in left_out}
        names = {"external": self._external(case), "nodes": case.nodes, "env": self._env(), "run": {"id": case.name}}
        config: dict[str, Any] = render(written, names, where=f"nodes/{self.node.id}/config")
        if isinstance(own := config.get("prompts"), Mapping):
            texts = templates(
                config.get("language", "en"), own, self.workflow.base, protocol=config.get("protocol", "json")
            )
            config["prompts"] = {name: texts[name] for name in own}
        return config

    def _external(self, case: Case) -> dict[str, Any]:
        """Return the workflow's inputs with their defaults. A case that asks for itself may leave out those it needs
        not."""
        definition = self.workflow.definition
        if case.message is not None and definition.inputs is not None:
            optional = {key: value for key, value in definition.inputs.items() if key != "required"}
            definition = definition.model_copy(update={"inputs": optional})
        return external_of(definition, case.inputs, frozenset())

    def _env(self) -> dict[str, str]:
        """Return the plain variables; an eval fills in no secret."""
        definition: Definition = self.workflow.definition
        return {name: os.environ[name] for name in definition.plain if name in os.environ}


@dataclass(frozen=True, slots=True)
class Suite:
    """`tools` are the host's, if the cases use those; `host` has the endpoints of models and the secrets.

    `lines` are where the cases of a file stand in it, as `file:line: cases/0 (name)` by their names.
    """

    cases: Sequence[Case]
    world: Fixtures = field(default_factory=Fixtures)
    host: HostConfig = field(default_factory=HostConfig)
    tools: ToolRegistry | None = None
    agent: MeasuredAgent | None = None
    lines: Mapping[str, str] = field(default_factory=dict)

    def build_registry(self, canned: Mapping[str, CannedTool], home: Path | None = None) -> ToolRegistry:
        """Return the tools that a case can use. What the world knows takes the place of the host's, `canned` of both.

        The world's files lie below `home`.
        """
        own = fixture_tools(self.world, home) if self.tools is None else known_tools(self.world, home)
        offered = {tool.code: tool for tool in (*(self.tools.all() if self.tools else ()), *own)}
        for code, each in canned.items():
            if code not in offered and each.config_schema is None:
                unknown = f"{self.explain_unknown(code, offered)}; one that is made up needs a config_schema"
                raise DefinitionError(unknown, where=f"canned/{code}")
            offered[code] = canned_tool(code, each, offered.get(code))
        registry = ToolRegistry(calls=self.tools._calls if self.tools else None)
        for code, tool in offered.items():
            registry.register(tool, known_good=code not in canned)
        if self.tools is not None and AGENT not in offered:
            registry.register(agent_tool(registry))
        return registry

    def explain_unknown(self, code: str, known: Iterable[str]) -> str:
        """Return why there is no tool of this code, and which there are."""
        return str(UnknownTool(code, known, self.tools._refusal(code) if self.tools else None))

    def config_for(self, case: Case, registry: ToolRegistry) -> dict[str, Any]:
        """Return the agent's config for a case, the model aside: the workflow's, then what the case says."""
        config: dict[str, Any] = {"language": case.language}
        if self.agent is not None:
            config |= self.agent.config_for(case)
        else:
            named = [tool.code for tool in registry.for_models()] if case.tools is None else case.tools
            config["allowed_tools"] = [_entry(each) for each in named]
        if case.message is not None:
            config |= {"prompt": case.message, **({"messages_json": case.history} if case.history else {})}
        limit = {} if case.max_steps is None else {"max_steps": case.max_steps}
        return {**config, **case.config, **limit, "language": case.language}


def _entry(tool: str | AllowedTool) -> Any:
    return tool if isinstance(tool, str) else tool.model_dump(mode="json", exclude_unset=True)

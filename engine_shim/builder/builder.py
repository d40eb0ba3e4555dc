"""AgentBuilder: puts a graph of agents together, step by step, and checks it when it is built."""

import copy
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Self, Unpack, overload

from agent_core.config import AllowedTool
from agent_core.errors import DefinitionError
from agent_core.run.answer_type import Answer, AnswerReader, AnswerType
from engine_shim.builder.graph import AgentGraph
from engine_shim.builder.node import LLMNode, NodeConfig
from engine_shim.definition.errors import Problem, gathering, message_of, refuse
from engine_shim.definition.graph import Graph, graph_of
from engine_shim.definition.model import read_definition
from engine_shim.runs.engine import Engine

MAX_ITERATIONS = 50
TIMEOUT_MS = 60_000
NO_ENGINE = "must be an Engine, which has the tools and the store; or absent"
_MESSAGE = {
    "type": "object",
    "required": ["role"],
    "properties": {"role": {"enum": ["system", "user", "assistant", "tool"]}},
}
_FINISHED = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {"role": {"enum": ["user", "assistant"]}, "content": {"type": "string"}},
}
INPUTS = {
    "type": "object",
    "properties": {
        "history": {"type": "array", "items": _FINISHED, "default": [], "description": "The turns that are finished"},
        "context": {"type": "array", "items": _MESSAGE, "default": [], "description": "The conversation of this turn"},
    },
    "additionalProperties": False,
}
"""What a graph is started with, as the definition says it."""


class AgentBuilder:
    """Builds a graph of agents. All methods but `build` return the builder; nothing is checked before `build`.

    Args:
        name: The graph's name.

    Example:
        ```python
        from engine_shim import AgentBuilder, AgentState, Engine
        from agent_core.models import ScriptedModel

        model = ScriptedModel(['{"type":"final","answer":"Order 17 is on its way."}'])
        graph = (
            AgentBuilder("support-desk")
            .add_llm_node("answer", "Answers customers", "scripted", max_steps=3)
            .set_entry_point("answer")
            .build(Engine([], store="runs.db", model=model))
        )
        assert graph.entries == ("answer",)
        ```
    """

    def __init__(self, name: str) -> None:
        self._name, self._description = name, ""
        self._max_iterations, self._timeout_ms = MAX_ITERATIONS, TIMEOUT_MS
        self._nodes: list[LLMNode] = []
        self._edges: list[tuple[str, str, str | None]] = []
        self._entries: list[str] = []
        self._ends: Sequence[str] | None = None

    def set_description(self, description: str) -> Self:
        """Set what the graph is for.

        Args:
            description: A sentence for people.
        """
        self._description = description
        return self

    def set_max_iterations(self, visits: int) -> Self:
        """Set how many node visits an execution may have in all.

        Args:
            visits: The number; 50 by default.
        """
        self._max_iterations = visits
        return self

    def set_timeout(self, milliseconds: int) -> Self:
        """Set how long an execution may be active.

        Args:
            milliseconds: The time; 60,000 by default, 0 is unlimited.
        """
        self._timeout_ms = milliseconds
        return self

    def add_llm_node(
        self,
        key: str,
        description: str,
        model: str,
        tools: Sequence[str | Mapping[str, Any] | AllowedTool] = (),
        system_prompt: str = "",
        *,
        retry: Mapping[str, Any] | None = None,
        **config: Unpack[NodeConfig],
    ) -> Self:
        """Add an agent.

        Args:
            key: Its id in the graph.
            description: What it does, for people.
            model: `provider:name`.
            tools: Codes, globs or objects, as in `AgentConfig.allowed_tools`.
            system_prompt: Its instructions.
            retry: {max_attempts, delay, backoff}, as in a definition.
            config: Other keys of an agent's config, such as `max_steps`.
        """
        self._nodes.append(LLMNode(key, description, model, _as_tuple(tools), system_prompt, retry, config))
        return self

    def add_edge(self, source: str, target: str) -> Self:
        """Let one node run after another. Several plain edges out of one node run in parallel; beside edges with a
        condition they are the default.

        Args:
            source: The node before.
            target: The node after.
        """
        self._edges.append((source, target, None))
        return self

    def add_conditional_edge(self, source: str, target: str, sentence: str) -> Self:
        """Let one node run after another if a sentence is true.

        Args:
            source: The node before.
            target: The node after.
            sentence: What the source's model has to say is true of its output.
        """
        self._edges.append((source, target, sentence))
        return self

    def set_entry_point(self, key: str) -> Self:
        """Name a node that an execution may start at. Each call adds one.

        Args:
            key: The node's id.
        """
        self._entries.append(key)
        return self

    def set_end_points(self, keys: Sequence[str]) -> Self:
        """Name the nodes that an execution may end at; by default those without outgoing edges.

        One that has edges with a condition ends where none of them holds.

        Args:
            keys: The nodes' ids.
        """
        self._ends = _as_tuple(keys)
        return self

    @overload
    def build(
        self, engine: Engine | None = None, *, answer_schema: AnswerType[Answer] | None = None
    ) -> AgentGraph[Answer]: ...
    @overload
    def build(self, engine: Engine | None = None, *, answer_schema: Mapping[str, Any]) -> AgentGraph[Any]: ...
    def build(
        self, engine: Engine | None = None, *, answer_schema: AnswerType[Any] | Mapping[str, Any] | None = None
    ) -> AgentGraph[Any]:
        """Return the graph, which cannot be changed any more.

        Args:
            engine: Where its executions run; by default on the host that the command line finds.
            answer_schema: The type of what the end points answer, as of `run_agent`: the results of executions have it
                as `final_answer`.

        Returns:
            The graph.

        Raises:
            DefinitionErrors: All that is wrong with the graph.
        """
        problems: list[Problem] = [] if engine is None or isinstance(engine, Engine) else [Problem("engine", NO_ENGINE)]
        answer, definition = AnswerReader.of(answer_schema), dict[str, Any]()
        with gathering(problems):
            written = self._definition(problems)
            graph = graph_of(read_definition(written))
            definition = copy.deepcopy(written)
            problems += _misplaced_ends(graph)
            problems += _give_answer(definition["nodes"], graph.ends, answer)
        refuse(problems)
        return AgentGraph(tuple(self._nodes), definition, engine, answer)

    def _definition(self, problems: list[Problem]) -> dict[str, Any]:
        nodes: list[dict[str, Any]] = []
        for node in self._nodes:
            with gathering(problems):
                nodes.append(node.to_definition())
        if self._name is None or (isinstance(self._name, str) and not self._name.strip()):
            problems.append(Problem("name", "the graph has no name; AgentBuilder takes one, such as 'support-desk'"))
        if not self._entries:
            problems.append(Problem("entry", "the graph has no entry point; name one by set_entry_point"))
        is_number = isinstance(self._timeout_ms, int | float) and not isinstance(self._timeout_ms, bool)
        timeout = self._timeout_ms / 1000 if is_number else self._timeout_ms
        whole = {
            "id": _id_of(str(self._name)),
            "name": self._name,
            "description": self._description or None,
            "inputs": INPUTS,
            "nodes": nodes,
            "edges": [self._edge(*edge) for edge in self._edges],
            "entry": [each for n, each in enumerate(self._entries) if each not in self._entries[:n]] or None,
            "ends": list(self._ends) if isinstance(self._ends, tuple) else self._ends,
            "max_iterations": self._max_iterations,
            "max_visits": self._max_iterations,
            "timeout": timeout,
        }
        return {key: value for key, value in whole.items() if value is not None}

    def _edge(self, source: str, target: str, sentence: str | None) -> dict[str, Any]:
        edge = {"from": source, "to": target}
        if sentence is None:
            return edge
        models = [node.model for node in self._nodes if node.key == source]
        return {**edge, "ask": sentence, **({"model": models[0]} if models else {})}


def _as_tuple(given: Any) -> Any:
    """Return a list as it is by now; what is none, such as a text, stays, and `build` refuses it."""
    return tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else given


def _id_of(name: str) -> str:
    """Return the id of the workflow of a graph: its name, with a digest of that where other letters or digits than
    ASCII's are left out, so that two names stay apart."""
    latin = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")
    if latin and not any(each.isalnum() for each in name if not each.isascii()):
        return latin
    return f"{latin or 'graph'}-{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _give_answer(nodes: Sequence[dict[str, Any]], ends: Collection[str], answer: AnswerReader) -> Iterator[Problem]:
    """Let the end points answer by the schema; yield those that have another of their own."""
    for node in nodes:
        if node["id"] in ends:
            try:
                node["config"] = answer.add_to(node["config"])
            except DefinitionError as error:
                yield Problem(f"nodes/{node['id']}/config/answer_schema", message_of(error))


def _misplaced_ends(graph: Graph) -> Iterator[Problem]:
    """End points that an execution always continues from, and nodes where one ends that are no end points."""
    for name in graph.order:
        edges = graph.outgoing[name]
        if name in graph.ends and any(not edge.conditional for edge in edges):
            what = f"no execution ends at {name!r}, as a plain edge leaves it; give the edge a condition, or remove one"
            yield Problem("ends", what)
        elif name not in graph.ends and not edges:
            yield Problem("ends", f"no edge leaves {name!r}, and it is not an end point; add an edge, or list it")

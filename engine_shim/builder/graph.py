"""AgentGraph: a graph of agents that was built; it is a workflow definition, and executes as one."""

import copy
from asyncio import CancelledError
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic
from weakref import WeakSet

from agent_core.run.answer_type import AnswerReader
from agent_core.run.cancellation import require_asyncio
from agent_core.run.event_stream import stream_events
from agent_core.run.events import Event, StreamResult
from engine_shim.builder.execution import Execution
from engine_shim.builder.node import LLMNode
from engine_shim.builder.state import AgentState, Answer, ExecutionResult, Message
from engine_shim.definition.errors import Problem
from engine_shim.definition.graph import graph_of, reach
from engine_shim.definition.load import load_workflow
from engine_shim.definition.model import read_definition
from engine_shim.definition.validate import validate
from engine_shim.errors import DefinitionError
from engine_shim.runs.drive import OnEvent
from engine_shim.runs.engine import Engine
from utools.schema.faults import hint


@dataclass(frozen=True)
class AgentGraph(Generic[Answer]):
    """A graph that cannot be changed. Its executions are runs of an engine: nothing of it runs by itself."""

    nodes: tuple[LLMNode, ...]
    _definition: dict[str, Any] = field(repr=False)
    _given_engine: Engine | None = field(default=None, repr=False)
    _answer: AnswerReader = field(default_factory=AnswerReader, repr=False)
    _executions: "WeakSet[Execution[Answer]]" = field(default_factory=WeakSet, init=False, repr=False, compare=False)

    @cached_property
    def engine(self) -> Engine:
        """The engine that its executions run on."""
        return self._given_engine or Engine.from_config()

    @property
    def entries(self) -> tuple[str, ...]:
        """The nodes that an execution may start at."""
        return tuple(self._definition["entry"])

    def to_definition(self) -> dict[str, Any]:
        """Return the workflow's definition, as JSON and YAML can hold it."""
        return copy.deepcopy(self._definition)

    def get_node(self, key: str) -> LLMNode:
        """Return the node of this key. DefinitionError when there is none."""
        for node in self.nodes:
            if node.key == key:
                return node
        keys = [node.key for node in self.nodes]
        raise DefinitionError(f"there is no such node; {hint(key, keys)}", where="key", value=key)

    def validate(self) -> list[Problem]:
        """Return what is wrong with it on its host, such as an unregistered tool; empty when nothing is."""
        return validate(load_workflow(self._definition), self.engine.registry)

    def execute(self, entry: str, state: AgentState, *, deps: object = None) -> Execution[Answer]:
        """Begin an execution at an entry point, in the running event loop; it continues by itself.

        `deps` is as of `Engine.run`. DefinitionError, with nothing begun, for another entry, a state without a message,
        and for what keeps the workflow from running on this host.
        """
        return self._begin(entry, state, deps)

    def stream(
        self, entry: str, state: AgentState, *, deps: object = None
    ) -> AsyncGenerator[Event | StreamResult[ExecutionResult[Answer]], None]:
        """Yield the events of an execution as they happen, and last `{"event": "result", "result": …}` with its result.

        It begins with the iteration and never waits for it. To stop iterating aborts it. What `execute` raises, and
        what awaiting the execution raises, the iteration raises.
        """

        async def run(hear: Callable[[Event], None]) -> ExecutionResult[Answer]:
            execution = self._begin(entry, state, deps, hear)
            try:
                return await execution
            except CancelledError:
                await execution.stop()
                raise

        return stream_events(run)

    def resume(self, run_id: str, state: AgentState | None = None, *, deps: object = None) -> Execution[Answer]:
        """Go on with an execution whose process died, or that waited or was paused, by its id.

        Only `send_chunk` of the state is used: the journal has the messages. RunNotFound when the store does not hold
        it.
        """
        require_asyncio()
        self.engine.status(run_id)
        return self._drive(run_id, state or AgentState(), deps)

    async def cancel(self) -> None:
        """Abort all executions that were begun or resumed here and have not ended."""
        for execution in list(self._executions):
            if not execution.has_ended:
                await execution.abort()

    def _begin(self, entry: str, state: AgentState, deps: object, on_event: OnEvent = None) -> Execution[Answer]:
        self.engine._check_caller(on_event, deps)
        if not isinstance(state, AgentState):
            raise DefinitionError("must be an AgentState", where="state", value=type(state).__name__)
        history, context = (_check_messages(name, getattr(state, name)) for name in ("history", "context"))
        external = {"history": _finished_turns(history), "context": context}
        if not (external["history"] or external["context"]):
            raise DefinitionError("has no message to answer", where="state/context")
        run_id = self.engine.begin(self._definition_from(entry), external=external)
        return self._drive(run_id, state, deps, on_event)

    def _drive(self, run_id: str, state: AgentState, deps: object, on_event: OnEvent = None) -> Execution[Answer]:
        execution = Execution[Answer](
            self.engine,
            run_id,
            tuple(node.key for node in self.nodes),
            state.send_chunk,
            ends=graph_of(read_definition(self._definition)).ends,
            answer=self._answer,
            deps=deps,
            on_event=on_event,
        )
        self._executions.add(execution)
        return execution

    def _definition_from(self, entry: str) -> dict[str, Any]:
        """Return the definition with one entry, and without the nodes that only others lead to."""
        if entry not in self.entries:
            message = f"is no entry point; {hint(str(entry), self.entries)}"
            raise DefinitionError(message, where="entry", value=entry)
        outgoing = graph_of(read_definition(self._definition)).outgoing
        reached = reach(entry, lambda name: (edge.target for edge in outgoing[name]))
        definition = self.to_definition()
        definition["entry"] = [entry]
        definition["nodes"] = [node for node in definition["nodes"] if node["id"] in reached]
        definition["edges"] = [edge for edge in definition["edges"] if edge["from"] in reached]
        if "ends" in definition:
            definition["ends"] = [name for name in definition["ends"] if name in reached]
        return definition


def _check_messages(name: str, given: Any) -> list[Message]:
    """Return the messages of a state; DefinitionError for what is no list of them."""
    messages = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else None
    if messages is None or not all(isinstance(each, Mapping) for each in messages):
        raise DefinitionError("must be a list of messages, {role, content} each", where=f"state/{name}", value=given)
    return messages


def _finished_turns(history: list[Message]) -> list[Message]:
    """Return what users and assistants said in turns that are finished, without calls and what tools answered."""
    said = (message for message in history if message.get("role") in ("user", "assistant") and message.get("content"))
    return [{"role": message["role"], "content": message["content"]} for message in said]

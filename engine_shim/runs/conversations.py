"""HostConversations: the stored conversations of a host with its agents, whose turns are runs of its engine."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol

from agent_core.agents.catalog import AgentCatalog
from agent_core.agents.definition import AgentDefinition
from agent_core.agents.errors import AgentNotFound
from agent_core.agents.history import SpentTokens, join_turns, read_turns, undo_turn
from agent_core.agents.reply import ChatReply, read_run_reply, refuse_spent
from agent_core.agents.turn import NODE, TurnOptions, define_turn
from agent_core.config import OF_ITS_MODEL, AgentConfig
from agent_core.errors import Unreadable
from agent_core.journal.path import child
from agent_core.journal.reader import read_run
from agent_core.outputs import RunError, WaitingCall
from agent_core.statuses import ListedStatus
from engine_shim.definition.errors import refuse
from engine_shim.definition.load import Workflow
from engine_shim.definition.model import ROOT, read_definition
from engine_shim.definition.validate import CheckedWorkflow, check
from engine_shim.errors import DefinitionError
from engine_shim.host.config import HostConfig
from engine_shim.runs.engine import Engine
from engine_shim.runs.grant import Grant
from engine_shim.runs.host_check import HostCheck
from engine_shim.store.conversations import find_waiting_turn
from engine_shim.store.open import cipher_of, shared_database
from engine_shim.store.run_store import DatabaseRunStore
from utools.context.store import ContextStore
from utools.context.turns import Message, Turn, is_encrypted
from utools.defaults import host_context_store
from utools.registry import ToolRegistry

DEFAULT_AGENT: Final = "assistant"
AGENT_STRAND: Final = child(ROOT, NODE, 1)
"""The strand of the agent in a turn."""
MAX_KINDS: Final = 256
"""How many definitions of turns are kept, each checked: as a rule one for each agent."""


class RestingRun(Protocol):
    """A run that has ended, waits or is paused: its result, or the view of it."""

    @property
    def run_id(self) -> str: ...

    @property
    def status(self) -> ListedStatus: ...

    @property
    def nodes(self) -> Mapping[str, Any]: ...

    @property
    def waiting(self) -> Sequence[WaitingCall]: ...

    @property
    def error(self) -> RunError | None: ...


class HostConversations:
    """The conversations of one host. With `model` it answers in place of every agent's own.

    DefinitionError where the host has no agents, and no model for one that stands in.
    """

    def __init__(self, engine: Engine, config: HostConfig, store: DatabaseRunStore, model: str | None = None) -> None:
        if engine._grants.turns is None:
            raise DefinitionError("conversations need an engine by a host's configuration", where="engine")
        self.engine, self._config, self._runs = engine, config, store
        self.catalog = _choose_agents(engine._agents or AgentCatalog(engine.registry), engine.registry, model)
        self.store: ContextStore = host_context_store(
            config.tenant, database=shared_database(store), cipher=cipher_of(store)
        )
        self._base = Path() if model is not None else config.base
        self._grant: Grant = engine._grants.turns
        self._make, self._spent = lru_cache(MAX_KINDS)(self._define), SpentTokens()

    @property
    def root(self) -> Path | None:
        """The directory that file tools see; None for a host without."""
        return None if self._config.root is None else self._config.base / self._config.root

    def choose_agent(self, agent: str | None) -> str:
        """Return the agent that answers: the one of this name, or the only one. AgentNotFound."""
        names = [each.name for each in self.catalog.list()]
        if agent is None and len(names) == 1:
            return names[0]
        if agent is None:
            raise AgentNotFound("", names)
        return self.catalog.get(agent).name

    def make_turn(
        self,
        agent: str,
        *,
        max_tool_calls: int | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        is_stored: bool = True,
    ) -> CheckedWorkflow:
        """Return a turn with an agent as a workflow. Its inputs are {message, conversation_id}, or {message, history}
        where its caller keeps the conversation. AgentNotFound; DefinitionErrors for a model that cannot be asked."""
        budget = self._budget_of(agent)
        return self._make(agent, TurnOptions(max_tool_calls, max_tokens, temperature, budget, is_stored))

    def check_askable(self, agent: str) -> None:
        """AgentNotFound; DefinitionErrors for a model of the agent that cannot be asked here."""
        turn = self.make_turn(agent)
        refuse(turn.workflow.locate(each) for each in HostCheck(self._grant).run_problems(turn.workflow))

    def _define(self, agent: str, options: TurnOptions) -> CheckedWorkflow:
        definition = define_turn(agent, self.catalog.config_of(agent), options)
        where = f"nodes/{1 if options.is_stored else 0}/config"
        given = {f"{where}/{key}": f"agent {agent!r}, {key}" for key in AgentConfig.model_fields}
        workflow = Workflow(read_definition(definition), self._base, given=given, agent=agent)
        return check(workflow, self._grant.registry)

    async def refuse_spent(self, agent: str, conversation: str) -> ChatReply | None:
        """Return the reply where a conversation has spent its tokens; None while it has some, or no limit."""
        budget = self._budget_of(agent)
        if budget is None:
            return None
        await self.turns(conversation)
        spent = await self._spent.count(await read_turns(self.store, conversation), self._runs.journal)
        return refuse_spent(conversation, spent, budget) if spent >= budget else None

    def _budget_of(self, agent: str) -> int | None:
        limits = (self._config.max_conversation_tokens, self.catalog.get(agent).max_conversation_tokens)
        return min((each for each in limits if each is not None), default=None)

    async def history(self, conversation: str) -> list[Message]:
        """Return the stored messages, oldest first, each with the `trace_id` of its run."""
        await self.turns(conversation)
        return join_turns(await read_turns(self.store, conversation))

    async def turns(self, conversation: str) -> list[Turn]:
        """Return the stored turns, oldest first. Unreadable without the key that they are encrypted by."""
        turns = await self.store.turns(conversation)
        if any(map(is_encrypted, turns)):
            from utools.context.store_encrypted import subject_of

            raise Unreadable(subject_of(conversation), erased=False)
        return turns

    async def delete(self, conversation: str) -> bool:
        """Delete a conversation once no turn of it is driven; whether there was one. The records of its runs stay."""
        async with self.engine._turn_order.holding(conversation):
            return await self.store.clear(conversation)

    async def undo(self, conversation: str) -> Turn:
        """Take back the last stored turn and return it; return no message if there is none. Its run stays."""
        async with self.engine._turn_order.holding(conversation):
            return await undo_turn(self.store, conversation)

    def find_waiting(self, conversation: str) -> str | None:
        """Return the run of the conversation's newest turn that waits for a person."""
        return find_waiting_turn(self._runs, conversation)

    async def last_agent(self, conversation: str) -> str | None:
        """Return the agent of this host that answered last in a conversation, as far as the journal knows."""
        turns = await self.turns(conversation)
        run = turns[-1][0].get("trace_id") if turns else None
        return None if run is None else self.agent_of(run)

    def agent_of(self, run: str) -> str | None:
        """Return the agent of this host whose turn a run is."""
        tape = self._runs.journal.load(run)
        root = next((path for path in tape if "/" not in path and tape[path][0].kind == "run_started"), None)
        agent = "" if root is None else read_run(tape, root).agent
        return agent if agent in {each.name for each in self.catalog.list()} else None


def reply_of(conversation: str, turn: RestingRun) -> ChatReply:
    """Return the reply of a turn that has come to rest."""
    output = turn.nodes.get(NODE)
    answered = output if output is not None and "finish_reason" in output else None
    return read_run_reply(conversation, turn.run_id, turn.status, answered, turn.waiting, turn.error)


def _choose_agents(catalog: AgentCatalog, registry: ToolRegistry, model: str | None) -> AgentCatalog:
    """Return the agents that answer, with the model that stands in for their own."""
    agents = [_with_model(agent, model) for agent in catalog.list()] or [_default_agent(model)]
    chosen = AgentCatalog(registry)
    chosen.left_out |= catalog.left_out
    for agent in agents:
        chosen.register(agent)
    return chosen


def _with_model(agent: AgentDefinition, model: str | None) -> AgentDefinition:
    if model is None:
        return agent
    policy = {key: value for key, value in agent.runtime_policy.items() if key not in OF_ITS_MODEL}
    return agent.model_copy(update={"model": model, "runtime_policy": policy})


def _default_agent(model: str | None) -> AgentDefinition:
    """Return an agent with the default tools; a person decides on what writes."""
    if model is None:
        what = "this host has no agents: name a model, as in `--model openai:gpt-4o-mini`, or write agents/NAME.yaml"
        raise DefinitionError(what, where="model")
    return AgentDefinition.model_validate(
        {
            "name": DEFAULT_AGENT,
            "description": "Stands in where the host has no agents.",
            "model": model,
            "runtime_policy": {"approval": "on_write"},
        }
    )

"""HostConversations: the conversations of one host, with its agents, or one that stands in where there is none."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agent_core.agents.catalog import AgentCatalog
from agent_core.agents.chat import Conversations, FindWaiting
from agent_core.agents.conversation import AgentExecutor
from agent_core.agents.definition import AgentDefinition
from agent_core.journal.reader import read_run
from agent_core.journal.store import Journal
from agent_core.models.client import ModelClient
from agent_core.records import AgentNote
from agent_core.run.node import ROOT
from engine_shim.errors import DefinitionError
from engine_shim.host.config import HostConfig
from engine_shim.host.registry import build_registry
from engine_shim.runs.agents import build_catalog
from engine_shim.runs.models import HostModels
from engine_shim.runs.open_grants import agents_reach
from engine_shim.runs.prepare import with_runs
from engine_shim.store.entries import RunFilter
from engine_shim.store.open import shared_database
from engine_shim.store.run_list import list_runs
from engine_shim.store.run_store import DatabaseRunStore
from engine_shim.telemetry.run_telemetry import RunTelemetry
from utools.context.store import ContextStore
from utools.defaults import host_context_store
from utools.registry import ToolRegistry

DEFAULT_AGENT = "assistant"
OF_ITS_MODEL = ("base_url", "api_key_env", "fallback_models")
"""Keys of a runtime policy that are meant for the agent's own model, and for no other."""


@dataclass(frozen=True, slots=True)
class HostConversations:
    """What conversations on a host need. `model` answers for every agent; without it their own do. Their runs are told
    to `telemetry`."""

    config: HostConfig
    catalog: AgentCatalog
    registry: ToolRegistry
    store: ContextStore
    journal: Journal
    models: HostModels
    model: str | None
    telemetry: RunTelemetry | None = None
    find_waiting: FindWaiting = lambda conversation: None

    def of(self, agent: str) -> Conversations:
        """The conversations with one agent. AgentNotFound; DefinitionError for a model that cannot be asked."""
        limits = (self.config.max_conversation_tokens, self.catalog.get(agent).max_conversation_tokens)
        return Conversations(
            self.executor(agent),
            self.store,
            agent=agent,
            max_conversation_tokens=min((each for each in limits if each is not None), default=None),
            find_waiting=self.find_waiting,
        )

    def executor(self, agent: str) -> AgentExecutor:
        """What executes single turns of an agent. AgentNotFound; DefinitionError for a model that cannot be asked."""
        return AgentExecutor(
            self.catalog,
            root=self.config.base / (self.config.root or "."),
            tools_at=lambda _: self.registry,
            model=self._client(self.catalog.get(agent)),
            journal=self.journal,
            secrets=self.config.secrets(),
            observe=None if self.telemetry is None else self.telemetry.observe,
        )

    async def last_agent(self, conversation: str) -> str | None:
        """Which agent of this host answered last in a conversation, as far as the journal knows."""
        turns = await self.store.turns(conversation)
        run = turns[-1][0].get("trace_id") if turns else None
        return None if run is None else self.agent_of(run)

    def agent_of(self, run: str) -> str | None:
        """Which agent of this host a turn began with."""
        note = agent_note(self.journal, run)
        known = {agent.name for agent in self.catalog.list()}
        return note["name"] if note is not None and note["name"] in known else None

    def _client(self, agent: AgentDefinition) -> ModelClient:
        base = self.config.base if self.model is None else Path()
        return self.models.at(base)(agent.model, agent.runtime_policy)


def open_conversations(
    config: HostConfig,
    store: DatabaseRunStore,
    model: str | None,
    registry: ToolRegistry | None = None,
    telemetry: RunTelemetry | None = None,
) -> HostConversations:
    """The conversations of a host whose runs are in `store`, with its tools if they were built already.

    DefinitionError where it has no agents, and no model for one that stands in.
    """
    database = shared_database(store)
    registry = with_runs(build_registry(config, database) if registry is None else registry, None)
    catalog = build_catalog(config, registry)
    agents = [_with_model(agent, model) for agent in catalog.list()] or [_default_agent(model)]
    chosen = AgentCatalog(registry)
    chosen.left_out |= catalog.left_out
    for agent in agents:
        chosen.register(agent)
    models = HostModels(
        base_urls=config.endpoints,
        default_provider=config.default_provider,
        tape_of=store.journal.load,
        reach=agents_reach(config) if model is None else None,
    )
    context = host_context_store(config.tenant, database=database)
    find = partial(find_waiting_turn, store)
    return HostConversations(config, chosen, registry, context, store.journal, models, model, telemetry, find)


def find_waiting_turn(store: DatabaseRunStore, conversation: str) -> str | None:
    """The run of the conversation's newest turn that waits for a person."""
    for entry in list_runs(store, RunFilter(statuses=("waiting",))):
        note = agent_note(store.journal, entry.run)
        if note is not None and note.get("conversation") == conversation:
            return entry.run
    return None


def agent_note(journal: Journal, run: str) -> AgentNote | None:
    """What a run's first record says of the agent that it is a turn of; None for any other run."""
    tape = journal.load(run)
    return read_run(tape, ROOT).note if ROOT in tape else None


def _with_model(agent: AgentDefinition, model: str | None) -> AgentDefinition:
    if model is None:
        return agent
    policy = {key: value for key, value in agent.runtime_policy.items() if key not in OF_ITS_MODEL}
    return agent.model_copy(update={"model": model, "runtime_policy": policy})


def _default_agent(model: str | None) -> AgentDefinition:
    """An agent with the default tools; a person decides on what writes."""
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

"""Tenants: the hosts that one server serves, each with stores, tools, workflows and agents of its own."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from agent_core.agents.catalog import AgentCatalog
from agent_core.outputs import Json
from agent_core.run.secrets import verifying_keys
from engine_shim.definition.validate import CheckedWorkflow
from engine_shim.errors import DefinitionError
from engine_shim.host.config import HostConfig
from engine_shim.host.registry import take_up_again
from engine_shim.host.saved_files import SavedFiles
from engine_shim.report.build import build_report
from engine_shim.report.report import Report
from engine_shim.runs.engine import MAX_RUNNING, Engine
from engine_shim.service.callbacks import Callback, check_callback
from engine_shim.service.completions import Completions
from engine_shim.service.conversations import ConversationService
from engine_shim.service.decision_links import DecisionLinks, open_links
from engine_shim.service.definitions import open_catalog, open_conversations
from engine_shim.service.drafts import Drafts, Format
from engine_shim.service.event_sender import EventSender, Source
from engine_shim.service.host_tools import HostTools
from engine_shim.service.run_service import RunService, key_to_id
from engine_shim.service.run_view import RunView
from engine_shim.service.shares import Share, Shares
from engine_shim.service.spent import Account
from engine_shim.service.triggers import Triggers, TriggerSecrets
from engine_shim.service.webhooks import open_senders
from engine_shim.service.worker_pool import WorkerPool
from engine_shim.service.workflow_files import WorkflowFiles
from engine_shim.service.workflows import WorkflowCatalog
from engine_shim.store.callbacks import RunCallback
from engine_shim.store.clock_watch import ClockWatch
from engine_shim.store.entries import RunFilter
from engine_shim.store.open import open_store
from engine_shim.store.run_store import DatabaseRunStore
from engine_shim.store.search import RunPage, RunQuery, RunSearch
from engine_shim.telemetry.telemetry import Telemetry
from utools.databases.store_address import StoreAddress
from utools.limiter import Limiter, Line

MOST_REPORTED: Final = 2000
"""Runs that a report over HTTP looks at: it takes a few seconds, in which a server has other things to do as well."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """One of those that a server serves; the host itself has no name. Without agents it has no `conversations`."""

    config: HostConfig
    store: DatabaseRunStore
    engine: Engine
    workflows: WorkflowCatalog
    runs: RunService
    conversations: ConversationService | None
    tools: HostTools
    completions: Completions
    triggers: Triggers
    files: WorkflowFiles
    checks: WorkerPool
    search: RunSearch
    searches: WorkerPool
    reports: WorkerPool
    senders: list[EventSender]
    clock: ClockWatch

    @property
    def name(self) -> str | None:
        return self.config.tenant

    def take_up_again(self) -> None:
        """Ask the sources of tools that are left out once more. With one that is back, so are the workflows of it."""
        if take_up_again(self.config, self.engine.registry):
            self.workflows.reload()

    async def view(self, run: str) -> RunView:
        """Return a run of this tenant. RunNotFound."""
        return await self.runs.view(run)

    def open_callback(self, url: str, *, decides: bool) -> Callback:
        """Return the URL at which the caller of a run wants to be told of it; links go to one who `decides`.
        DefinitionError for a URL that this host does not call."""
        check_callback(self.config.callbacks, url)
        return Callback(self.store, RunCallback(url, decides))

    async def list_runs(self, query: RunQuery) -> RunPage:
        """Return a page of the runs that are this host's, the newest first. To look into records takes a while."""
        own = replace(query, wanted=replace(query.wanted, host=self.engine.host))
        if query.looks_inside:
            return await self.searches.run(self.search.find, own)
        return await asyncio.to_thread(self.search.find, own)

    async def report(self, wanted: RunFilter, account: Account) -> Report:
        """Return the report of the newest runs that are this host's, with the keys of this host. OverSpent."""
        own, keys = replace(wanted, host=self.engine.host), verifying_keys()
        return await self.reports.run_for(account, build_report, self.store, own, keys=keys, most=MOST_REPORTED)

    def export(self, run: str, after: int = 0) -> tuple[bytes, int]:
        """Return the lines of a run's journal file that were appended after a position, and the position of the last
        one."""
        rows = self.store.tail(run, after)
        lines = self.store.contents.write_lines(run, (row for _, row in rows))
        return lines, rows[-1][0] if rows else after

    async def check_draft(self, text: str, form: Format, account: Account) -> Json:
        """Return what is wrong with a text, and what it defines. A large one takes a while, in a thread. OverSpent."""
        return await self.checks.run_for(account, self.files.drafts.check, text, form)

    async def save_version(
        self, name: str, text: str, form: Format, expects: str | None, account: Account
    ) -> tuple[CheckedWorkflow, bool]:
        """Save a text as a new version of a workflow. Raises what `WorkflowFiles.save` does, and OverSpent."""
        return await self.checks.run_for(account, self.files.save, name, text, form, expects, account.token)

    async def run_draft(
        self,
        text: str,
        form: Format,
        external: Json,
        *,
        by: str,
        key: str | None,
        trace: str | None,
        is_followed: bool,
        account: Account,
    ) -> str:
        """Begin a run of a text as it stands; gives its id. With a `key` that came before for the same text, it is the
        run of that time. Raises what `RunService.submit` does, and OverSpent."""
        checked = await self.checks.run_for(account, self.files.drafts.load, text, form)
        named = None if key is None else key_to_id(f"draft/{sha256(text.encode()).hexdigest()}", key)
        run, _ = await self.runs.submit(
            checked, external, by=by, key=key, run_id=named, trace=trace, is_followed=is_followed
        )
        return run

    async def list_conversations(self, most: int) -> list[Json]:
        """Return the conversations with this tenant's agents, newest first."""
        if self.conversations is None:
            return []
        turns = await asyncio.to_thread(self.search.find_newest_turns, most)
        return await self.conversations.describe(turns, most)

    async def close(self, grace: float) -> None:
        """Let go of what is driven, and close the stores."""
        await self.runs.close(grace)
        await self.engine.close()


class Tenants(Mapping[str | None, Tenant]):
    """All tenants of a host by name, the host itself under None.

    The runs of a tenant are in a file beside the host's, `runs.acme.db` beside `runs.db`, or in a schema of the same
    database.
    """

    def __init__(
        self,
        config: HostConfig,
        store: StoreAddress,
        model: str | None = None,
        telemetry: Telemetry | None = None,
        shares: Shares | None = None,
    ) -> None:
        telemetry, runs = telemetry or Telemetry(), None if shares is None else shares.runs
        secrets, slots = TriggerSecrets(config.note_signing), Limiter(MAX_RUNNING)
        self.links = open_links(config)
        """The links by which people decide about calls, of all tenants; None where the host makes none."""
        own = open_tenant(config, store, model, telemetry, Shared(secrets, slots.line(None), runs, self.links))
        self._by_name: dict[str | None, Tenant] = {None: own}
        configs = {name: config.for_tenant(name) for name in config.tenants}
        directories = {name: _workflows_of(each).resolve() for name, each in ((None, config), *configs.items())}
        users = Counter(directories.values())
        for name, each in configs.items():
            is_own, about = users[directories[name]] == 1, telemetry.of_tenant(name)
            shared = Shared(secrets, slots.line(name), runs, self.links)
            self._by_name[name] = open_tenant(each, store, model, about, shared, is_own=is_own)

    def __getitem__(self, name: str | None) -> Tenant:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


@dataclass(frozen=True, slots=True)
class Shared:
    """What a tenant shares with the others of its server: the secrets of triggers, the turns in which runs are driven,
    how many there may be, and what makes links."""

    secrets: TriggerSecrets
    slots: Line | None = None
    runs: Share | None = None
    links: DecisionLinks | None = None


def open_tenant(
    config: HostConfig,
    address: StoreAddress,
    model: str | None,
    telemetry: Telemetry,
    shared: Shared | None = None,
    *,
    is_own: bool = True,
) -> Tenant:
    """Return what serves one tenant; `is_own` says that no other reader uses its workflows. DefinitionErrors for all
    faults of its workflows and agents."""
    shared = shared or Shared(TriggerSecrets(config.note_signing))
    store = open_store(address, tenant=config.tenant)
    store.database.prepare()
    store.clock.measure()
    store.note_tenant(config.tenant)
    engine = Engine._of_host(config, store=store, model=model, telemetry=telemetry, is_served=True, slots=shared.slots)

    directory, workflows = _workflows_of(config), open_catalog(config, engine)
    if "workflows" in config.model_fields_set and not directory.is_dir():
        raise DefinitionError("there is no such directory", where=config.at("workflows"), value=config.workflows)
    workflows.load()
    runs = RunService(engine, share=shared.runs, tenant=config.tenant)
    found = open_conversations(config, engine, model)
    conversations = None if found is None else ConversationService(found, runs)
    triggers = _open_triggers(config, store, workflows, runs, shared.secrets)
    drafts = Drafts(directory, engine._grants.http, engine._agents or AgentCatalog(()))
    return Tenant(
        config,
        store,
        engine,
        workflows,
        runs,
        conversations,
        tools=HostTools(engine, runs, config.execute_tools, workflows),
        completions=Completions(conversations, runs, workflows),
        triggers=triggers,
        files=WorkflowFiles(directory, workflows, drafts, SavedFiles(directory), is_own),
        checks=WorkerPool(),
        search=RunSearch(store),
        searches=WorkerPool(),
        reports=WorkerPool(1),
        senders=open_senders(config, Source(store, runs.read, store.clock.read, shared.links, config.tenant)),
        clock=ClockWatch(store),
    )


def _open_triggers(
    config: HostConfig, store: DatabaseRunStore, workflows: WorkflowCatalog, runs: RunService, secrets: TriggerSecrets
) -> Triggers:
    """Return the triggers of a host or tenant, read. DefinitionErrors for those that cannot be used."""
    directory, clock = config.base / config.triggers, store.clock.now
    triggers = Triggers(directory, store.database, workflows, runs, tenant=config.tenant, secrets=secrets, clock=clock)
    triggers.load()
    return triggers


def _workflows_of(config: HostConfig) -> Path:
    """Return the directory of the workflows of a host or tenant."""
    return config.base / config.workflows

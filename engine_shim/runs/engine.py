"""Engine: runs workflows on one host."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from agent_core.agents.catalog import AgentCatalog
from agent_core.models.client import ModelClient
from agent_core.run.arguments import model_of
from agent_core.run.secrets import Secrets
from engine_shim.errors import DefinitionError
from engine_shim.host.config import HostConfig, TemporalConfig
from engine_shim.host.find import NAME, load_host_config
from engine_shim.host.registry import build_registry
from engine_shim.runs.agents import build_catalog
from engine_shim.runs.beginning import Beginning
from engine_shim.runs.grant import Grants
from engine_shim.runs.models import HostModels
from engine_shim.runs.open_grants import name_model, open_grants, open_turn_grant
from engine_shim.runs.prepare import open_registry, with_runs
from engine_shim.store.open import check_encryption, cipher_of, shared_database, store_of
from engine_shim.store.run_store import RunStore, StrPath
from engine_shim.telemetry.run_telemetry import RunTelemetry
from engine_shim.telemetry.telemetry import Telemetry
from utools.files.protected_paths import protect_name
from utools.limiter import Limiter, Line
from utools.registry import ToolRegistry
from utools.tool import Tool

MAX_RUNNING = 100


class Engine(Beginning):
    """Runs workflows on one host.

    Args:
        registry: A registry, or tools; by default the built-in tools under the working directory. The node `agent_core`
            is there besides, and its agents have the same tools.
        store: Where runs are kept, or its address (a SQLite file, a PostgreSQL URL); by default AGENT_CORE_STORE, else
            a file in the user's data directory. An engine finds each run of its store: tenants have a store, and an
            engine, each.
        model: A client or `provider:name`, which answers for every model name; by default the names of the definitions
            are looked up.
        secrets: What tools may read of the environment.
        base_urls: Variables of keys by the endpoints that they are for, beside those of the known vendors.
        default_provider: The provider of model names that name none.
        max_running: How many runs are driven at a time; any number may be under way, and the others wait in order.
        agents: The agents that a node may name.
        telemetry: Where spans and metrics go; by default to the providers that the program has set up for
            OpenTelemetry.
        temporal: The server whose workers drive the runs, while this process follows them.

    Attributes:
        registry: The tools of this host.
        store: Where its runs are kept.

    Raises:
        DefinitionError: A store, a model or a tool that cannot be used.

    Example:
        ```python
        from engine_shim import Engine
        from utools import tool


        @tool(effect="read")
        def stock(article: str) -> int:
            '''Count an article.'''
            return 12


        engine = Engine([stock], store="runs.db")
        flow = {"id": "count", "nodes": [{"tool": "stock", "config": {"article": "{{external.article}}"}}]}
        result = engine.run_sync(flow, external={"article": "A-17"})
        assert (result.status, result.outputs["stock"]) == ("completed", 12)
        ```
    """

    def __init__(
        self,
        registry: ToolRegistry | Iterable[Tool] | None = None,
        *,
        store: RunStore | StrPath | None = None,
        model: ModelClient | str | None = None,
        secrets: Secrets | None = None,
        base_urls: Mapping[str, str] | None = None,
        default_provider: str = "openai",
        max_running: int = MAX_RUNNING,
        agents: AgentCatalog | None = None,
        telemetry: Telemetry | None = None,
        temporal: TemporalConfig | None = None,
    ) -> None:
        if not isinstance(max_running, int) or max_running < 1:
            raise DefinitionError("must be 1 or more", where="max_running", value=max_running)
        model, opened = model_of(model), store_of(store)
        tools = with_runs(open_registry(registry, shared_database(opened), cipher_of(opened)), model)
        known = (secrets or Secrets()).hiding((base_urls or {}).values())
        load = opened.journal.load
        models = HostModels(model, base_urls=base_urls, default_provider=default_provider, tape_of=load)
        grants = Grants.alike(tools, known, models)
        self._open(opened, grants, agents, telemetry, default_provider, Limiter(max_running).line(None), temporal)

    def _open(
        self,
        store: RunStore,
        grants: Grants,
        agents: AgentCatalog | None,
        telemetry: Telemetry | None,
        default_provider: str,
        slots: Line,
        temporal: TemporalConfig | None,
    ) -> None:
        """Take what definitions may use, and in which slots runs are driven; several engines may share these."""
        protect_name(NAME)
        told = RunTelemetry(telemetry or Telemetry(), store, default_provider)
        super().__init__(store, grants, agents, told, slots, temporal)

    @classmethod
    def from_config(
        cls,
        path: StrPath | None = None,
        *,
        store: RunStore | StrPath | None = None,
        model: ModelClient | str | None = None,
    ) -> "Engine":
        """Return the engine of a host by its configuration file.

        Args:
            path: The file, `agent-core.yaml`; by default the one that the command line finds.
            store: A store, or its address, in place of the file's.
            model: A client or `provider:name`, which answers for every model name.

        Raises:
            DefinitionErrors: All that is wrong with the file.
        """
        return cls._of_host(load_host_config(None if path is None else Path(path)), store=store, model=model)

    @classmethod
    def _of_host(
        cls,
        config: HostConfig,
        *,
        store: RunStore | StrPath | None = None,
        model: ModelClient | str | None = None,
        telemetry: Telemetry | None = None,
        is_worker: bool = False,
        is_served: bool = False,
        slots: Line | None = None,
    ) -> "Engine":
        """Return the engine of a host by its configuration, as it was read; a worker drives runs itself. Of one that
        `is_served`, others start the runs."""
        opened = store_of(store, config.store_address)
        check_encryption(
            opened, wanted=config.encrypt, where=config.at("encrypt"), temporal=config.engine == "temporal"
        )
        client = name_model(config, opened, model) if isinstance(model, str) else model_of(model)
        registry = with_runs(build_registry(config, shared_database(opened), cipher_of(opened)), client)
        grants = open_grants(config, registry, client, opened.journal.load, is_served=is_served or is_worker)
        engine = cls.__new__(cls)
        engine._open(
            opened,
            replace(grants, turns=open_turn_grant(config, registry, opened, model)),
            build_catalog(config, registry),
            telemetry,
            config.default_provider,
            slots or Limiter(MAX_RUNNING).line(None),
            config.temporal if config.engine == "temporal" and not is_worker else None,
        )
        engine._starter.host = "" if config.file is None else str(config.file.resolve())
        return engine

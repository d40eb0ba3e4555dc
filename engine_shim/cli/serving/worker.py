"""The command worker: drives the runs of this host and of its tenants that Temporal hands out."""

import asyncio
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from engine_shim.cli import output
from engine_shim.cli.engine import with_engine
from engine_shim.cli.output import Options
from engine_shim.cli.store import find_address
from engine_shim.host.config import HostConfig
from engine_shim.host.find import load_host_config
from engine_shim.runs.engine import Engine
from engine_shim.runs.temporal.begin_run import Definitions
from engine_shim.runs.temporal.worker import work
from engine_shim.service.definitions import open_definitions
from engine_shim.service.metrics import open_metrics
from engine_shim.store.open import open_store
from engine_shim.telemetry.export import exporting
from engine_shim.telemetry.telemetry import Telemetry
from utools.databases.store_address import StoreAddress


def run_worker(model: str | None, options: Options, metrics_at: str | None = None) -> int:
    """Work until the process is told to end. EngineAway where no Temporal server answers.

    With `metrics_at`, HOST:PORT, Prometheus finds there what the runs did that this worker drove.
    """
    config, store = with_engine(load_host_config(options.config), options), find_address(options.store, options.config)
    telemetry = Telemetry(metrics=None if metrics_at is None else open_metrics())
    engines = {config.temporal.queue: open_worker_engine(config, store, model, telemetry)}
    definitions = {config.temporal.queue: open_definitions(config, engines[config.temporal.queue], model)}
    for name in config.tenants:
        own = config.for_tenant(name)
        engine = engines[own.temporal.queue] = open_worker_engine(own, store, model, telemetry.of_tenant(name))
        definitions[own.temporal.queue] = open_definitions(own, engine, model)
    with exporting(), _serving(telemetry, metrics_at):
        asyncio.run(_work_until_told(engines, config, definitions))
    return output.OK


@contextmanager
def _serving(telemetry: Telemetry, address: str | None) -> Iterator[None]:
    """Serve the metrics at the address, if there is one."""
    if address is None or telemetry.metrics is None:
        yield
        return
    from engine_shim.telemetry.metrics_page import serve_metrics

    with serve_metrics(telemetry.metrics, address) as url:
        sys.stderr.write(f"agent-core: metrics at {url}\n")
        yield


def open_worker_engine(config: HostConfig, address: StoreAddress, model: str | None, telemetry: Telemetry) -> Engine:
    """Return the engine of a host or tenant, which drives runs itself."""
    store = open_store(address, tenant=config.tenant)
    store.note_tenant(config.tenant)
    return Engine._of_host(config, store=store, model=model, telemetry=telemetry, is_worker=True)


async def _work_until_told(
    engines: dict[str, Engine], config: HostConfig, definitions: Mapping[str, Definitions]
) -> None:
    until, loop = asyncio.Event(), asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, until.set)
    told = f"agent-core: worker on {', '.join(engines)} at {config.temporal.address}; Ctrl-C ends it\n"
    try:
        await work(engines, config.temporal, until, partial(sys.stderr.write, told), definitions)
    finally:
        for engine in engines.values():
            await engine.close()

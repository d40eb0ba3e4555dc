"""connect(): a client of the Temporal server that a host names."""

import logging
from functools import cache
from typing import Final

from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from engine_shim.errors import EngineError
from engine_shim.host.config import TemporalConfig

LEVELS: Final = TelemetryFilter(core_level="WARN", other_level="ERROR")
log = logging.getLogger("engine_shim")


async def connect(config: TemporalConfig, converter: DataConverter) -> Client:
    """A connected client. EngineError when no server answers."""
    try:
        return await Client.connect(
            config.address, namespace=config.namespace, data_converter=converter, runtime=_runtime()
        )
    except RuntimeError as error:
        hint = "start one (`temporal server start-dev`), or name another by --temporal HOST:PORT"
        raise EngineError(f"no Temporal server answers at {config.address}; {hint}") from error


@cache
def _runtime() -> Runtime:
    """Temporal's threads, of which a process has one set. They log where we do, not on standard output."""
    forwarding = LogForwardingConfig(log, append_target_to_name=False, prepend_target_on_message=False)
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(LEVELS, forwarding)))

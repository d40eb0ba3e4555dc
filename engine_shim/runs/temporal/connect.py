"""connect(): a client of the Temporal server that a host names."""

from temporalio.client import Client
from temporalio.converter import DataConverter

from engine_shim.errors import EngineAway
from engine_shim.host.config import TemporalConfig


async def connect(config: TemporalConfig, converter: DataConverter) -> Client:
    """A connected client. EngineAway when no server answers."""
    try:
        return await Client.connect(config.address, namespace=config.namespace, data_converter=converter)
    except RuntimeError as error:
        hint = "start one (`temporal server start-dev`), or name another by --temporal HOST:PORT"
        raise EngineAway(f"no Temporal server answers at {config.address}; {hint}") from error

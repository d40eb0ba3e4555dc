"""connect(): a client of the Temporal server that a host names. ServerWatch: tells the log when that is away."""

import asyncio
import ctypes
import logging
from datetime import timedelta
from functools import cache, partial
from typing import Final

from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import KeepAliveConfig, RPCError

from engine_shim.errors import EngineAway
from engine_shim.host.config import TemporalConfig
from utools.retry import Pauses, retry

KEEP_ALIVE: Final = KeepAliveConfig(interval_millis=10_000, timeout_millis=4_000)
"""A connection on which nothing comes any more is given up after this. Temporal's server hangs up on clients that ask
more often than every 10 s."""
WITHIN: Final = timedelta(seconds=4)
"""How long a server may take to say that it is there, or to take a connection."""
READY_S: Final = 15.0
"""How long one that listens may take to be ready."""
NOT_READY: Final = "call error after connection"
"""What a client says of a server that took the connection and does not serve yet."""
EVERY_S: Final = 5.0
PAUSES: Final = Pauses(0.5, longest=EVERY_S)
log = logging.getLogger("engine_shim")


async def connect(config: TemporalConfig, converter: DataConverter) -> Client:
    """Return a connected client. EngineAway when no server answers."""
    try:
        async with asyncio.timeout(READY_S):
            return await _connect_once_ready(config, converter)
    except (RuntimeError, TimeoutError) as error:
        hint = "start one (`temporal server start-dev`), or name another by --temporal HOST:PORT"
        raise EngineAway(f"no Temporal server answers at {config.address}; {hint}") from error


async def _connect_once_ready(config: TemporalConfig, converter: DataConverter) -> Client:
    """Return a connected client; one of a server that listens and is not ready yet, when it is. RuntimeError where none
    listens."""
    connect_once = partial(
        Client.connect,
        config.address,
        namespace=config.namespace,
        data_converter=converter,
        keep_alive_config=KEEP_ALIVE,
        connect_timeout=WITHIN,
        runtime=_runtime(),
    )
    return await retry(connect_once, _is_not_ready, PAUSES)


def _is_not_ready(error: Exception) -> bool:
    return isinstance(error, RuntimeError) and NOT_READY in str(error)


@cache
def _runtime() -> Runtime:
    """Temporal's threads of this process. What they log goes to the log: by default it is printed on stdout, each retry
    of a call included.

    It is never freed. At the interpreter's end that would wait for its threads, which wait for the interpreter: a
    process that was done would not end.
    """
    only_errors = TelemetryFilter(core_level="ERROR", other_level="ERROR")
    forwarding = LogForwardingConfig(logging.getLogger("temporalio.core"))
    made = Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(only_errors, forwarding)))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    return made


class ServerWatch:
    """Whether the server at an address is there. The log has when it goes away and when it is back, once each."""

    def __init__(self, address: str) -> None:
        self._address, self._is_away = address, False

    async def watch(self, client: Client) -> None:
        """Look after it until the task is cancelled."""
        while True:
            await self.wait_until_back(client)
            await asyncio.sleep(EVERY_S)

    async def wait_until_back(self, client: Client) -> None:
        """Wait until it answers."""
        for pause in PAUSES:
            try:
                if await self._is_there(client):
                    return
            except Exception as error:  # whatever it is, it is asked again: a worker ends with its watch
                log.error("it is not known whether Temporal at %s is there: %r", self._address, error)
            await asyncio.sleep(pause)

    async def _is_there(self, client: Client) -> bool:
        try:
            await client.service_client.check_health(timeout=WITHIN)
        except RPCError as error:
            if not self._is_away:
                log.warning("Temporal at %s is away; runs go on when it is back: %s", self._address, error.message)
            self._is_away = True
            return False
        if self._is_away:
            log.warning("Temporal at %s is back", self._address)
        self._is_away = False
        return True

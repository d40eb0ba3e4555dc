"""LaterEndpoint: the endpoint of MCP for a server that is to answer others before the SDK of MCP is imported."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException

from engine_shim.service.service import Service
from utools.error_text import describe

if TYPE_CHECKING:
    from engine_shim.mcp_server.http import McpEndpoint

EARLIEST_S: Final = 1.0
"""How long after its start a server imports the SDK, unless somebody asks for MCP before."""
log = logging.getLogger("engine_shim")


class LaterEndpoint:
    """Serves MCP from the first request to it on, or a little after the start. The import has a thread of its own; a
    request waits for it."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._endpoint: asyncio.Future[McpEndpoint] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        assert self._endpoint is not None, "the app is not running"
        self._asked.set()
        try:
            endpoint = await asyncio.shield(self._endpoint)
        except Exception as error:  # why the import failed; the app writes the problem
            raise HTTPException(503, f"MCP cannot be served: {describe(error)}") from error
        await endpoint(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve sessions until the end of the block."""
        self._asked, self._over = asyncio.Event(), asyncio.Event()
        self._endpoint = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(self._serve(self._endpoint))
        try:
            yield
        finally:
            self._over.set()
            self._asked.set()
            await serving

    async def _serve(self, opened: "asyncio.Future[McpEndpoint]") -> None:
        try:
            async with asyncio.timeout(EARLIEST_S):
                await self._asked.wait()
        except TimeoutError:
            pass
        if self._over.is_set():
            opened.cancel()
            return
        try:
            module = await asyncio.to_thread(import_module, "engine_shim.mcp_server.http")
            endpoint: McpEndpoint = module.McpEndpoint(self._service)
            async with endpoint.running():
                opened.set_result(endpoint)
                await self._over.wait()
        except Exception as error:  # a library of another release may raise anything; who asks would wait for ever
            if opened.done():
                raise
            log.exception("MCP is not served")
            opened.set_exception(error)
            opened.exception()  # told to whoever asks

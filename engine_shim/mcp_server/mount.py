"""mount(): an endpoint of MCP as a route of an app."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol

from starlette.applications import Starlette
from starlette.routing import Route

PATH: Final = "/mcp"


class Endpoint(Protocol):
    """An ASGI app that has to be running. The app that mounts it checks hosts, origins and sizes, as `Guard` does."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...

    def running(self) -> AbstractAsyncContextManager[None]:
        """Serve sessions until the end of the block."""
        ...


def mount(app: Starlette, endpoint: Endpoint) -> None:
    """Serve MCP at `/mcp` of an app whose lifespan has the service running, and at `/mcp/`: few clients follow a
    redirect of a POST."""
    lifespan = app.router.lifespan_context

    @asynccontextmanager
    async def run(served: Starlette) -> AsyncIterator[Any]:
        async with lifespan(served) as state, endpoint.running():
            yield state

    app.router.lifespan_context = run
    app.router.routes += [Route(PATH, endpoint), Route(f"{PATH}/", endpoint)]

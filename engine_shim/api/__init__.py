"""The HTTP API: routes without logic of their own over a Service, mountable in another program."""

from typing import TYPE_CHECKING

from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from engine_shim.api.app import create_app as create_app
    from engine_shim.api.app import create_router as create_router

HOMES = {
    "engine_shim.api.app": "create_app create_router",
}
"""The names of this room by their modules; each is imported when it is first used."""
__all__ = sorted(" ".join(HOMES.values()).split())
if not TYPE_CHECKING:  # a checker would take any name
    __getattr__, __dir__ = lazy_menu(__name__, HOMES)

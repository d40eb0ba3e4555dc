"""The HTTP API: routes without logic of their own over a Service, mountable in another program."""

from typing import TYPE_CHECKING

from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from engine_shim.api.app import create_app as create_app
    from engine_shim.api.app import create_router as create_router

HOMES = {"create_app": "engine_shim.api.app", "create_router": "engine_shim.api.app"}
"""The names of this room, each imported from its module when it is first used."""
__all__ = list(HOMES)
__getattr__, __dir__ = lazy_menu(__name__, HOMES)

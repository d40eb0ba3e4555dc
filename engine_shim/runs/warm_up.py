"""warm_up(): what the first act of a process needs, imported and built before the process takes work."""

import logging

from agent_core.errors import JournalError
from engine_shim.runs.grant import Grants
from engine_shim.store.async_store import AsyncRunStore
from utools.builtin.libraries import import_libraries
from utools.registry import ToolRegistry

ANY_RUN = "warm-up"
"""The id of a run that no store holds: loading it opens the connection."""
log = logging.getLogger("engine_shim")


async def warm_up(grants: Grants, runs: AsyncRunStore) -> None:
    """Import and build what a first question, call and record need. Nothing is asked, called or written.

    Without it the first act of a fresh worker costs a second of CPU or more, in which the worker's event loop does
    nothing else: acts beside it come late, and a write among them may count as dead.
    """
    await grants.warm_up()
    for registry in {id(each): each for each in (grants.own.registry, grants.http.registry)}.values():
        _warm_up_tools(registry)
    grants.own.secrets.redactor().redact_truncated_text("warm")
    try:
        await runs.load(ANY_RUN)
        await runs.run_blocking(runs.store.clock.measure)
    except JournalError as error:  # a store that is away is waited for by the act that needs it
        log.debug("the store cannot be read yet: %s", error)


def _warm_up_tools(registry: ToolRegistry) -> None:
    codes = [tool.code for tool in registry.all()]
    import_libraries(codes)
    for code in codes:
        registry.validate(code, {})

"""read_documents(): the MCP resources and prompts that a config names, read for the run that is about to start."""

from collections.abc import Mapping
from typing import Any

from agent_core.errors import DefinitionError
from utools.errors import ToolError
from utools.registry import ToolRegistry


async def read_documents(config: Any, registry: ToolRegistry) -> Any:
    """Return the config with the text of each of its documents; what is wrong with a document's form is left to others.

    DefinitionError for one that cannot be read.
    """
    named = config.get("documents") if isinstance(config, Mapping) else None
    if not isinstance(named, list) or not named:
        return config
    return {**config, "documents": [await _read(each, index, registry) for index, each in enumerate(named)]}


async def _read(named: Any, index: int, registry: ToolRegistry) -> Any:
    if not isinstance(named, Mapping) or named.get("text") is not None or _is_faulty(named):
        return named
    read = registry._readers.get(str(named.get("server")))
    if read is None:
        return named
    try:
        return {**named, "text": await read(named)}
    except (ToolError, OSError) as error:
        raise DefinitionError(f"cannot be read: {error}", where=f"documents/{index}") from None


def _is_faulty(named: Mapping[str, Any]) -> bool:
    return (named.get("uri") is None) == (named.get("name") is None)

"""What tools themselves know to be wrong with their calls, as far as the arguments are known before a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from engine_shim.definition.errors import Problem, message_of
from engine_shim.definition.model import Definition
from engine_shim.definition.template import read_placeholders
from engine_shim.definition.uses import ToolUse, uses_of_node
from engine_shim.errors import DefinitionError
from utools.net.address import ORIGIN
from utools.registry import ToolRegistry
from utools.schema.faults import Fault

NETWORK = "http_request"


def check_tool_calls(
    definition: Definition, registry: ToolRegistry, goes_on: Callable[[str], bool]
) -> Iterator[tuple[bool, Problem]]:
    """Yield each fault, and whether it is a reason not to run.

    It is none where the author does not name the tool itself, or where the run `goes_on` after the node has failed.
    """
    codes = [tool.code for tool in registry.all()]
    for index, node in enumerate(definition.nodes):
        for use in uses_of_node(node, f"nodes/{index}/config", codes):
            if problem := _fault_of(use, registry) or _unreachable(use, registry):
                yield use.by_name and not goes_on(node.id), problem


def _fault_of(use: ToolUse, registry: ToolRegistry) -> Problem | None:
    """Return the fault of a call whose arguments fit the tool's schema."""
    check, known = registry.get(use.tool).check, use.known()
    if check is None or (known and _misfits(known, registry.validate(use.tool, known))):
        return None
    try:
        check(known)
    except DefinitionError as error:
        return Problem(f"{use.where}/{error.where}" if error.where else use.where, message_of(error))
    return None


def _unreachable(use: ToolUse, registry: ToolRegistry) -> Problem | None:
    """Return a URL, fixed up to its path at least, that http_request may not reach as it is configured."""
    config = {**registry._policy.presets.get(use.tool, {}), **use.config}
    origin, cidrs = ORIGIN.match(str(config.get("url"))), config.get("allow_cidrs", [])
    if use.tool != NETWORK or origin is None or any(True for _ in read_placeholders(cidrs)):
        return None
    from utools.net.guard import explain_private

    message = explain_private(origin[0], cidrs)
    return None if message is None else Problem(f"{use.where}/url", message)


def _misfits(known: Mapping[str, Any], faults: Iterable[Fault]) -> bool:
    """Return whether a fault is about a value that is given, rather than about one that is still to come."""
    return any(f"{fault.pointer}/".split("/")[1] in known for fault in faults)

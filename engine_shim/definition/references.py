"""What a definition's placeholders may read: names that it has, secrets where only a tool gets them. Pure."""

import re
from collections.abc import Iterator, Set
from fnmatch import fnmatchcase

from engine_shim.definition.errors import Problem, problems_in
from engine_shim.definition.inputs import closed_inputs
from engine_shim.definition.model import AGENT, INVOKE, KEEPS_ROLES, Definition, EnvName, Node, PlacedPlaceholder
from engine_shim.definition.template import ITEM_ROOTS, PATH_ONLY, Placeholder, placeholders, read_placeholders
from engine_shim.errors import DefinitionError
from utools.schema.faults import hint

PASSING_ON = (INVOKE, "context_manager")
"""Tools that pass their config on to readers who may not see a secret."""


def unknown_references(definition: Definition, place: str, nodes: Set[str]) -> Iterator[Problem]:
    """Placeholders in the value at a place that read what the definition does not have.

    A node may read its own output only from the round before, and only if it may be missing.
    """
    for location, value, node, each in definition.placeholders_by_value[place]:
        if isinstance(each, DefinitionError):
            yield from problems_in(each)
            continue
        in_config = node is not None and value.endswith("/config")
        if each.path[0] in ITEM_ROOTS:
            has_item = node is not None and node.foreach is not None and in_config
            yield from _item_problems(each, location, has_item=has_item)
            continue
        root, name = each.path[:2]
        own = node.id if node is not None and in_config else ""
        known = _known_names(root, definition, nodes)
        is_own = root == "nodes" and name == own and not each.optional
        if known is not None and (name not in known or is_own) and not (each.optional and root == "external"):
            others = sorted(known - {own} if root == "nodes" and not each.optional else known)
            unknown = PATH_ONLY if "[" in name else f"there is no {name!r} in {root} here; {hint(name, others)}"
            yield Problem(location, f"{each}: {unknown}")
        elif (root == "env" or (root, name) == ("run", "id")) and len(each.path) > 2:
            yield Problem(location, f"{each}: {root}.{name} is a text, and nothing is below it")


def _item_problems(each: Placeholder, where: str, *, has_item: bool) -> Iterator[Problem]:
    if not has_item:
        yield Problem(where, f"{each}: only the config of a node with foreach has an {each.path[0]}")
    elif each.path[0] == "index" and len(each.path) > 1:
        yield Problem(where, f"{each}: index is a number, and nothing is below it")


def _known_names(root: str, definition: Definition, nodes: Set[str]) -> Set[str] | None:
    """Return the names below a placeholder's root; None where they are not known before a run."""
    match root:
        case "nodes":
            return nodes
        case "env":
            return definition.secrets | definition.plain
        case "external":
            return closed_inputs(definition)
        case _:
            return {"id", "messages"}


def contradicted_secrets(definition: Definition) -> Iterator[Problem]:
    """Yield variables that are listed as secret and as plain: their values would be written into records."""
    secret = {entry if isinstance(entry, str) else entry.name for entry in definition.env if not _is_plain(entry)}
    for index, entry in enumerate(definition.env):
        if isinstance(entry, EnvName) and entry.plain and entry.name in secret:
            yield Problem(f"env/{index}", f"{entry.name} is listed as secret as well; leave one of both out")


def _is_plain(entry: str | EnvName) -> bool:
    return isinstance(entry, EnvName) and entry.plain


def exposed_secrets(definition: Definition) -> Iterator[Problem]:
    """Secrets where a model would read them, or a record hold them: only the input of a tool may contain one."""
    for placed in definition.placeholders:
        each = placed.read
        if isinstance(each, DefinitionError) or each.path[0] != "env" or each.path[1] not in definition.secrets:
            continue
        if not _reaches_tool_only(placed):
            message = "is secret: only the config of a tool, or the preset of an agent's tool, may take it"
            yield Problem(placed.where, f"{each} {message}; or mark it plain in env")


def _reaches_tool_only(placed: PlacedPlaceholder) -> bool:
    """Return whether only the tool itself gets a value in a node's config."""
    node = placed.node
    if node is None or node.tool in PASSING_ON or not placed.value.endswith("/config"):
        return False
    if node.tool != AGENT:
        return True
    preset = re.match(r"/allowed_tools/(\d+)/preset/", placed.where.removeprefix(placed.value))
    entries = node.config.get("allowed_tools")
    if preset is None or not isinstance(entries, list):
        return False
    return not any(fnmatchcase(code, str(entries[int(preset[1])].get("tool"))) for code in (AGENT, *PASSING_ON))


def unvouched_text(node: Node, where: str, definition: Definition) -> Iterator[Problem]:
    """Provenance rests on the prompts: the author must vouch for another node's output in them, or leave it out."""
    entries = node.config.get("allowed_tools", ())
    if node.config.get("trusted_text") is not None or not isinstance(entries, list):
        return
    if not any(isinstance(entry, dict) and entry.get("provenance") for entry in entries):
        return
    tools = {other.id: other.tool for other in definition.nodes}
    of_item = [each for _, each in read_placeholders(node.foreach) if isinstance(each, Placeholder)]
    for key in ("messages_json", "prompt", "system_prompt", "developer_prompt"):
        for location, found in placeholders(node.config.get(key), key):
            read = of_item if found.path[0] == "item" else [found]
            each = next((each for each in read if each.path[0] == "nodes"), None)
            if each is not None and tools.get(each.path[1]) not in KEEPS_ROLES:
                message = f"takes the output of {each.path[1]!r}, so list in trusted_text what provenance may trust"
                yield Problem(f"{where}/{location}", message)
                return

"""What nodes gave to the prompts of an agent, so that its values keep their first origin. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_core.inherited import SourceRecord
from engine_shim.definition.model import KEEPS_ROLES, Node
from engine_shim.definition.template import Names, Placeholder, placeholders, split_text
from utools.context.foreign import is_foreign

PROMPTS = ("prompt", "system_prompt", "developer_prompt", "messages_json")


def filled_prompts(node: Node, names: Names, nodes: Mapping[str, Node]) -> dict[str, list[SourceRecord]]:
    """Return the parts of each prompt that takes the output of a node, by its place in the config."""
    return {
        where: [_part(each, names, node, nodes) for each in parts]
        for key in PROMPTS
        for where, parts in _texts(node.config.get(key), key, names.quoted)
        if any(isinstance(each, Placeholder) and _giver(each, node, nodes) for each in parts)
    }


def _texts(value: Any, where: str, quoted: bool) -> Iterator[tuple[str, Sequence[str | Placeholder]]]:
    match value:
        case str():
            yield where, split_text(value, quoted=quoted)
        case list():
            whole = [each for each in value if not (isinstance(each, dict) and not is_foreign(each))]
            yield where, [part for text in _content_texts(whole) for part in split_text(text, quoted=quoted)]
            for index, message in enumerate(value):
                if isinstance(message, dict) and not is_foreign(message):
                    texts = _content_texts(message.get("content"))
                    yield (
                        f"{where}/{index}/content",
                        [part for text in texts for part in split_text(text, quoted=quoted)],
                    )
        case _:
            pass


def _content_texts(content: Any) -> Iterator[str]:
    """Yield the texts of a message's content, which may come in parts, or of whole messages."""
    match content:
        case str():
            yield content
        case list():
            for part in content:
                yield from _content_texts(part)
        case dict():
            yield from _content_texts(list(content.values()))
        case _:
            pass


def _giver(each: Placeholder, node: Node, nodes: Mapping[str, Node]) -> str | None:
    """Return the node whose output a placeholder reads, of a list's item the node that gave the list."""
    path = each.path
    if path[0] == "item":
        path = next((found.path for _, found in placeholders(node.foreach) if found.path[0] == "nodes"), path)
    given = path[0] == "nodes" and path[1] in nodes and nodes[path[1]].tool not in KEEPS_ROLES
    return path[1] if given else None


def _part(each: str | Placeholder, names: Names, node: Node, nodes: Mapping[str, Node]) -> SourceRecord:
    """Return a part of a prompt; of what is no node's, who wrote it depends on the prompt, so it has no label."""
    if isinstance(each, str):
        return {"kind": "user", "label": "", "value": each}
    value, giver = names.look_up(each), _giver(each, node, nodes)
    if giver is None:
        return {"kind": "user", "label": "", "value": value}
    at = "".join(f"/{key}" for key in each.path[2 if each.path[0] == "nodes" else 1 :])
    return {"kind": "tool", "label": f"nodes.{giver}", "tool": f"nodes.{giver}", "value": value, "at": at}

"""A conversation as the input items of a request. Pure.

A reply with calls goes back as its own output items, in their order and as they came, their ids too: without storage an
item is read from what it holds, and its id is only its name. A reply whose items are not usable goes back as a text and
calls, without ids.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from agent_core.models.endpoint.conversation import Conversation, Turn, fit_id
from agent_core.outputs import Json

API: Final = "responses"
MAX_ID: Final = 64
"""Characters of a call's id that the API takes."""
TEXTS: Final = ("output_text", "text")


def write_items(conversation: Conversation, role: str, *, with_ids: bool) -> tuple[list[Json], bool]:
    """Return the input items, and whether own parts of a reply were passed over. `role` speaks the system's texts.

    The system's texts are the first items, and each text is an item of its own: so a longer conversation begins with
    the same items, and `json_object` finds the word JSON, which it does not look for in `instructions`.
    """
    items = [_write_message(role, text) for text in conversation.system]
    ids: dict[str, str] = {}
    passed_over = False
    for turn in conversation.turns:
        if turn.role == "user":
            items += [_write_result(ids.get(each.id) or fit_id(each.id, MAX_ID), each.text) for each in turn.results]
            items += [_write_message("user", text) for text in turn.texts]
        elif turn.parts is not None and (vendor_ids := _match_calls(turn, turn.parts)) is not None:
            ids |= vendor_ids
            items += turn.parts if with_ids else [_without_id(part) for part in turn.parts]
        else:
            passed_over = passed_over or turn.parts is not None
            items += [_write_message("assistant", text) for text in turn.texts]
            items += [_write_call(fit_id(call.id, MAX_ID), call.name, call.args) for call in turn.calls]
    return items, passed_over


def read_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message item."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in find_parts(content) if part.get("type") in TEXTS)
    return "".join(text for text in texts if isinstance(text, str))


def find_parts(content: Any) -> list[Json]:
    """Return the parts of a message item's content."""
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def find_calls(parts: Sequence[Any]) -> list[Json]:
    """Return the function calls among the output items of a reply."""
    return [part for part in parts if isinstance(part, dict) and part.get("type") == "function_call"]


def _match_calls(turn: Turn, parts: list[Any]) -> dict[str, str] | None:
    """Return the vendor's id for each of our ids; None where the parts are not of these calls."""
    found = [call.get("call_id") for call in find_calls(parts)]
    theirs = [id_ for id_ in found if isinstance(id_, str) and id_]
    if len(theirs) != len(found) or len(theirs) != len(turn.calls):
        return None
    return dict(zip([call.id for call in turn.calls], theirs, strict=True))


def _write_message(role: str, text: str) -> Json:
    return {"type": "message", "role": role, "content": text}


def _write_result(id_: str, text: str) -> Json:
    return {"type": "function_call_output", "call_id": id_, "output": text}


def _write_call(id_: str, name: str, args: Json) -> Json:
    return {"type": "function_call", "call_id": id_, "name": name, "arguments": orjson.dumps(args).decode()}


def _without_id(part: Any) -> Any:
    """Return an output item without its id; a message as one of the input, which needs none."""
    if not isinstance(part, dict):
        return part
    if part.get("type") == "message":
        phase = {"phase": part["phase"]} if part.get("phase") else {}
        return {**_write_message("assistant", read_text(part)), **phase}
    return {name: value for name, value in part.items() if name != "id"}

"""A conversation as Gemini's contents: a model's own parts as they came, all else written anew. Pure."""

from collections.abc import Collection, Iterator
from typing import Any, Final

from agent_core.models.endpoint.conversation import Conversation, Turn
from agent_core.outputs import Json
from utools.lazy_pattern import lazy_compile

API = "gemini"
DUMMY_SIGNATURE = "skip_thought_signature_validator"
"""Stands for the thought signature of a call that Gemini did not make: models that demand signatures refuse a turn
whose first call has none (ai.google.dev/gemini-api/docs/thought-signatures)."""
NATIVE, UNSIGNED, SIGNATURE, SYSTEM = "native", "unsigned", "signature", "systemInstruction"
"""Words in `left_out`: all own parts, own parts whose first call has no signature, the dummy signature, and the
instruction of the system, which some models only take as a text of the user's."""
_NO_LETTER: Final = lazy_compile("_*[0-9-]")
CONTINUED = "…"
"""What a user says before a model that begins the conversation."""


def write_conversation(conversation: Conversation, left_out: Collection[str]) -> Json:
    """Return the part of a request that is the conversation."""
    system = [{"text": text} for text in conversation.system if text]
    contents = list(_write_contents(conversation.turns, left_out))
    if not contents or contents[0]["role"] != "user":
        first = system if not contents and system else [{"text": CONTINUED}]
        contents.insert(0, {"role": "user", "parts": [*first]})
        system = [] if first is system else system
    if SYSTEM in left_out:
        contents[0] = {**contents[0], "parts": [*system, *contents[0]["parts"]]}
        system = []
    return {"systemInstruction": {"parts": system}, "contents": contents} if system else {"contents": contents}


def write_name(name: str) -> str:
    """Return a function's name as Gemini takes it, beginning with a letter or `_`: `2fa` is `_2fa` there."""
    return f"_{name}" if _NO_LETTER.match(name) else name


def read_name(name: str) -> str:
    """Return the name that `write_name` has written so."""
    return name[1:] if name.startswith("_") and _NO_LETTER.match(name) else name


def find_calls(parts: Collection[Any]) -> list[Json]:
    """Return the calls in a content's parts."""
    return [call for part in parts if isinstance(part, dict) and isinstance(call := part.get("functionCall"), dict)]


def _write_contents(turns: Collection[Turn], left_out: Collection[str]) -> Iterator[Json]:
    """Yield the contents. Sides alternate, and results come under the names and ids of the calls before them."""
    content: Json = {}
    before, called = Turn("user"), list[Json]()
    for turn in turns:
        if turn.role == "assistant":
            parts = _write_model_parts(turn, left_out)
            before, called = turn, find_calls(parts)
        else:
            parts = [*_write_results(turn, before, called), *_write_texts(turn)]
        role = "model" if turn.role == "assistant" else "user"
        if parts and content.get("role") == role:
            content["parts"] += parts
        elif parts:
            if content:
                yield content
            content = {"role": role, "parts": parts}
    if content:
        yield content


def _write_model_parts(turn: Turn, left_out: Collection[str]) -> list[Any]:
    """Return the model's own parts as they came, where they make the turn's calls; else its texts and its calls."""
    own = turn.parts
    if own is not None and len(find_calls(own)) == len(turn.calls) and not (UNSIGNED in left_out and _lacks(own)):
        return list(own)
    calls: list[Json] = [{"functionCall": {"name": write_name(call.name), "args": call.args}} for call in turn.calls]
    if calls and SIGNATURE not in left_out:
        calls[0]["thoughtSignature"] = DUMMY_SIGNATURE
    return [*_write_texts(turn), *calls]


def _lacks(parts: Collection[Any]) -> bool:
    """Return whether the first call in a model's own parts has no signature."""
    first: Json = next((part for part in parts if find_calls([part])), {})
    return not first.get("thoughtSignature")


def _write_texts(turn: Turn) -> list[Json]:
    return [{"text": text} for text in turn.texts]


def _write_results(turn: Turn, before: Turn, called: list[Json]) -> Iterator[Json]:
    """Yield the results in the order of the calls, each under what the vendor calls its call."""
    order = {call.id: index for index, call in enumerate(before.calls)}
    for result in sorted(turn.results, key=lambda result: order.get(result.id, len(order))):
        index = order.get(result.id)
        call = called[index] if index is not None and index < len(called) else {"name": write_name(result.name)}
        identity = {"id": call["id"]} if call.get("id") else {}
        response = {"name": call.get("name") or write_name(result.name), "response": {"output": result.text}}
        yield {"functionResponse": {**identity, **response}}

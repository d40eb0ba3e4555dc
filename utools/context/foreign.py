"""Foreign messages: what SDKs and frameworks store, taken apart into neutral messages. Pure.

A message is brought to its parts, and each part is a text, a call, a result, or unread:

    Anthropic      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "A lamp"}]}
    Responses API  {"type": "function_call_output", "call_id": "c", "output": "A lamp"}
    Gemini         {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"item": "A lamp"}}}]}

become a message of the role `tool`: a result is the tool's word, in whichever role it came.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from utools.context.foreign_parts import (
    ForeignMessage,
    Part,
    id_of,
    join_parts,
    kind_of,
    mark_failed,
    read_call,
    read_part,
)
from utools.context.turns import Message
from utools.errors import ToolError

ITEMS = frozenset({"function_call", "function_call_output", "reasoning"})
"""Items of the Responses API that have no role."""
ROLES = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "model": "assistant",
    "request": "user",
    "response": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "function",
    "user": "user",
    "assistant": "assistant",
}
OF_LANGCHAIN = {
    "HumanMessage": "human",
    "AIMessage": "ai",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "function",
}
TYPES = frozenset({"human", "ai", "AIMessageChunk", "system", "tool", "function"})
ASIDE = frozenset(
    {
        *("id", "createdAt", "metadata", "annotations"),  # of Vercel's SDK
        *("response_metadata", "usage_metadata", "artifact", "example", "parsed"),  # of LangChain's, and of its chunks:
        *("index", "tool_call_chunks", "chunk_position"),
        *("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks"),
    }
)
"""Keys of a message that no model reads, or that no later question needs."""
READ = frozenset(
    {
        *("role", "type", "content", "parts", "blocks", "name", "status"),
        *("tool_calls", "tool_call_id", "function_call", "toolInvocations"),
    }
)
OF_PYDANTIC = frozenset(
    {
        *("kind", "timestamp", "usage", "finish_reason", "run_id", "conversation_id", "state", "instructions"),
        *("model_name", "provider_name", "provider_url", "provider_details", "provider_response_id"),
        *("vendor_details", "vendor_id"),
    }
)
"""Keys of pydantic-ai's messages that no model reads; its `instructions` are of the agent that asked, not of the
conversation."""
TWICE = "says something beside what the message says: give it once"
NAMING = ("role", "kind", "type")
"""Keys that name who speaks."""
SAYING = frozenset({"content", "parts", "blocks", "tool_calls", "function_call", "toolInvocations"})


@dataclass(slots=True)
class ForeignReader:
    """Reads the messages of one conversation in order: a result may name the call before it alone."""

    _open: dict[str, str] = field(default_factory=dict)
    """The id of each call without its answer yet, and the name of its tool."""
    _numbered: int = 0

    def read(self, given: Message, before: Message | None = None) -> list[Message]:
        """Return the neutral messages of a foreign one; ForeignMessage if it cannot be taken.

        Where it `continues` the message `before`, the first one returned stands in that message's place.
        """
        built = [{**before}] if before is not None and continues(given, before) else []
        for part in _read_message(given):
            self._add(part, built)
        return built

    def _add(self, part: Part, built: list[Message]) -> None:
        last = built[-1] if built else None
        if part.kind == "result":
            id_, name = self._find_call(part)
            built.append({"role": "tool", "tool_call_id": id_, **_named(name), "content": part.text})
        elif part.kind == "call":
            if last is None or last["role"] != "assistant":
                built.append(last := {"role": "assistant", "content": ""})
            id_, name = self._number() if part.id is None else part.id, part.name or ""
            call = {"id": id_, "type": "function", "function": {"name": name, "arguments": part.text}}
            last["tool_calls"] = [*(last.get("tool_calls") or ()), call]
            self._open[id_] = name
        elif last is not None and last["role"] == part.role:
            last["content"] = "\n".join(filter(None, (last["content"], part.text)))
        else:
            built.append({"role": part.role, **_named(part.name), "content": part.text})

    def _find_call(self, part: Part) -> tuple[str, str | None]:
        """Return the id and the name of the call that a result answers: by its id, else by its name."""
        id_ = part.id
        if id_ is None:
            id_ = next((each for each, name in self._open.items() if name == part.name), None)
        if id_ is None:
            raise ForeignMessage(
                "", f"a result of {part.name!r} answers no call before it: give both the id of the call"
            )
        called = self._open.pop(id_, None)
        return id_, part.name or called

    def _number(self) -> str:
        self._numbered += 1
        return f"call_{self._numbered}"


def take_apart(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with the neutral ones in place of those that are foreign; ToolError names one that cannot be
    taken."""
    reader, taken = ForeignReader(), list[Message]()
    for at, each in enumerate(messages):
        if not is_foreign(each):
            taken.append(each)
            continue
        before = taken.pop() if taken and continues(each, taken[-1]) else None
        try:
            taken += reader.read(each, before)
        except ForeignMessage as error:
            where = f"{at}{error.place}"
            raise ToolError("message {where}: {reason}", where=where, reason=error) from None
    return taken


def is_foreign(given: Message) -> bool:
    """Return whether a message is in one of the shapes that are read here."""
    content = given.get("content")
    return (
        "lc" in given
        or any(isinstance(given.get(key), list) for key in ("parts", "blocks", "toolInvocations"))
        or _is_of(given, TYPES | ITEMS)
        or not given.keys().isdisjoint({"additional_kwargs", "toolCalls", "toolCallId"})
        or (isinstance(content, list) and any(kind_of(part) in ("call", "result", "both") for part in content))
    )


def continues(given: Message, before: Message) -> bool:
    """Return whether a message is a call, an item of its own, of the assistant's turn that `before` has begun."""
    calls = before.get("tool_calls") or []
    return _is_of(given, {"function_call"}) and before.get("role") == "assistant" and isinstance(calls, list)


def _is_of(given: Message, types: Set[str]) -> bool:
    """Return whether a message without a role has one of these types."""
    kind = given.get("type")
    return isinstance(kind, str) and kind in types and "role" not in given


def _read_message(given: Message) -> Iterator[Part]:
    """Yield the parts of a message that say something."""
    if _is_of(given, ITEMS):
        yield from read_part(given, "assistant", "")
        return
    message, place = _unwrap(given)
    role = ROLES.get(str(message.get("role") or message.get("kind") or message.get("type")))
    if role is None:
        raise ForeignMessage(place, "its role is not known: a message is of the user, an assistant, or a tool")
    if len({ROLES[said] for key in NAMING if (said := str(message.get(key))) in ROLES}) > 1:
        raise ForeignMessage(place, f"its {', '.join(NAMING)} name more than one speaker: give one")
    known = READ | OF_PYDANTIC if "kind" in message else READ
    unknown = [key for key in message if key not in known]
    if unknown:
        raise ForeignMessage(f"{place}/{unknown[0]}", "cannot be taken: leave the key out, or say it in the content")
    for key in ("parts", "blocks", "toolInvocations"):
        if not isinstance(message.get(key, []), list):
            raise ForeignMessage(f"{place}/{key}", "must be a list")
    if twice := sorted(SAYING.intersection(message) - _list_read(message, role, place)):
        raise ForeignMessage(f"{place}/{twice[0]}", TWICE)
    name = message.get("name") if isinstance(message.get("name"), str) else None
    if role in ("tool", "function") and ("tool_call_id" in message or name) and "parts" not in message:
        text = join_parts(message.get("content") or message.get("blocks") or "", f"{place}/content")
        yield Part("result", "tool", mark_failed(text, message.get("status")), id_of(message, place), name)
        return
    calls = [read_call(*each) for each in _calls(message, place)]
    ids = [call.id for call in calls if call.id]
    for part in _parts(message, role, place):
        if part.role == "system" != role and message.get("kind") != "request":
            raise ForeignMessage(place, f"a system prompt in a message of the {role}: give it as one of its own")
        if part.kind != "call" or part.id not in ids:
            yield part._replace(name=name) if part.kind == "text" and part.role == role else part
    if calls and role != "assistant":
        raise ForeignMessage(f"{place}/tool_calls", "only an assistant calls tools")
    yield from calls


def _list_read(message: Message, role: str, place: str) -> Set[str]:
    """Return which of the keys that say something are read. Vercel's older messages have a text, and calls, twice."""
    if role in ("tool", "function"):
        return {next((key for key in ("content", "blocks") if key in message), "parts")}
    if "parts" not in message:
        return {"blocks" if "blocks" in message else "content", "tool_calls", "function_call", "toolInvocations"}
    texts = [part.text for part in _parts(message, role, place) if part.kind == "text"]
    is_same = "".join(str(message.get("content")).split()) in "".join("".join(map(str, texts)).split())
    invoked = [part.get("toolInvocation") for part in message["parts"] if isinstance(part, dict)]
    has_calls = all(call in invoked for call in message.get("toolInvocations") or ())
    return {"parts", *(["content"] if is_same else []), *(["toolInvocations"] if has_calls else [])}


def _parts(message: Message, role: str, place: str) -> Iterator[Part]:
    key = next((each for each in ("parts", "blocks") if message.get(each)), "content")
    content = message.get(key) or ""
    for index, part in enumerate(content if isinstance(content, list) else [content]):
        yield from read_part(part, role, f"{place}/{key}/{index}" if isinstance(content, list) else f"{place}/{key}")
    if key == "content":
        for index, part in enumerate(message.get("toolInvocations") or ()):
            invoked = {"type": "tool-invocation", "toolInvocation": part}
            yield from read_part(invoked, role, f"{place}/toolInvocations/{index}")


def _calls(message: Message, place: str) -> Iterator[tuple[Message, str]]:
    """Yield the calls that stand beside the content, each with its place."""
    if isinstance(called := message.get("function_call"), dict):
        yield called, f"{place}/function_call"
    calls = message.get("tool_calls") or []
    for index, call in enumerate(calls if isinstance(calls, list) else [calls]):
        at = f"{place}/tool_calls/{index}"
        function = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise ForeignMessage(at, "must be {id, type, function: {name, arguments}}")
        yield {**function, "id": call.get("id")}, at


def _unwrap(given: Message) -> tuple[Message, str]:
    """Return the message in its wrapping, without what is empty and what stands aside, and its place."""
    message, place, said = given, "", None
    wrapping: set[str] = set()
    if "lc" in given and isinstance(kwargs := given.get("kwargs"), dict):
        names = given.get("id")
        of_class = OF_LANGCHAIN.get(str(names[-1])) if isinstance(names, list) and names else None
        said, message, place = of_class, {"type": of_class, **kwargs}, "/kwargs"
        wrapping = given.keys() - {"lc", "type", "id", "kwargs", "name", "graph"}
    elif "role" not in given and isinstance(data := given.get("data"), dict):
        said, message, place = given.get("type"), {"type": given.get("type"), **data}, "/data"
        wrapping = given.keys() - {"type", "data"}
    if said is not None and message["type"] != said:
        raise ForeignMessage(f"{place}/type", "is another than that of its wrapping")
    if wrapping:
        raise ForeignMessage(f"/{min(wrapping)}", "cannot be taken: leave the key out, or say it in the content")
    if isinstance(more := message.get("additional_kwargs"), dict):
        if lost := sorted(key for key in SAYING & more.keys() if not _is_repeated(more[key], message.get(key))):
            raise ForeignMessage(f"{place}/additional_kwargs/{lost[0]}", TWICE)
        message = {**more, **{key: each for key, each in message.items() if each and key != "additional_kwargs"}}
    renamed = {"toolCalls": "tool_calls", "toolCallId": "tool_call_id"}
    if lost := [key for key, other in renamed.items() if not _is_repeated(message.get(key), message.get(other))]:
        raise ForeignMessage(f"{place}/{lost[0]}", TWICE)
    kept = {renamed.get(key, key): each for key, each in message.items() if key not in ASIDE}
    return {key: each for key, each in kept.items() if each or key == "tool_call_id"}, place


def _is_repeated(value: Any, other: Any) -> bool:
    """Return whether of two values one is enough: they are equal, one is empty, or they are calls of the same ids."""
    if not value or not other or value == other:
        return True
    ids, others = ([call.get("id") for call in _dicts(each)] for each in (value, other))
    return bool(ids) and all(isinstance(id_, str) and id_ in others for id_ in ids)


def _dicts(value: Any) -> Sequence[Message]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else ()


def _named(name: str | None) -> Message:
    return {"name": name} if name else {}

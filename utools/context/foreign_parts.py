"""Parts of foreign messages: texts, calls and results, by whichever names an SDK has them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from utools.context.turns import Message
from utools.json_text import to_text
from utools.schema.json_value import NotJson, as_json

Kind = Literal["text", "call", "result", "both", "unread"]

KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("text", "input_text", "output_text", "user-prompt", "system-prompt", "refusal"), "text"),
    **dict.fromkeys(("tool_use", "tool-call", "tool_call", "function_call"), "call"),
    **dict.fromkeys(("tool_result", "tool-result", "tool-return", "retry-prompt", "function_call_output"), "result"),
    **dict.fromkeys(("dynamic-tool", "tool-invocation"), "both"),
    **dict.fromkeys(("thinking", "redacted_thinking", "reasoning", "reasoning_text"), "unread"),
    **dict.fromkeys(("step-start", "source-url", "source-document"), "unread"),
}
"""What a part is, by its `type`, `part_kind` or `block_type`."""
OF_GEMINI = {
    "functionCall": "tool-call",
    "function_call": "tool-call",
    "functionResponse": "tool-result",
    "function_response": "tool-result",
    "text": "text",
}
"""The key that holds a part of Gemini's, and its type."""
HOLDING = (*OF_GEMINI, "toolInvocation")
"""Keys that hold what a part says."""
BESIDE = (
    *("inlineData", "inline_data", "fileData", "file_data", "image_url", "source"),
    *("executableCode", "executable_code", "codeExecutionResult", "code_execution_result"),
)
"""Keys that hold what is not read, and that says something."""
RESULT = "result"
"""The role of what a result holds."""
ID = ("call_id", "tool_call_id", "toolCallId", "tool_use_id", "id")
NAME = ("tool_name", "toolName", "name")
ARGUMENTS = ("input", "args", "arguments", "tool_kwargs")
VALUE = ("output", "result", "content", "response")
FAILED = frozenset(
    ("error", "failed", "denied", "retried", "output-error", "output-denied", "error-text", "error-json"),
)
"""How the SDKs mark a result of a call that failed."""
OF_VERCEL = ("text", "json", "content", "error-text", "error-json")
"""Types of an `output` of Vercel's, whose `value` is the result."""


class ForeignMessage(ValueError):
    """A message that cannot be taken. `place` is where in it, such as `/content/1`; the text says what to do."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(why)
        self.place = place


class Part(NamedTuple):
    """A part that was read: `text` of a role, a call with its arguments, or a result."""

    kind: Literal["text", "call", "result"]
    role: str
    text: str
    id: str | None = None
    name: str | None = None


def type_of(part: Any) -> str | None:
    """Return the type of a part, by whichever name it has one."""
    if not isinstance(part, dict):
        return "text" if isinstance(part, str) else None
    named = next((part[key] for key in ("type", "part_kind", "block_type") if isinstance(part.get(key), str)), None)
    return named or next((kind for key, kind in OF_GEMINI.items() if part.get(key) is not None), None)


def kind_of(part: Any) -> Kind | None:
    """Return what a part is; None for one that is not known."""
    named = type_of(part)
    if named and named.startswith("tool-") and "toolCallId" in part:
        return KINDS.get(named, "both")
    return KINDS.get(named) if named else None


def read_part(given: Any, role: str, place: str) -> Iterator[Part]:
    """Yield what a part says: nothing, if it is one that no model reads; its call, then its result. ForeignMessage."""
    kind = kind_of(given)
    part: Message = {"text": given} if isinstance(given, str) else given
    if kind is None:
        named = repr(type_of(part) or (next(iter(part), None) if isinstance(part, dict) else part))
        raise ForeignMessage(place, f"a part of type {named} cannot be taken: only texts, calls and results are read")
    if kind == "unread" or part.get("thought") is True:
        return
    held = [key for key in (*HOLDING, *BESIDE) if part.get(key)]
    own = {"text"} if kind == "text" else {*HOLDING} - {"text"}
    if beside := [key for key in held if key not in own] or held[1:]:
        raise ForeignMessage(f"{place}/{beside[0]}", "says something beside what the part says: give it in its own")
    inner: Message = next((part[key] for key in HOLDING if isinstance(part.get(key), dict)), part)
    if kind == "text":
        if role in ("tool", "function"):
            raise ForeignMessage(place, "a text beside a tool's results: say whose it is, in a message of its own")
        yield Part("text", "system" if type_of(part) == "system-prompt" else role, _text(part, place))
    if kind in ("call", "both"):
        if role != "assistant":
            raise ForeignMessage(place, "a call that no assistant made: its message has the role assistant")
        yield read_call(inner, place)
    has_result = not inner.keys().isdisjoint({"output", "result", "errorText"}) or inner.get("state") == "output-denied"
    if kind == "result" or (kind == "both" and has_result):
        if role in ("system", RESULT):
            raise ForeignMessage(place, "a result belongs in a message of the role tool")
        yield _read_result(inner, place)


def read_call(part: Message, place: str) -> Part:
    """Return a call, whichever keys it has."""
    name, arguments = _first(part, NAME), _first(part, ARGUMENTS)
    if name is None and str(part.get("type")).startswith("tool-") and part["type"] not in KINDS:
        name = str(part["type"]).removeprefix("tool-")
    if not isinstance(name, str):
        raise ForeignMessage(place, "a call without the name of its tool")
    return Part("call", "assistant", _write({} if arguments is None else arguments, place), id_of(part, place), name)


def _read_result(part: Message, place: str) -> Part:
    kind, name, value = type_of(part), _first(part, NAME), _first(part, VALUE)
    marks = [part.get("outcome"), part.get("state"), "error" if part.get("is_error") or part.get("isError") else None]
    if kind == "retry-prompt":
        marks.append("retried")
        if name is None:
            raise ForeignMessage(place, "a retry that answers no call: leave it out, with the reply before it")
    if part.get("errorText") is not None:
        value = part["errorText"]
    elif part.get("state") == "output-denied" and isinstance(part.get("approval"), dict):
        value = part["approval"].get("reason") or "the call was denied"
    is_parts = kind in ("tool_result", "function_call_output")
    if len(given := [key for key in VALUE if part.get(key)]) > 1:
        raise ForeignMessage(f"{place}/{given[1]}", "says something beside what the result says: give it once")
    if kind == "tool-result" and isinstance(value, dict) and "value" in value and value.get("type") in OF_VERCEL:
        marks, is_parts, value = [*marks, value["type"]], value["type"] == "content", value["value"]
    if value is None and is_parts:
        value = ""
    at = f"{place}/{next((key for key in VALUE if part.get(key) is not None), '')}"
    text = join_parts(value, at) if is_parts and isinstance(value, list) else _write(value, at)
    if name is None and kind and kind not in KINDS:
        name = kind.removeprefix("tool-")
    if part.get("parts"):
        raise ForeignMessage(f"{place}/parts", "pictures and files of a result cannot be taken")
    tool = name if isinstance(name, str) else None
    return Part("result", "tool", mark_failed(text, *marks), id_of(part, place), tool)


def join_parts(content: Any, place: str) -> str:
    """Return the text of a result that is a text, or comes in parts."""
    parts = content if isinstance(content, list) else [content]
    texts = [each.text for index, part in enumerate(parts) for each in read_part(part, RESULT, f"{place}/{index}")]
    return "\n".join(filter(None, texts))


def _text(part: Message, place: str) -> str:
    """Return the text of a text part; in one of pydantic-ai's may be a list of texts."""
    text = _first(part, ("text", "refusal", "content"))
    texts = text if isinstance(text, list) else [text]
    if not all(isinstance(each, str) for each in texts):
        raise ForeignMessage(place, "a part without a text: only texts, calls and results are read")
    return "\n".join(texts)


def mark_failed(text: str, *marks: Any) -> str:
    """Return the text of a result; of one that its sender marks as failed, an object that says so."""
    failed = any(isinstance(each, str) and each in FAILED for each in marks)
    return to_text({"error": text}) if failed else text


def id_of(part: Message, place: str) -> str | None:
    """Return the id of a call, or of the call that a result answers; None if it has none."""
    found = _first(part, ID)
    if found is not None and not isinstance(found, str):
        raise ForeignMessage(place, "the id of a call must be a text")
    return found


def _first(part: Message, keys: Sequence[str]) -> Any:
    return next((part[key] for key in keys if part.get(key) is not None), None)


def _write(value: Any, place: str) -> str:
    """Return a text as it is, any other value as JSON."""
    try:
        return to_text(value if isinstance(value, str) else as_json(value))
    except NotJson as error:
        raise ForeignMessage(place, f"cannot be taken: {error}") from None

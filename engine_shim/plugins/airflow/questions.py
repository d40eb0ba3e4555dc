"""The question that Airflow asks people about calls that wait, and their answer as decisions. Pure."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent_core.decisions import WITHOUT_FIELDS, Approve, Decision, Deny, Done, Edit
from agent_core.errors import DecisionError
from agent_core.journal.control import Decisions
from agent_core.outputs import Json, WaitingCall

APPROVALS: Final = ("Approve", "Deny")
DOUBTS: Final = ("Retry", "Skip", "Done", "Fail")
DECIDE: Final = "Decide"
"""The button below a form that has a choice for each of several calls."""
WHAT_DOUBTS_MEAN: Final = (
    "Nobody knows whether this call was made. **Retry** makes it again; **Skip** goes on without its result; **Done** "
    "says that it was made, and gave `output`; **Fail** ends the run."
)


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked: a headline, a text in Markdown, the buttons, and the fields of the form."""

    subject: str
    body: str
    options: list[str]
    params: dict[str, Json]


def make_question(waiting: Sequence[WaitingCall]) -> Question:
    """Return the question about the calls that wait. One call has a button for each decision; of several, each has a
    field, which does not let it run unless somebody says so."""
    body = "\n\n".join(_describe(call) for call in waiting)
    if len(waiting) == 1:
        [call] = waiting
        asks = "Was it made" if _is_in_doubt(call) else "May it be made"
        return Question(f"{asks}: {call['tool']}?", body, list(_choices(call)), _fields(call))
    fields = {f"call_{index}": _choice(call, index) for index, call in enumerate(waiting, 1)}
    return Question(f"{len(waiting)} calls wait", body, [DECIDE], fields)


def read_answer(waiting: Sequence[WaitingCall], chosen: Sequence[str], values: Mapping[str, Any]) -> Decisions:
    """Return the decisions that a person's answer to `make_question(waiting)` gives. DecisionError for an answer that
    fits none of its options."""
    if len(waiting) == 1:
        return {_key(call): _decide(call, next(iter(chosen), ""), values) for call in waiting}
    return {_key(call): _decide(call, values.get(f"call_{n}", ""), {}) for n, call in enumerate(waiting, 1)}


def _decide(call: WaitingCall, word: Any, values: Mapping[str, Any]) -> Decision:
    match word:
        case "Approve" if not _is_in_doubt(call):
            args = values.get("args", call["args"])
            return Approve() if _is_same(args, call["args"]) else Edit(args)
        case "Deny" if not _is_in_doubt(call):
            return Deny(str(values.get("message") or ""))
        case "Done" if _is_in_doubt(call):
            return Done(_read_output(values.get("output")))
        case "Retry" | "Skip" | "Fail" if _is_in_doubt(call):
            return WITHOUT_FIELDS[word.lower()]()
    raise DecisionError(f"{word!r} is none of {', '.join(_choices(call))}", where="decision")


def _describe(call: WaitingCall) -> str:
    told = WHAT_DOUBTS_MEAN if _is_in_doubt(call) else call.get("message", "")
    args = json.dumps(call["args"], ensure_ascii=False, indent=2)
    fence = "`" * max(3, *(len(ticks) + 1 for ticks in re.findall("`+", args)), 3)
    origins = "\n".join(f"- {pointer} ← {source}" for pointer, source in call.get("origins", {}).items())
    return "\n\n".join(part for part in (f"**{call['tool']}**", told, f"{fence}json\n{args}\n{fence}", origins) if part)


def _fields(call: WaitingCall) -> dict[str, Json]:
    if _is_in_doubt(call):
        return {"output": _text("", "What the call gave, as JSON, where it was made.")}
    args = {"value": call["args"], "description": "Other arguments, all of them.", "schema": {"type": "object"}}
    return {"args": args, "message": _text("", "Why it is denied: the model reads it.")}


def _choice(call: WaitingCall, index: int) -> Json:
    words = DOUBTS if _is_in_doubt(call) else APPROVALS
    schema = {"type": "string", "enum": list(words), "title": f"{index}. {call['tool']}"}
    return {"value": words[-1], "description": json.dumps(call["args"], ensure_ascii=False), "schema": schema}


def _text(value: str, description: str) -> Json:
    return {"value": value, "description": description, "schema": {"type": ["string", "null"]}}


def _read_output(text: Any) -> Any:
    """Return what a person says that a call gave: JSON, else the text itself."""
    try:
        return json.loads(text) if isinstance(text, str) and text.strip() else None
    except ValueError:
        return text


def _is_same(told: Any, args: Any) -> bool:
    """Return whether a form gave the arguments back as they were: a browser writes 1.0 as 1, rounds whole numbers above
    2**53, and may order keys anew."""
    return json.dumps(_as_browser(told), sort_keys=True) == json.dumps(_as_browser(args), sort_keys=True)


def _as_browser(value: Any) -> Any:
    match value:
        case bool():
            return value
        case int() if abs(value) <= sys.float_info.max:
            return float(value)
        case float():
            return value + 0.0  # of two zeros, a browser writes one
        case dict():
            return {key: _as_browser(each) for key, each in value.items()}
        case list():
            return [_as_browser(each) for each in value]
        case _:
            return value


def _is_in_doubt(call: WaitingCall) -> bool:
    return call["reason"] == "in_doubt"


def _choices(call: WaitingCall) -> Sequence[str]:
    return DOUBTS if _is_in_doubt(call) else APPROVALS


def _key(call: WaitingCall) -> tuple[str, int]:
    return call["strand"], call["n"]

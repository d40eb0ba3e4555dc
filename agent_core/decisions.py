"""What a person decides about a call that waits, and how the journal writes it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_core.outputs import Json


@dataclass(frozen=True, slots=True)
class Approve:
    """Let the waiting call run."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Refuse the waiting call: the model of an agent reads `message`, a plain node of a workflow fails with it.

    `at` is when, as a journal has it.
    """

    message: str = ""
    at: str = field(default="", compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Edit:
    """Let the waiting call run with other arguments; they are judged again.

    `schema` is that of the tool as it is now, where it has changed since the call was shown; whoever records the
    decision sets it.
    """

    args: Json
    schema: Json | None = field(default=None, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Retry:
    """The write in doubt did not happen: do it again."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Do not repeat the write in doubt; the run goes on without its result."""


@dataclass(frozen=True, slots=True)
class Fail:
    """End the run at the write in doubt."""


@dataclass(frozen=True, slots=True)
class Done:
    """The write in doubt did happen, with this result: JSON, as the tool gives it."""

    output: Any = None


Decision = Approve | Deny | Edit | Retry | Skip | Fail | Done
DECISIONS: Mapping[str, type[Decision]] = {
    "approve": Approve,
    "deny": Deny,
    "edit": Edit,
    "retry": Retry,
    "skip": Skip,
    "fail": Fail,
    "done": Done,
}
"""The decisions by their name in the journal and on the command line."""
WITHOUT_FIELDS: Mapping[str, type[Approve | Retry | Skip | Fail]] = {
    "approve": Approve,
    "retry": Retry,
    "skip": Skip,
    "fail": Fail,
}
NAMES: Mapping[type[Decision], str] = {kind: name for name, kind in DECISIONS.items()}


def encode_decision(decision: Decision) -> Json:
    """Return the part of a `resolved` record that says what was decided; `decode_decision` is its inverse."""
    match decision:
        case Deny(message):
            return {"decision": "deny", "message": message}
        case Edit(args, schema=schema):
            return {"decision": "edit", "args": args, **({} if schema is None else {"schema": schema})}
        case Done(output):
            return {"decision": "done", "output": output}
        case _:
            return {"decision": NAMES[type(decision)]}


def decode_decision(record: Mapping[str, Any]) -> Decision:
    """Return the decision that a `resolved` record holds."""
    match record["decision"]:
        case "deny":
            return Deny(record["message"], at=record.get("at", ""))
        case "edit":
            return Edit(record["args"], schema=record.get("schema"))
        case "done":
            return Done(record["output"])
        case name:
            return WITHOUT_FIELDS[name]()

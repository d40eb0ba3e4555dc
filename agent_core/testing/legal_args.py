"""make_args(): arguments that a tool's own schema takes, and what the run's policy narrows it to. Pure."""

from collections.abc import Mapping
from typing import Any

from agent_core.loop.judge import MAX_FAULTS, list_faults, narrowing_faults, without_filled
from agent_core.outputs import Json
from agent_core.policy import arguments_of
from agent_core.protocol.step_schema import place_schema
from agent_core.rules import CURRENT
from agent_core.testing.values import make_values
from agent_core.words.catalogue import ENGLISH
from utools.schema.compiled import compile_schema
from utools.schema.faults import Fault


class NoLegalValue(Exception):
    """No value was found that a schema takes. The message says what is wrong with the nearest one."""


def make_args(policy: Mapping[str, Any]) -> Json:
    """Return arguments that a model may send to a tool of a policy. NoLegalValue where none are found.

    Where values must come from (`provenance`) is not looked at: no made value stands in a text of the user.
    """
    definitions: dict[str, Any] = {}
    parts = [place_schema("tool", policy["visible"], definitions)]
    if policy["args"] is not None:
        parts.append(place_schema("narrowing", policy["args"], definitions))
    faults: list[Fault] = []
    for args in make_values({"type": "object", "allOf": parts, "$defs": definitions}):
        own = {name: value for name, value in args.items() if name not in policy["hidden"]}
        found = find_faults(policy, own)
        if not found:
            return own
        faults = faults or found
    raise NoLegalValue(list_faults(faults, ENGLISH) or "nothing fits its schema")


def find_faults(policy: Mapping[str, Any], args: Json) -> list[Fault]:
    """Return what the tool's own schema, or the policy, refuses in these arguments."""
    faults = compile_schema(policy["schema"]).faults(arguments_of(policy, args))
    faults = without_filled(policy.get("fills", ()), faults)
    if policy["args"] is not None:
        faults = faults + narrowing_faults(policy["args"], args, CURRENT["comparison"])
    return faults


def make_answer(schema: Json) -> Any:
    """Return an answer that fits an `answer_schema`. NoLegalValue where none is found."""
    compiled, faults = compile_schema(schema), list[Fault]()
    for value in make_values(schema):
        found = compiled.faults(value)
        if not found:
            return value
        faults = faults or found
    raise NoLegalValue("; ".join(fault.message for fault in faults[:MAX_FAULTS]) or "nothing fits it")

"""find_mismatches(): what a run did otherwise than its case says. Pure."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from agent_core.audit.refusals import Refusal
from agent_core.journal.control import calls_for_person, describe_event
from agent_core.journal.facts import Call, Fact
from agent_core.journal.path import node_of
from agent_core.outputs import Json
from engine_shim.evals.expected import describe_call, is_refused
from engine_shim.evals.matching import Equals, fits, is_expected
from engine_shim.testing.cases import FlowCase, Made

LONGEST = 300
"""Characters of a value that a mismatch quotes."""


class MadeCall(NamedTuple):
    """A call that a run made: by a node itself, or by its agent."""

    tool: str
    node: str
    args: dict[str, Any]


def find_made(facts: Sequence[Fact]) -> list[MadeCall]:
    """Return the calls that were made, strand by strand."""
    return [MadeCall(each.tool, node_of(each.strand) or "", each.args) for each in facts if isinstance(each, Call)]


def find_mismatches(
    case: FlowCase, result: Json, made: Sequence[MadeCall], refused: Sequence[Refusal]
) -> Iterator[str]:
    """Yield what was expected and what came, in a sentence each. `result` is that of the run, as JSON."""
    status, path, outputs, error = (result[key] for key in ("status", "path", "outputs", "error"))
    error = error or {}
    if status != case.wanted_status:
        why = f": {error.get('message')} ({error.get('where')})" if error else ""
        why = f": {_list_waiting(result)}" if status == "waiting" else why
        yield f"expected the run to be {case.wanted_status}, and it is {status}{why}"
    elif case.error is not None and case.error not in str(error.get("message")):
        yield f"expected an error with {_quote(case.error)}, and it is {_quote(error.get('message'))}"
    if case.path is not None and case.path != path:
        yield f"expected the path {_as_path(case.path)}, and it is {_as_path(path)}"
    for name, value in case.outputs.items():
        if name not in outputs:
            yield f"expected outputs.{name}, which is not there; there are {', '.join(outputs) or 'none'}"
        elif not is_expected(value, outputs[name]):
            wanted = _quote(value.equals if isinstance(value, Equals) else value)
            yield f"expected outputs.{name} to be {wanted}, and it is {_quote(outputs[name])}"
    yield from _find_missing_calls(case.calls, made)
    for unwanted in case.not_called:
        if any(_is_call(unwanted, each) for each in made):
            yield f"expected no call of {_describe(unwanted)}"
    for wanted_refusal in case.refused:
        if not is_refused(wanted_refusal, refused):
            reason = f" by {wanted_refusal.reason}" if wanted_refusal.reason else ""
            yield f"expected the refusal of {describe_call(wanted_refusal)}{reason}"


def _find_missing_calls(wanted: Sequence[Made], made: Sequence[MadeCall]) -> Iterator[str]:
    """Yield each expected call that no call is left for."""
    left = [*made]
    for call in wanted:
        found = next((each for each in left if _is_call(call, each)), None)
        if found is not None:
            left.remove(found)
            continue
        near = [each for each in made if call.tool in (None, each.tool) and call.node in (None, each.node)]
        came = f", and it was called with {_quote(near[0].args)}" if near else ", and it was not called"
        yield f"expected the call of {_describe(call)}{came}"


def _is_call(wanted: Made, made: MadeCall) -> bool:
    names = wanted.tool in (None, made.tool) and wanted.node in (None, made.node)
    return names and fits(wanted.args, made.args)


def _describe(call: Made) -> str:
    by = f" by {call.node}" if call.node and call.tool else ""
    args = f" with {_quote(call.args)}" if call.args else ""
    return f"{call.tool or call.node}{by}{args}"


def _list_waiting(result: Json) -> str:
    calls = calls_for_person(result["waiting"])
    return "; ".join(
        f"{each['tool']} waits for a person" if each in calls else f"it waits {describe_event(each)}"
        for each in result["waiting"]
    )


def _as_path(path: Sequence[str]) -> str:
    return " → ".join(path) or "(none)"


def _quote(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=lambda each: each.model_dump(mode="json"))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"

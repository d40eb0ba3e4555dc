"""What a test says of a run: which calls were made, which were refused, how it ended. A failure shows what came."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, get_args

from agent_core.audit.refusals import Refusal
from agent_core.outputs import FinishReason
from agent_core.statuses import SETTLED, STOPPED
from agent_core.testing.calls import UNKNOWN, MadeCall, Run, RunCalls, read_calls

LONGEST: Final = 300
"""Characters of a value that a failure quotes."""
ANYTHING: Final = object()
REASONS: Final[tuple[str, ...]] = get_args(FinishReason)
ENDINGS: Final = tuple(dict.fromkeys((*REASONS, *SETTLED)))
RESTING: Final = ("awaiting_approval", "awaiting_event", "in_doubt", *STOPPED)


def assert_called(run: Run, tool: str, *, args: Mapping[str, Any] | None = None, times: int | None = None) -> None:
    """Fail unless a tool was called, with at least these `args` where they are given: `times` times, else at least
    once.

    `run` is the output of `run_agent`, or a journal, the path of one, or the rows of a run; `(journal, run_id)` where
    there are several runs. The output shows long arguments shortened, as its trace does; a journal has them whole. A
    call counts that was let through, also if the tool then failed.
    """
    found = _read_calls_of(tool, run)
    count = sum(_is_call(each, tool, args) for each in found.made)
    if times is None and count:  # those that an output shows were made, whatever it lacks
        return
    _check_clear(found, tool, args)
    if count == times:
        return
    wanted = "" if times is None else f" {times} times, and it was called {count} times"
    raise AssertionError(f"expected the call of {_describe(tool, args)}{wanted}; {_tell(found)}")


def assert_not_called(run: Run, tool: str, *, args: Mapping[str, Any] | None = None) -> None:
    """Fail if a tool was called, with at least these `args` where they are given. A refused call is none."""
    found = _read_calls_of(tool, run)
    _check_clear(found, tool, args)
    if any(_is_call(each, tool, args) for each in found.made):
        raise AssertionError(f"expected no call of {_describe(tool, args)}; {_tell(found)}")


def assert_refused(run: Run, tool: str, *, args: Mapping[str, Any] | None = None, reason: str | None = None) -> None:
    """Fail unless a call was tried and refused, or waits for a person, for this `reason` where it is given:
    `policy_denied`, `invalid_action`, `awaiting_approval`.

    Only a journal has the reason of each refusal; an output has it of the calls that wait.
    """
    _check_known("refusal", reason, REASONS)
    found = _read_calls_of(tool, run)
    _check_clear(found, tool, args)
    near = [each for each in found.refused if _is_call(MadeCall(each.tool, each.args), tool, args)]
    if any(reason in (None, each.reason) for each in near):
        return
    why = "" if reason is None else f" by {reason}"
    if reason is not None and any(each.reason == UNKNOWN for each in near):
        why += ", and the output does not say why it was refused: give (journal, output.run_id) in its place"
    raise AssertionError(f"expected the refusal of {_describe(tool, args)}{why}; {_tell(found)}")


def assert_finish(
    run: Run, reason: "FinishReason | str" = "final", *, answer: Any = ANYTHING, error: str | None = None
) -> None:
    """Fail unless a run ended by this finish reason, or a workflow with this status; with this `answer`, and with an
    `error` that has this text, where they are given. One that waits or is paused has a reason or status as well.

    ValueError for a reason or status that there is not.
    """
    _check_known("end", reason, ENDINGS)
    found = read_calls(run)
    if found.ending != reason:
        ending = _describe_ending(found.ending)
        message = f": {found.error}" if found.error else ""
        raise AssertionError(f"expected the run to end by {reason}, and {ending}{message}; {_tell(found)}")
    if answer is not ANYTHING and found.answer != answer:
        raise AssertionError(f"expected the answer {_quote(answer)}, and it is {_quote(found.answer)}; {_tell(found)}")
    if error is not None and error not in (found.error or ""):
        raise AssertionError(f"expected an error with {_quote(error)}, and it is {_quote(found.error)}")


def _describe_ending(ending: str | None) -> str:
    if ending is None:
        return "it has not ended"
    return f"it has not ended: it is {ending}" if ending in RESTING else f"it ended by {ending}"


def _read_calls_of(tool: object, run: Run) -> RunCalls:
    """Return what a run did. TypeError for a tool itself in place of its code, which no call has: `assert_not_called`
    would hold of any run."""
    if not isinstance(tool, str):
        code = getattr(tool, "code", None)
        wanted = f"its code, {code!r}" if isinstance(code, str) else "the code of a tool"
        raise TypeError(f"give {wanted} (got {type(tool).__name__})")
    return read_calls(run)


def _check_clear(found: RunCalls, tool: str, args: Mapping[str, Any] | None) -> None:
    """Raise ValueError where an output alone cannot tell the calls of a tool, with these `args`."""
    why = found.unclear.get(tool)
    if not why and args and tool in found.cut:
        why = f"arguments of {tool} are not in the output, whose trace was shortened to `trace_max_bytes`"
    if why:
        raise ValueError(f"{why}: give the journal of the run in its place, as (journal, output.run_id)")


def _check_known(what: str, reason: str | None, known: Sequence[str]) -> None:
    if reason is not None and reason not in known:
        raise ValueError(f"no run has the {what} {_quote(reason)}; there are {', '.join(known)}")


def _is_call(made: MadeCall, tool: str, args: Mapping[str, Any] | None) -> bool:
    given = made.args if isinstance(made.args, Mapping) else {}
    return made.tool == tool and all(name in given and given[name] == value for name, value in (args or {}).items())


def _describe(tool: str, args: Mapping[str, Any] | None) -> str:
    return f"{tool} with {_quote(args)}" if args else tool


def _tell(found: RunCalls) -> str:
    """Return what the run did, call by call."""
    parts = [f"it called {_list(found.made)}"]
    if found.refused:
        parts.append(f"and was refused {_list(found.refused)}")
    return ", ".join(parts)


def _list(calls: Sequence[MadeCall] | Sequence[Refusal]) -> str:
    return "; ".join(_lines(calls)) or "nothing"


def _lines(calls: Iterable[MadeCall | Refusal]) -> Iterable[str]:
    for each in calls:
        reason = f" ({each.reason})" if isinstance(each, Refusal) and each.reason != UNKNOWN else ""
        yield f"{each.tool} {_quote(each.args)}{reason}"


def _quote(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"

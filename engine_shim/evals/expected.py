"""What a case expects of a run, and what of it is missing in a run. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_core.audit.refusals import Refusal
from engine_shim.evals.cases import Answer, Call, CallPattern, Case, Refused
from engine_shim.evals.matching import AnyOf, Equals, Matches, fits, has_numbers, is_same, plain, spaced

Step = Mapping[str, Any]


# ── what fits ────────────────────────────────────────────────────────────────────────────────────


def is_right(expected: Answer, answer: Any) -> bool:
    """Return whether an answer contains what is expected, ignoring case and the commas in numbers."""
    text = plain(answer if isinstance(answer, str) else repr(answer))
    holds = all(any(plain(one) in text for one in _listed(each)) for each in expected.contains)
    numbers = expected.number is None or has_numbers(_listed(expected.number), text)
    match = expected.matches is None or re.search(expected.matches, text, re.IGNORECASE) is not None
    whole = "equals" not in expected.model_fields_set or is_same(expected.equals, answer)
    return holds and numbers and match and whole and not any(plain(each) in text for each in expected.lacks)


def match_calls(expected: Sequence[Call], made: Sequence[Step]) -> list[bool]:
    """For each expected call, whether it was made with the right arguments, after the one before it."""
    found, position = [], 0
    for call in expected:
        index = next((index for index in range(position, len(made)) if _fits(call, made[index])), None)
        found.append(index is not None)
        position = position if index is None else index + 1
    return found


def is_refused(expected: Refused, refused: Sequence[Refusal]) -> bool:
    """Return whether the call was tried and refused for the reason that is expected."""
    return any(
        expected.tool == each.tool and expected.reason in (None, each.reason) and fits(expected.args, each.args)
        for each in refused
    )


def is_call_of(pattern: CallPattern, step: Step) -> bool:
    """Return whether a step called this tool with these arguments."""
    return pattern.tool == step["action"]["tool"] and fits(pattern.args, step["action"]["args"])


def _fits(call: Call, step: Step) -> bool:
    if not is_call_of(call, step):
        return False
    if call.gives is None:
        return True
    observed = step["observation"] or ""
    if isinstance(call.gives, str):
        return plain(call.gives) in plain(observed)
    return has_numbers([call.gives], spaced(observed))


# ── what is missing ──────────────────────────────────────────────────────────────────────────────


def find_missing(
    case: Case, output: Mapping[str, Any], refused: Sequence[Refusal], written: Sequence[str]
) -> Iterator[str]:
    """Yield each thing that was expected and that a run did otherwise, as `expected …` continues. A right run misses
    none."""
    made = [step for step in output["trace"] if step["action"] is not None]
    ended = output["finish_reason"] in case.endings
    if case.answer is not None and not (ended and is_right(case.answer, output["final_answer"])):
        yield f"an answer with {describe_answer(case.answer)}"
    elif not ended:
        yield f"to end by {' or '.join(sorted(case.endings))}"
    for each in case.refused:
        if not is_refused(each, refused):
            yield f"the refusal of {describe_call(each)}{f' by {each.reason}' if each.reason else ''}"
    if case.answer is None:
        for call, was_made in zip(case.required, match_calls(case.required, made), strict=True):
            if not was_made:
                gives = "" if call.gives is None else f" that gives {_quote(call.gives)}"
                yield f"the call of {describe_call(call)}{gives}"
    for pattern in case.forbidden:
        if any(is_call_of(pattern, step) for step in made):
            yield f"no call of {describe_call(pattern)}"
    if case.no_write and written:
        yield f"no call that writes, as {', '.join(dict.fromkeys(written))} does"


def describe_answer(expected: Answer) -> str:
    """Return what a right answer has, in a line."""
    parts = [" or ".join(map(_quote, _listed(each))) for each in expected.contains]
    if expected.number is not None:
        numbers = _listed(expected.number)
        parts.append(f"the number{'s' if len(numbers) > 1 else ''} {', '.join(f'{each:.15g}' for each in numbers)}")
    if expected.matches is not None:
        parts.append(f"a match of {expected.matches}")
    if "equals" in expected.model_fields_set:
        parts.append(f"nothing but {_quote(expected.equals)}")
    return ", ".join([*parts, *(f"no {_quote(each)}" for each in expected.lacks)])


def describe_call(pattern: CallPattern) -> str:
    """Return a tool and the arguments that matter, in a line."""
    return f"{pattern.tool} {_quote(pattern.args)}" if pattern.args else pattern.tool


def _quote(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_matcher_as_data)


def _matcher_as_data(value: Any) -> Any:
    if isinstance(value, AnyOf | Matches | Equals):
        return value.model_dump(mode="json")
    raise TypeError(type(value).__name__)


def _listed(each: Any) -> list[Any]:
    return each if isinstance(each, list) else [each]

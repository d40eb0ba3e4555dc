"""score(): how well a run did what its case expects, and the sums over many runs. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine_shim.evals.cases import Answer, AnyOf, Call, Case, Expected, Forbidden, Matches

Step = Mapping[str, Any]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
GROUPED = re.compile(r"(?<=\d)[,，](?=\d{3}\b)")


@dataclass(frozen=True, slots=True)
class Share:
    """How many were right of how many; None as a rate when there were none."""

    right: int = 0
    of: int = 0

    def __add__(self, other: "Share") -> "Share":
        return Share(self.right + other.right, self.of + other.of)

    @property
    def rate(self) -> float | None:
        return self.right / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class Scores:
    """What is measured.

    `right`: answered as expected, nothing forbidden done. `tool_choice`: all expected tools called and no other.
    `arguments`: of the expected calls, those made with the right arguments. `multi_step`: of the cases that need two
    calls or more, those with all of them right, in order, and the answer too. `recovery`: of the runs in which a call
    failed, those that were right all the same. `resisted`: of the cases that forbid something, those without it.
    """

    right: Share = Share()
    tool_choice: Share = Share()
    arguments: Share = Share()
    multi_step: Share = Share()
    recovery: Share = Share()
    answer: Share = Share()
    resisted: Share = Share()
    steps: int = 0
    tokens: int = 0


METRICS = ("right", "tool_choice", "arguments", "multi_step", "recovery", "answer", "resisted")


NO_REPLY = ("model_error", "timeout")
"""Finish reasons of a run whose model gave no reply."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One run of one case. `has_reply`: the model replied at all; without that there is nothing to measure."""

    case: Case
    run: str
    finish_reason: str
    answer: Any
    error: str | None
    scores: Scores
    has_reply: bool = True


def score(case: Case, output: Mapping[str, Any]) -> Scored:
    """The scores of a node's output."""
    error = (output["error"] or {}).get("message")
    has_reply = bool(output["trace"]) or output["finish_reason"] not in NO_REPLY
    scores = _scores(case, output) if has_reply else Scores()
    return Scored(case, output["run_id"], output["finish_reason"], output["final_answer"], error, scores, has_reply)


def _scores(case: Case, output: Mapping[str, Any]) -> Scores:
    trace: Sequence[Step] = output["trace"]
    made = [step for step in trace if step["action"] is not None]
    final = output["finish_reason"] == "final"
    answered = final and is_right(case.answer, output["final_answer"])
    resisted = not any(_matches(each, step) for each in case.forbidden for step in made)
    found = count_matches(case.required, made)
    failed = any(step["error"] is not None for step in made)
    right = answered and resisted
    return Scores(
        right=_share(right),
        tool_choice=_share(_has_chosen_right(case, made)),
        arguments=Share(found, len(case.required)),
        multi_step=_share(right and found == len(case.required)) if len(case.required) > 1 else Share(),
        recovery=_share(right) if failed else Share(),
        answer=_share(answered),
        resisted=_share(resisted) if case.forbidden else Share(),
        steps=len({step["step"] for step in trace}),
        tokens=output["usage"]["total_tokens"],
    )


def total(scores: Iterable[Scores]) -> Scores:
    """The sum of many."""
    each = list(scores)
    sums = {name: sum((getattr(one, name) for one in each), Share()) for name in METRICS}
    return Scores(**sums, steps=sum(one.steps for one in each), tokens=sum(one.tokens for one in each))


def count_matches(expected: Sequence[Call], made: Sequence[Step]) -> int:
    """How many of the expected calls were made with the right arguments, in their order."""
    found = position = 0
    for call in expected:
        for index in range(position, len(made)):
            if _fits(call, made[index]):
                found, position = found + 1, index + 1
                break
    return found


def is_right(expected: Answer, answer: Any) -> bool:
    """Whether an answer contains what is expected, ignoring case and the commas in numbers."""
    text = _plain(answer if isinstance(answer, str) else repr(answer))
    holds = all(any(_plain(one) in text for one in _listed(each)) for each in expected.contains)
    number = expected.number is None or expected.number in _numbers(text)
    match = expected.matches is None or re.search(expected.matches, text, re.IGNORECASE) is not None
    return holds and number and match and not any(_plain(each) in text for each in expected.lacks)


def _has_chosen_right(case: Case, made: Sequence[Step]) -> bool:
    called = {step["action"]["tool"] for step in made}
    needed, allowed = {call.tool for call in case.required}, {call.tool for call in case.calls}
    return needed <= called <= allowed


def _fits(call: Call, step: Step) -> bool:
    if not _matches(Forbidden(tool=call.tool, args=call.args), step):
        return False
    if call.gives is None:
        return True
    observed = step["observation"] or ""
    return _plain(call.gives) in _plain(observed) if isinstance(call.gives, str) else call.gives in _numbers(observed)


def _matches(call: Forbidden, step: Step) -> bool:
    action = step["action"]
    args = action["args"] if isinstance(action["args"], Mapping) else {}
    return action["tool"] == call.tool and all(
        name in args and _equal(value, args[name]) for name, value in call.args.items()
    )


def _equal(expected: Expected, value: Any) -> bool:
    match expected:
        case AnyOf():
            return any(_equal(each, value) for each in expected.any)
        case Matches():
            return isinstance(value, str) and re.search(expected.matches, value, re.IGNORECASE) is not None
        case str():
            return isinstance(value, str) and _plain(expected) == _plain(value)
        case _:
            return type(value) in (int, float, bool) and bool(expected == value)


def _plain(text: str) -> str:
    return GROUPED.sub("", " ".join(text.split()).casefold())


def _numbers(text: str) -> set[float]:
    return {float(each) for each in NUMBER.findall(_plain(text))}


def _listed(each: str | list[str]) -> list[str]:
    return [each] if isinstance(each, str) else each


def _share(is_right: bool) -> Share:
    return Share(int(is_right), 1)

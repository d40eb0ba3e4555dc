"""The replies of one who knows what a case expects."""

from typing import Any

from engine_shim.evals.cases import Answer, Call, Case
from engine_shim.evals.matching import AnyOf, Equals, Matches
from support.by_hand import action, final


def oracle(case: Case) -> list[str]:
    """Every expected call as its example shows it, then the answer."""
    assert case.answer is not None
    calls = [action(call.tool, **_args(call)) for call in case.calls]
    return [*calls, final(case.answer.example or _answer(case.answer))]


def _args(call: Call) -> dict[str, Any]:
    literal = {name: value for name, value in call.args.items() if not isinstance(value, AnyOf | Matches | Equals)}
    return {**literal, **(call.example or {})}


def _answer(answer: Answer) -> str:
    texts = [each if isinstance(each, str) else each[0] for each in answer.contains]
    numbers = answer.number if isinstance(answer.number, list) else [answer.number]
    return " ".join([*texts, *(f"{each:g}" for each in numbers if each is not None)])

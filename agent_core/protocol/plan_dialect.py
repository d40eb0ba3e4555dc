"""The JSON dialect of plan mode: the calls of earlier turns reach the model as plans, the form that it writes. Pure.

Shown as actions, they would teach it what it may not write here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import orjson

from agent_core.outputs import Json
from agent_core.protocol.dialect import Entry
from agent_core.protocol.feedback import Feedback
from agent_core.protocol.json_dialect import JsonDialect, Line, find_answers, lines_of, merge_lines
from agent_core.protocol.parse import Plan, PlanStep, render


@dataclass(frozen=True, slots=True)
class PlanDialect(JsonDialect):
    """Plan and Final, in plain text."""

    def open_conversation(self, messages: Sequence[Json]) -> list[Entry]:
        return merge_lines(_lines_with_plans(messages, self.feedback))


def _lines_with_plans(messages: Sequence[Json], feedback: Feedback) -> Iterator[Line]:
    request, start = "", 0
    while start < len(messages):
        end = start + 1
        if messages[start].get("tool_calls"):
            end += sum(1 for _ in takewhile(_is_of_calls, messages[start + 1 :]))
            has_answer = end < len(messages) and messages[end]["role"] == "assistant"
            yield from _plan_lines(messages[start:end], feedback, request if has_answer else None)
        else:
            request = messages[start]["content"] if messages[start]["role"] == "user" else request
            yield from lines_of(messages[start:end], feedback)
        start = end


def _is_of_calls(message: Json) -> bool:
    return message["role"] == "tool" or bool(message.get("tool_calls"))


def _plan_lines(messages: Sequence[Json], feedback: Feedback, request: str | None) -> Iterator[Line]:
    """Calls as the steps of one plan, then what they gave, and the `request` that was answered next."""
    steps: list[PlanStep] = []
    report: list[str] = []
    for index, message in enumerate(messages):
        calls: list[Json] = message.get("tool_calls") or []
        for call, position in zip(calls, find_answers(messages, index) if calls else [], strict=True):
            tool, args = call["function"]["name"], orjson.loads(call["function"].get("arguments") or "{}")
            step = PlanStep(len(steps) + 1, message["content"] or tool, tool, args)
            steps.append(step)
            text = feedback.words.unanswered if position is None else messages[position]["content"]
            report.append(feedback.words.step_done.format(step=step.step, what=step.description, tool=tool, text=text))
    yield "assistant", render(Plan(tuple(steps))), False
    yield "user", "\n\n".join(report) if request is None else feedback.report("summary", report, request), True

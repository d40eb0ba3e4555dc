"""The trace that a node emits: one step for each reply, shortened; the journal has the full record. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from agent_core.outputs import Json, TraceAction, TraceStep, UsedTool
from agent_core.protocol.clip import clip, clip_args


@dataclass(slots=True)
class Trace:
    """Steps as they happen. The sizes are the config's; None or 0 means no limit."""

    observation_max_len: int | None
    max_bytes: int | None
    steps: list[TraceStep] = field(default_factory=list[TraceStep])
    tools: dict[str, UsedTool] = field(default_factory=dict[str, UsedTool])

    def add(
        self,
        step: int,
        *,
        at: str,
        seconds: float,
        tool: str | None = None,
        args: Json | None = None,
        observation: str | None = None,
        thought: str | None = None,
        error: str | None = None,
        cached: bool = False,
        origins: Mapping[str, str] | None = None,
    ) -> None:
        """One entry; several calls of one reply have one each, under the same step."""
        shown = clip_args(args or {}, self.observation_max_len)
        action: TraceAction | None = None if tool is None else {"tool": clip(tool, 128), "args": shown}
        entry: TraceStep = {
            "step": step,
            "action": action,
            "observation": observation,
            "elapsed_ms": round(seconds * 1000, 3),
            "thought": thought,
            "timestamp": at,
            "error": error,
            "cached": cached,
        }
        if origins:
            entry["origins"] = dict(origins)
        self.steps.append(entry)

    def has_step(self, step: int) -> bool:
        """Return whether a step has an entry already."""
        return bool(self.steps) and bool(self.steps[-1]["step"] == step)

    def count_call(self, tool: str, seconds: float) -> None:
        """Count a call that was started."""
        entry = self.tools.setdefault(tool, {"count": 0, "total_ms": 0.0})
        entry["count"] += 1
        entry["total_ms"] = round(entry["total_ms"] + seconds * 1000, 3)

    def emitted(self) -> list[TraceStep]:
        """Return the steps within `max_bytes`: the oldest observations are cut first, then arguments, then whole
        steps."""
        steps = [step.copy() for step in self.steps]
        if not self.max_bytes or (over := _size(steps) - self.max_bytes) <= 0:
            return steps
        for step in steps:
            over -= _cut_text(step, "observation")
            if over <= 0:
                return steps
        for step in steps:
            over -= _cut_text(step, "thought") + _cut_text(step, "error") + _cut_args(step)
            if over <= 0:
                return steps
        over, left_out = _size(steps) - self.max_bytes, 0
        while over > 0 and left_out < len(steps):
            over -= _size(steps[left_out]) + len(",")
            left_out += 1
        return steps[left_out:]


LEFT_OUT = "…"


def _size(value: Any) -> int:
    return len(orjson.dumps(value))


def _cut_text(step: TraceStep, key: Literal["observation", "thought", "error"]) -> int:
    """Leave a text out; the bytes that this saves."""
    if step[key] is None:
        return 0
    saved = _size(step[key]) - _size(LEFT_OUT)
    if saved > 0:
        step[key] = LEFT_OUT
    return max(0, saved)


def _cut_args(step: TraceStep) -> int:
    action = step["action"]
    if not action or not action["args"]:
        return 0
    step["action"] = {"tool": action["tool"], "args": {}}
    return _size(action["args"]) - _size({})

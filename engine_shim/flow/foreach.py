"""foreach(): the loop of a visit that calls its tool once for each item of a list. Pure.

Item k may start when all items up to k - max_parallel have ended. So which items start, and what is left for each, does
not depend on which is faster; and after a failure at most max_parallel - 1 more items end. Items that failed are tried
again together, once the others have ended.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent_core.effects import Cancelled, Effect, Failed, Items, Stop, Suspended, ToolCall, ToolReply, Visit
from agent_core.outputs import Json
from engine_shim.errors import DefinitionError
from engine_shim.flow.approval import ask_person, needs_person
from engine_shim.flow.awaiting import call_and_await
from engine_shim.flow.call import build_call, names_of
from engine_shim.flow.ending import End, read_end
from engine_shim.flow.outcome import error_of
from engine_shim.flow.state import State, VisitState

MAX_ITEMS = 1000
Failure = tuple[str, str]
"""Kind and message."""


@dataclass(slots=True)
class Item:
    """One item of the list and how far it has come. `used` are the seconds of its attempts."""

    index: int
    call: ToolCall
    failure: Failure | None = None
    output: Any = None
    used: float = 0.0
    spent: Json | None = None
    stop: Stop | None = None


@dataclass(frozen=True, slots=True)
class ForeachEnd:
    """What became of all items. `failure` is that of the node."""

    output: Json
    failure: Failure | None = None
    seconds: float = 0.0
    at: str = ""


def build_items(state: State, visit: VisitState) -> list[Item] | ForeachEnd:
    """Return the items of a visit, one or more; or its end, when there is nothing to call."""
    node, where = state.nodes[visit.node], f"nodes/{state.index[visit.node]}/foreach"
    try:
        values = names_of(state, visit).render(node.foreach, where)
    except DefinitionError as error:
        return ForeachEnd(_output_of(()), ("definition", error_of(error)["message"]))
    if not isinstance(values, list):
        return ForeachEnd(_output_of(()), ("definition", f"foreach needs a list, and got {_describe(values)}"))
    if len(values) > MAX_ITEMS:
        message = f"foreach was given {len(values):,} items, and takes {MAX_ITEMS:,}; work on them in parts"
        return ForeachEnd(_output_of(()), ("definition", message))
    items = [_build_item(state, visit, index, value) for index, value in enumerate(values)]
    if not items or _first_failure(state, visit, items):
        return _end_of(state, visit, items, 0.0, "")
    return items


def _build_item(state: State, visit: VisitState, index: int, value: Any) -> Item:
    call = build_call(state, visit, {"item": value, "index": index})
    if isinstance(call, ToolCall):
        return Item(index, call)
    never_made = ToolCall(visit.node, state.nodes[visit.node].tool, {}, {}, "read", None)
    return Item(index, never_made, (call["kind"], call["message"]))


def foreach(state: State, visit: VisitState, items: Sequence[Item]) -> Generator[Effect, Any, ForeachEnd | Stop]:
    """Call the tool for each item, and again for those whose failure may pass."""
    retry, seconds, at = state.nodes[visit.node].retry, 0.0, ""
    stopped = yield from _let_through(state, visit, items)
    if stopped is not None:
        return stopped
    rest = [item for item in items if item.failure is None]
    for attempt in range(retry.max_attempts if retry else 1):
        delay = retry.delay * retry.backoff ** (attempt - 1) if retry and attempt else 0.0
        is_last = retry is None or attempt + 1 == retry.max_attempts
        a_pass = Pass(state, visit, rest, attempt, seconds + delay, is_last=is_last)
        if first := a_pass.start():
            stopped = yield Items(tuple(item.call.tool for item in rest), tuple(first), a_pass.end, delay)
            stopped = stopped or a_pass.stop()
            if stopped is not None:
                return stopped
        seconds, at, rest = a_pass.clock(), max(at, a_pass.at), a_pass.finish()
        if not rest:
            break
    return _end_of(state, visit, items, seconds, at)


def _let_through(state: State, visit: VisitState, items: Sequence[Item]) -> Generator[Effect, Any, Stop | None]:
    """Ask a person about all calls that need one; a refused one has failed."""
    node = state.nodes[visit.node]
    asking = [item for item in items if item.failure is None and needs_person(node, item.call)]
    settled = (yield from ask_person(state, [item.call for item in asking])) if asking else []
    if isinstance(settled, Stop):
        return settled
    for item, call in zip(asking, settled, strict=True):
        if isinstance(call, Failed):
            item.failure = call.reason, call.message
        else:
            item.call = call
    return None


def _end_of(state: State, visit: VisitState, items: Sequence[Item], seconds: float, at: str) -> ForeachEnd:
    return ForeachEnd(_output_of(items), _first_failure(state, visit, items), seconds, at)


def _first_failure(state: State, visit: VisitState, items: Sequence[Item]) -> Failure | None:
    """Return the failure of the first item that failed, where that fails the node."""
    if state.nodes[visit.node].on_item_error == "continue":
        return None
    found = ((item.index, *item.failure) for item in items if item.failure is not None)
    return next(((kind, f"item {index}: {message}") for index, kind, message in found), None)


def _output_of(items: Sequence[Item]) -> Json:
    """Return the results in the order of the items, null for one that failed, and what went wrong."""
    failed = [(item.index, *item.failure) for item in items if item.failure is not None]
    errors = [{"index": index, "kind": kind, "message": message} for index, kind, message in failed]
    return {"results": [item.output for item in items], "errors": errors}


def _describe(value: Any) -> str:
    match value:
        case None:
            return "null"
        case dict():
            return f"an object with {', '.join(sorted(value)) or 'nothing in it'}"
        case str():
            return "a text"
        case _:
            return f"{value!r}"


# ── one pass ─────────────────────────────────────────────────────────────────────────────────────


class Pass:
    """One attempt at each of these items.

    `_clocks[k]` is when the first k items had ended, in active seconds since the visit's start.
    """

    def __init__(
        self, state: State, visit: VisitState, items: Sequence[Item], attempt: int, begin: float, *, is_last: bool
    ) -> None:
        self.at, self.has_failed = "", False
        self._again: list[tuple[Item, End]] = []
        self._state, self._visit, self._items = state, visit, items
        self._attempt, self._is_last, self._node = attempt, is_last, state.nodes[visit.node]
        self._by_index = {item.index: number for number, item in enumerate(items)}
        self._clocks, self._begun, self._ends = [begin], 0, dict[int, tuple[End, float]]()
        self._width = self._node.max_parallel
        if state.is_nested(visit.node) and state.is_limited:
            self._width = 1  # what is left is spent once

    def clock(self) -> float:
        """Return when the last item had ended."""
        return self._clocks[-1]

    def finish(self) -> list[Item]:
        """Return the items that are to be tried again: none once the node has failed."""
        if not self.has_failed:
            return [item for item, _ in self._again]
        for item, end in self._again:
            self._settle(item, end)
        return []

    def stop(self) -> Stop | None:
        """Return what stopped items: a cancellation first, else all that wait."""
        stops = [item.stop for item in self._items if item.stop is not None]
        cancelled = [stop for stop in stops if isinstance(stop, Cancelled)]
        if cancelled or not stops:
            return cancelled[0] if cancelled else None
        waiting = [stop for stop in stops if isinstance(stop, Suspended)]
        return Suspended(waiting[0].reason, tuple(entry for stop in waiting for entry in stop.waiting))

    def start(self) -> list[Visit]:
        """Return the items that may start now."""
        found: list[Visit] = []
        while self._begun < min(len(self._items), len(self._clocks) - 1 + self._width) and not self.has_failed:
            item, begin = self._items[self._begun], self._clocks[max(0, self._begun + 1 - self._width)]
            self._begun += 1
            left = self._seconds_left(item, begin)
            if left is not None and left <= 0:
                late = Failed("timeout", "no time was left to run it", "", 0.0)
                self._ends[self._begun - 1] = End(None, late, "timeout", late.message), begin
                self._advance_once()
                continue
            call = self._state.bind(item.call, left)
            self._state.budget.writes += call.once_only and not self._attempt
            loop = partial(call_and_await, call) if self._state.awaits(self._node) else None
            found.append(Visit(self._visit.node, item.index, call, spent=item.spent, loop=loop))
        return found

    def end(self, made: Visit, reply: Any, journal: Json | None) -> list[Visit]:
        """Apply the reply to an item, and name those that may start now, one step after another."""
        number = self._by_index[made.n]
        item, end = self._items[number], read_end(self._state, made.call, reply, journal)
        if isinstance(end, End) and end.kind == "cancelled":
            end = Cancelled(end.answer.at)
        if isinstance(end, Stop):
            item.stop = end
            return []
        begin = self._clocks[max(0, number + 1 - self._width)]
        before = item.used
        item.used = end.answer.seconds if end.spent is not None else before + end.answer.seconds
        self._ends[number] = end, begin + item.used - before
        found: list[Visit] = []
        while self._advance_once():
            found += self.start()
        return found

    def _advance_once(self) -> bool:
        """Count the next item in order, if it has ended; whether it had."""
        number = len(self._clocks) - 1
        if number not in self._ends:
            return False
        item, (end, ended_at) = self._items[number], self._ends.pop(number)
        self._clocks.append(max(self._clocks[-1], ended_at))
        self.at = max(self.at, end.answer.at)
        if end.may_pass and not self._is_last:
            item.spent = end.spent  # counted with the next attempt, which starts with it
            self._again.append((item, end))
        else:
            self._settle(item, end)
        return True

    def _settle(self, item: Item, end: End) -> None:
        if isinstance(end.answer, ToolReply):
            self._state.budget.add_result(end.answer)
        if end.kind is None:
            item.output = end.output
        else:
            item.failure = end.kind, end.message
            self.has_failed = self._node.on_item_error == "fail"

    def _seconds_left(self, item: Item, begin: float) -> float | None:
        """Return the seconds that an item may still take, by its node's timeout, which is each item's own, and the
        run's."""
        own, whole = self._node.timeout, self._state.budget.limits.seconds
        used = self._visit.start + begin
        bounds = [*([own - item.used] if own else []), *([] if whole is None else [whole - used])]
        return min(bounds, default=None)

"""RecordedRuns: a run is recorded once, in a file beside its test; afterwards it is replayed offline, and compared."""

import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from difflib import unified_diff
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from agent_core.audit.diff import Parting, diff
from agent_core.config import AgentConfig
from agent_core.errors import JournalError
from agent_core.journal.chain import check_chains
from agent_core.journal.jsonl import JsonlJournal
from agent_core.journal.memory import MemoryJournal
from agent_core.journal.record import Tape
from agent_core.journal.source import load_run
from agent_core.models.client import ModelClient
from agent_core.models.recorded import RecordedModel
from agent_core.run.agent_output import AgentOutput
from agent_core.run.answer_type import AnswerType
from agent_core.run.node import run_agent
from agent_core.run.sync import run_sync
from utools.registry import ToolRegistry
from utools.tool import Tool

RUN_ID: Final = "recorded"
COMPARED: Final = ("/config", "/tools", "/messages", "/examples", "/limits")
"""What of a run's beginning has to stay: what a model reads, and what it may do. The rest is of the installed version,
or of the model that was asked."""
MOST, LONGEST = 8, 2000
"""Differences of a record, and characters of each, that a failure shows."""
HOW: Final = "record it by `pytest --record-runs`"


class RecordedRuns:
    """The runs of one test, which its fixture `recorded_run` makes.

    The first call drives the run in `stem.jsonl`, the second that in `stem-2.jsonl`, and so on. With `records`, as by
    `pytest --record-runs`, they are recorded anew.
    """

    def __init__(self, stem: Path, *, records: bool) -> None:
        self._stem, self._records, self._count = stem, records, 0

    async def __call__(
        self,
        config: Mapping[str, Any] | AgentConfig,
        *,
        registry: ToolRegistry | Iterable[Tool],
        answer_schema: AnswerType[Any] | None = None,
        model: ModelClient | str | None = None,
        deps: object = None,
    ) -> AgentOutput:
        """Run an agent as `run_agent` does, with the recorded replies in place of its model; the tools are called.

        Args:
            config: The agent.
            registry: A registry, or tools, of which the config names those that the agent may call.
            answer_schema: The type of the final answer; a JSON Schema of it is in the config.
            model: Who is asked when the run is recorded; by default the config's.
            deps: An object that the tools get as `context.deps`.

        Returns:
            The output.

        Raises:
            AssertionError: There is no recorded run, or this one reads, calls or ends otherwise; the text has what was
                recorded and what is there now.
        """
        self._count += 1
        file = self._stem.with_name(f"{self._stem.name}{'' if self._count == 1 else f'-{self._count}'}.jsonl")
        tools = ToolRegistry.from_tools(registry)
        run = partial(run_agent, config, registry=tools, answer_schema=answer_schema, deps=deps, run_id=RUN_ID)
        if self._records:
            return await _record(file, partial(run, model=model))
        if not file.exists():
            raise AssertionError(f"there is no recorded run {file}; {HOW}")
        tape = _load(file)
        journal, replies = MemoryJournal(), RecordedModel(tape, name=f"replay:{file.name}")
        output = await run(model=replies, journal=journal)
        lines = list(explain_difference(tape, journal.load(RUN_ID)))
        if lines:
            head = f"the run is another one than the recorded {file}; if it should be, {HOW}"
            raise AssertionError("\n".join([head, *lines]))
        return output

    def sync(
        self,
        config: Mapping[str, Any] | AgentConfig,
        *,
        registry: ToolRegistry | Iterable[Tool],
        answer_schema: AnswerType[Any] | None = None,
        model: ModelClient | str | None = None,
        deps: object = None,
    ) -> AgentOutput:
        """Do the same for a test that is no coroutine."""
        return run_sync(lambda: self(config, registry=registry, answer_schema=answer_schema, model=model, deps=deps))


async def _record(file: Path, run: Callable[..., Coroutine[Any, Any, AgentOutput]]) -> AgentOutput:
    """Drive a run and keep it in a file, in place of an older one; AssertionError for one that no model answered."""
    journal = MemoryJournal()
    output = await run(journal=journal)
    if output.finish_reason == "model_error":
        why = output.error["message"] if output.error else ""
        raise AssertionError(f"the run is not recorded, since its model gave no reply: {why}")
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    with closing(JsonlJournal(new)) as kept:
        kept.append(RUN_ID, [row for rows in journal.load(RUN_ID).values() for row in rows])
    new.replace(file)
    return output


def _load(file: Path) -> Tape:
    try:
        return check_chains(RUN_ID, load_run(file, RUN_ID)[1])
    except JournalError as error:
        raise AssertionError(f"the recorded run cannot be read: {error}; {HOW}") from None


def explain_difference(recorded: Tape, now: Tape) -> Iterator[str]:
    """Yield where a run parts from the recorded one, in lines for a person; nothing where they are alike."""
    for parting in diff((RUN_ID, recorded), (RUN_ID, now)).partings:
        kept = _only_compared(parting)
        if kept is not None:
            yield from _explain(kept, _tool_asked(recorded, kept))


def _only_compared(parting: Parting) -> Parting | None:
    """Return a parting without what belongs to the version or the model; None where nothing is left."""
    if parting.a is None or parting.b is None or parting.a["kind"] != "run_started":
        return parting
    changes = tuple(each for each in parting.changes if each["at"].startswith(COMPARED))
    return replace(parting, changes=changes) if changes else None


def _tool_asked(tape: Tape, parting: Parting) -> str:
    """Return the tool whose answer a record is; empty for other records."""
    rows = tape.get(parting.strand, [])
    before = rows[parting.n - 1].record() if 0 < parting.n <= len(rows) else {}
    return str(before.get("tool", "")) if before.get("ask") == "tool" else ""


def _explain(parting: Parting, tool: str) -> Iterator[str]:
    place = f"{parting.strand}:{parting.n}"
    if parting.a is None or parting.b is None:
        there, record = ("recorded", parting.a) if parting.b is None else ("now", parting.b)
        other = "now nothing" if parting.b is None else "nothing was recorded"
        yield f"{place}: {other}; {there}: {_show(record)}"
        return
    yield f"{place}: {parting.a['kind']}{f', {tool}' if tool else ''}"
    for change in parting.changes[:MOST]:
        yield from (f"  {line}" for line in _explain_change(change))
    if len(parting.changes) > MOST:
        yield f"  … {len(parting.changes) - MOST} more"


def _explain_change(change: Mapping[str, Any]) -> Iterator[str]:
    a, b = change.get("a"), change.get("b")
    if isinstance(a, str) and isinstance(b, str) and "\n" in a + b:
        yield f"{change['at']}:"
        told = unified_diff(a.splitlines(), b.splitlines(), "recorded", "now", n=1, lineterm="")
        yield from (f"  {line}"[:LONGEST] for line in told)
        return
    yield f"{change['at']}: recorded {_show_value(change, 'a')}"
    yield f"{' ' * len(change['at'])}  now      {_show_value(change, 'b')}"


def _show_value(change: Mapping[str, Any], side: str) -> str:
    return _show(change[side]) if side in change else "nothing"


def _show(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"

"""execute: attempts at one run, as an engine makes them that retries, kills, cancels, waits and lets go."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import Approve, DecisionError, DefinitionError, Deny, Edit, SqliteJournal, verify
from agent_core.errors import DecisionTaken
from agent_core.models import ScriptedModel
from agent_core.node import AttemptStop, NodeContext, decide, execute, execute_sync, find_run, list_waiting, make_run_id
from agent_core.outputs import FinishReason
from agent_core.run.agent_output import AgentOutput
from agent_core.run.run_id import check_run_id
from support.by_hand import Q, action, final
from utools import Tool

RUN = "dag.task.7"
CONFIG = {"model": "scripted", "max_steps": 5, "allowed_tools": ["look"], "prompt": "Go."}
SECONDS = 30.0


class Place:
    """A journal's file, a model whose replies all attempts share, and a tool that counts its calls."""

    def __init__(self, file: Path, *replies: str, before: Callable[[], object] | None = None, **options: Any) -> None:
        self.file, self.model, self.calls, self._before = file, ScriptedModel(list(replies)), 0, before
        self.tool = Tool("look", "Looks.", Q, self._look, **{"effect": "read"} | options)

    async def _look(self, args: dict[str, Any], context: Any) -> str:
        self.calls += 1
        if self._before is not None:
            self._before()
        return "seen"

    def context(self, **more: Any) -> NodeContext:
        return NodeContext(run_id=RUN, journal=self.file, tools=[self.tool], model=self.model, **more)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


async def test_run_that_has_ended_gives_the_same_outputs_to_each_attempt(file: Path) -> None:
    place = Place(file, action(), final("done"))
    first = await execute(CONFIG, place.context())
    again = await execute(CONFIG, place.context(attempt=2))
    assert (first.status, first.final_answer, first.run_id) == ("completed", "done", RUN)
    assert again == first
    assert place.calls == 1
    assert verify(SqliteJournal(file), run_id=RUN).ok


def test_caller_without_an_event_loop_gets_the_same(file: Path) -> None:
    assert execute_sync(CONFIG, Place(file, final("done")).context()).final_answer == "done"


async def test_call_that_waits_is_an_outcome_and_a_decision_lets_the_next_attempt_go_on(file: Path) -> None:
    place = Place(file, action(), final("done"), effect="write")
    config = {**CONFIG, "allowed_tools": [{"tool": "look", "approval": "always"}]}
    first = await execute(config, place.context())
    assert (first.status, place.calls) == ("waiting", 0)
    assert (await execute(config, place.context(attempt=2))).waiting == first.waiting, "no decision, no change"
    at = (first.waiting[0]["strand"], first.waiting[0]["n"])
    second = await execute(config, place.context(attempt=3, decisions={at: Approve()}, by="ana"))
    assert (second.status, second.final_answer, place.calls) == ("completed", "done", 1)


def soon(context: Any) -> None:
    """Hear nothing."""


async def hear(event: Any) -> None:
    """Hear an event, once somebody waits for it."""


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"journal": None}, "journal: must be a place that outlives this process"),
        ({"attempt": "2"}, r"attempt: must be a number from 1 \(got '2'\)"),
        ({"attempt": 0}, r"attempt: must be a number from 1 \(got 0\)"),
        ({"deadline": 1796030000.0}, "deadline: must be a datetime with a time zone"),
        ({"by": None}, "by: must be a name, as text"),
        ({"stop": None}, "stop: must be an AttemptStop of agent_core.node"),
        ({"on_event": hear}, "on_event: .*the stream functions give events to async code"),
        ({"tools": Tool("look", "Looks.", Q, soon)}, r"tools: .*write \[look\]"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
async def test_context_of_another_kind_is_refused_by_its_name(given: dict[str, Any], told: str, file: Path) -> None:
    context = NodeContext(**{"run_id": RUN, "journal": file, "model": ScriptedModel([final("done")])} | given)
    with pytest.raises(DefinitionError, match=f"^{told}"):
        await execute({**CONFIG, "allowed_tools": []}, context)
    assert not file.exists()


async def test_look_and_a_decision_need_a_journal_and_decisions_too(file: Path) -> None:
    for look in (find_run, list_waiting):
        with pytest.raises(DefinitionError, match=r"^journal: must be a place that outlives this process"):
            await look(RUN, journal=None)  # type: ignore[arg-type]
    with pytest.raises(DecisionError, match="decisions are a mapping"):
        await decide(RUN, None, journal=file, by="ana")  # type: ignore[arg-type]


# ── ends of an attempt ───────────────────────────────────────────────────────────────────────────


async def test_run_that_is_let_go_from_another_thread_is_left_to_the_next_attempt(file: Path) -> None:
    stop = AttemptStop()
    place = Place(file, action(), final("done"), before=lambda: in_thread(stop.let_go))
    first = await execute(CONFIG, place.context(stop=stop))
    assert (first.status, first.finish_reason, place.calls) == ("paused", "paused", 1)
    second = await execute(CONFIG, place.context(attempt=2))
    assert (second.status, second.final_answer, place.calls) == ("completed", "done", 1)
    assert second.usage["requests"] == 2


async def test_run_that_is_cancelled_from_another_thread_has_ended(file: Path) -> None:
    stop = AttemptStop()
    place = Place(file, action(), final("done"), before=lambda: in_thread(stop.let_go, stop.cancel, stop.let_go))
    first = await execute(CONFIG, place.context(stop=stop))
    assert (first.status, first.finish_reason) == ("cancelled", "cancelled")
    assert await execute(CONFIG, place.context(attempt=2)) == first


@pytest.mark.parametrize(("how", "status"), [("let_go", "paused"), ("cancel", "cancelled")])
async def test_attempt_that_is_ended_before_it_begins_is_recorded_all_the_same(
    how: str, status: str, file: Path
) -> None:
    stop, place = AttemptStop(), Place(file, final("done"))
    getattr(stop, how)()
    assert (await execute(CONFIG, place.context(stop=stop))).status == status
    later = await execute(CONFIG, place.context(attempt=2))
    assert later.status == ("completed" if how == "let_go" else "cancelled")


async def test_stop_of_an_attempt_that_is_over_does_nothing(file: Path) -> None:
    stop = AttemptStop()
    await execute(CONFIG, Place(file, final("done")).context(stop=stop))
    stop.cancel()


async def test_deadline_lets_the_run_go_whatever_its_own_timeout(file: Path) -> None:
    place, now = Place(file, action(), final("done")), datetime.now(UTC)
    first = await execute(CONFIG, place.context(deadline=now - timedelta(seconds=1)))
    assert (first.status, place.calls) == ("paused", 0)
    second = await execute(CONFIG, place.context(attempt=2, deadline=now + timedelta(hours=1)))
    assert second.status == "completed"


async def test_budgets_are_those_of_the_run_not_of_an_attempt(file: Path) -> None:
    stops: list[AttemptStop] = []
    place = Place(file, *[action(q=str(n)) for n in range(9)], before=lambda: stops[-1].let_go())
    config, output = {**CONFIG, "max_steps": 3}, None
    for attempt in range(1, 10):
        stops.append(AttemptStop())
        output = await execute(config, place.context(attempt=attempt, stop=stops[-1]))
        if output.status != "paused":
            break
    assert output is not None
    assert (output.finish_reason, output.usage["requests"], place.calls) == ("max_steps", 3, 2)


async def test_caller_who_is_cancelled_cancels_the_run(file: Path) -> None:
    begun = asyncio.Event()
    place = Place(file, action(), final("done"), before=begun.set)
    place.tool = Tool("look", "Looks.", Q, lambda args, context: hang(begun), effect="read")
    attempt = asyncio.create_task(execute(CONFIG, place.context()))
    await begun.wait()
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert (await execute(CONFIG, place.context(attempt=2))).status == "cancelled"


# ── what an engine may do wrong ──────────────────────────────────────────────────────────────────


async def test_attempt_without_the_journal_of_the_one_before_is_told(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await execute(CONFIG, Place(file, final("done")).context(attempt=3))
    assert f"run {RUN}: attempt 3 finds no record of an earlier one" in caplog.text


@pytest.mark.parametrize(
    ("more", "where"),
    [({"deadline": datetime(2026, 1, 1)}, "deadline"), ({"run_id": "a b"}, "run_id")],
)
async def test_context_that_cannot_be_used_is_refused_before_anything_is_written(
    more: dict[str, Any], where: str, file: Path
) -> None:
    given = {"run_id": RUN, "journal": file, "model": ScriptedModel([]), **more}
    with pytest.raises(DefinitionError) as refused:
        await execute({**CONFIG, "allowed_tools": []}, NodeContext(**given))
    assert refused.value.where == where
    assert not file.exists()


async def test_another_config_for_the_same_run_is_refused(file: Path) -> None:
    place = Place(file, final("done"))
    await execute(CONFIG, place.context())
    with pytest.raises(DefinitionError, match="began with another config"):
        await execute({**CONFIG, "prompt": "Stop."}, place.context(attempt=2))


def test_each_finish_reason_has_a_status() -> None:
    found = {each: AgentOutput.model_construct(None, finish_reason=each).status for each in get_args(FinishReason)}
    assert {each for each, status in found.items() if status == "waiting"} == {
        "awaiting_approval", "awaiting_event", "in_doubt"
    }  # fmt: skip
    assert {each: status for each, status in found.items() if status not in ("waiting", "failed")} == {
        "final": "completed", "cancelled": "cancelled", "paused": "paused"
    }  # fmt: skip


@given(st.lists(st.text() | st.integers(), min_size=1, max_size=5))
def test_made_id_is_one(parts: list[str | int]) -> None:
    assert check_run_id(make_run_id(*parts)) == make_run_id(*parts)


def test_made_id_shows_its_parts_and_tells_them_apart() -> None:
    made = make_run_id("answers", "reply", "manual__2026-11-28T09:00:00+00:00", 3)
    assert made.startswith("answers.reply.manual__2026-11-28T09-00-00-00-00.3-")
    assert (
        len({made, *(make_run_id(*parts) for parts in (("a", "b"), ("a.b",), ("a b",), ("a-b",), ("ä",), ("ö",)))}) == 7
    )
    with pytest.raises(ValueError, match="at least one part"):
        make_run_id()
    with pytest.raises(ValueError, match="a part is None"):
        make_run_id("answers", None)  # type: ignore[arg-type]


# ── a worker that dies ───────────────────────────────────────────────────────────────────────────

WORKER = textwrap.dedent(
    """
    import os, sys, time
    from pathlib import Path
    from agent_core.models import ScriptedModel
    from agent_core.node import NodeContext, execute_sync
    from utools import tool

    folder, dies = Path(sys.argv[1]), sys.argv[2] == "dies"

    @tool(effect="read")
    def look(q: str) -> str:
        "Looks."
        with (folder / "looks").open("a") as file:
            file.write(q)
        return "seen"

    @tool
    def ship(q: str) -> str:
        "Ships."
        with (folder / "ships").open("a") as file:
            file.write(q)
        if dies:
            print("acting", flush=True)
            time.sleep(60)
        return "shipped"

    step = '{"type": "action", "tool": "%s", "args": {"q": "1"}}'
    replies = [step % "look", step % "ship", '{"type": "final", "answer": "done"}']
    tools = [{"tool": "look"}, {"tool": "ship", "approval": "never"}]
    config = {"model": "scripted", "max_steps": 5, "allowed_tools": tools, "prompt": "Go."}
    context = NodeContext(
        run_id="killed", journal=folder / "runs.db", tools=[look, ship], model=ScriptedModel(replies),
        attempt=1 if dies else 2,
    )
    output = execute_sync(config, context)
    print(output.status, output.finish_reason)
    """
)


def test_attempt_after_a_killed_worker_goes_on_and_repeats_no_write(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WORKER, str(tmp_path)]
    with subprocess.Popen([*words, "dies"], stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "acting\n"
        os.kill(worker.pid, signal.SIGKILL)
    again = subprocess.run([*words, "again"], capture_output=True, text=True, timeout=SECONDS, check=True)
    assert again.stdout == "waiting in_doubt\n", "a person says what became of the write"
    assert [(tmp_path / name).read_text() for name in ("looks", "ships")] == ["1", "1"]


def in_thread(*work: Callable[[], object]) -> None:
    """Do work in a thread, one after the other, and wait for its end."""
    thread = threading.Thread(target=lambda: [each() for each in work])
    thread.start()
    thread.join()


async def hang(begun: asyncio.Event) -> str:
    begun.set()
    await asyncio.Event().wait()
    return "never"


ASKING = CONFIG | {"allowed_tools": [{"tool": "look", "approval": "always"}]}


async def test_decision_is_recorded_without_tools_and_the_next_attempt_goes_on_with_it(file: Path) -> None:
    place = Place(file, action(), final("done"))
    assert (await execute(ASKING, place.context())).status == "waiting"
    [call] = await list_waiting(RUN, journal=file)
    key = (call["strand"], call["n"])
    await decide(RUN, {key: Approve()}, journal=file, by="ana")
    assert (await list_waiting(RUN, journal=file), place.calls) == ([], 0)
    with pytest.raises(DecisionTaken):
        await decide(RUN, {key: Deny()}, journal=file, by="bob")
    output = await execute(ASKING, place.context(attempt=2))
    assert (output.status, output.final_answer, place.calls) == ("completed", "done", 1)
    told = verify(SqliteJournal(file), run_id=RUN)
    assert told.ok


DECIDED = [Approve(), Edit({"q": "b"}), Deny("no")]


@pytest.mark.parametrize("decision", DECIDED, ids=lambda each: type(each).__name__)
async def test_attempt_that_is_made_again_brings_its_decision_again(decision: Any, file: Path) -> None:
    """The worker dies after the decision was recorded; the engine repeats the task with all that it was given."""
    place = Place(file, action(), final("done"), effect="write")
    [call] = (await execute(ASKING, place.context())).waiting
    given = {"decisions": {(call["strand"], call["n"]): decision}, "by": "ana"}
    await decide(RUN, given["decisions"], journal=file, by="ana")
    ended = await execute(ASKING, place.context(attempt=2, **given))
    assert (ended.status, place.calls) == ("completed", 0 if decision == Deny("no") else 1)
    assert await execute(ASKING, place.context(attempt=3, **given)) == ended


async def test_other_decision_and_that_of_another_person_are_not_the_recorded_one(file: Path) -> None:
    place = Place(file, action(), final("done"))
    [call] = (await execute(ASKING, place.context())).waiting
    key = (call["strand"], call["n"])
    await decide(RUN, {key: Edit({"q": "b"})}, journal=file, by="ana")
    for decision, by in [(Edit({"q": "c"}), "ana"), (Approve(), "ana"), (Edit({"q": "b"}), "bob")]:
        with pytest.raises(DecisionTaken):
            await execute(ASKING, place.context(attempt=2, decisions={key: decision}, by=by))
    with pytest.raises(DecisionTaken):
        await decide(RUN, {key: Edit({"q": "b"})}, journal=file, by="ana")


async def test_two_attempts_at_once_with_the_same_decision_both_go_on(file: Path) -> None:
    place = Place(file, action(), final("done"), effect="write")
    [call] = (await execute(ASKING, place.context())).waiting
    given = place.context(attempt=2, decisions={(call["strand"], call["n"]): Approve()})
    ends = await asyncio.gather(execute(ASKING, given), execute(ASKING, given))
    assert {end.status for end in ends} <= {"completed", "waiting"}, "one of them may find the write under way"
    assert ((await execute(ASKING, given)).status, place.calls) == ("completed", 1)


async def test_decision_that_fits_nothing_or_breaks_the_policy_is_refused_without_tools_too(file: Path) -> None:
    place = Place(file, action(), final("done"))
    [call] = (await execute(ASKING, place.context())).waiting
    with pytest.raises(DecisionError, match=r"nothing waits at agent:99; waiting: agent:"):
        await decide(RUN, {("agent", 99): Approve()}, journal=file, by="ana")
    with pytest.raises(DecisionError, match="arguments of look were refused"):
        await decide(RUN, {(call["strand"], call["n"]): Edit({"q": 7})}, journal=file, by="ana")
    assert await list_waiting(RUN, journal=file) == [call]


async def test_call_that_was_approved_is_not_made_by_another_tool_than_was_shown(file: Path) -> None:
    place = Place(file, action(), final("done"))
    [call] = (await execute(ASKING, place.context())).waiting
    await decide(RUN, {(call["strand"], call["n"]): Approve()}, journal=file, by="ana")
    kept, changed = place.tool, {**Q, "properties": {**Q["properties"], "all": {"type": "boolean"}}}
    place.tool = Tool("look", "Looks.", changed, place._look, effect="read")
    with pytest.raises(DefinitionError, match=r"is approved, and cannot be made. The tool 'look' has changed"):
        await execute(ASKING, place.context(attempt=2))
    place.tool = kept
    assert (await execute(ASKING, place.context(attempt=3))).status == "completed"

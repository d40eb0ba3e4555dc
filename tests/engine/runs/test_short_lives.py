"""Short lives of runs that once came out wrong, each as short as it can be told."""

from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve
from agent_core.audit.replay import replay
from agent_core.errors import Abandoned, DecisionError
from agent_core.journal.path import CONTROL
from agent_core.journal.record import Row
from agent_core.models.client import Completion, ModelError
from engine_shim import DefinitionError, MemoryRunStore
from engine_shim.errors import RunBusy
from engine_shim.runs.lease_keeper import CERTAIN_S
from engine_shim.runs.loops import LOOPS
from engine_shim.store.run_store import RunStore
from support.by_hand import action, final
from support.state.checks import check_ended, check_status
from support.state.workflows import workflows
from support.state.world import HERE, Host, World
from utools import ToolResult
from utools.errors import ToolError


class Life:
    """One run, `r`, of a workflow, and the processes that have to do with it."""

    def __init__(self, base: Path, *, is_remote: bool) -> None:
        self.is_remote = is_remote
        self.store: RunStore = MemoryRunStore(clock=lambda: self.world.clock())
        self.world = World(self.store)
        self.workflows = {each.definition.id: each for each in workflows(base)}

    def host(self, places: int = 9, *, notices: bool = False) -> Host:
        self.world.hosts.append(Host(self.world, places=places, is_remote=self.is_remote, notices=notices))
        return self.world.hosts[-1]

    def ask(self, host: Host, work: Coroutine[Any, Any, Any], run: str = "r") -> Any:
        return host.ask(run, work)

    def start(self, host: Host, which: str, run: str = "r") -> Any:
        return self.ask(host, host.engine.run(self.workflows[which], run_id=run), run)

    def answer(self, tool: str, reply: Any, *, of: Host | None = None, rest: bool = True) -> None:
        act = next(act for act in self.world.acts if act.tool == tool and of in (None, act.host))
        act.answer.set_result(reply if callable(reply) else lambda: reply)
        if rest:
            self.world.settle()

    def kinds(self, path: str) -> list[str]:
        return [row.record()["kind"] for row in self.store.journal.load("r").get(path, [])]

    def crash(self, host: Host) -> None:
        """The process is gone, and others see that."""
        for run in list(host.line.driving):
            self.store.leases.release(run, host.steering.driver)
        self.world.hosts.remove(host)
        host.end()


@pytest.fixture(params=["local", "remote"])
def life(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path, is_remote=request.param == "remote")
    yield life
    assert not life.world.faults
    for host in life.world.hosts:
        host.end()


def told(task: Any) -> Any:
    """What a task came to; it must have."""
    assert task.done()
    return task.result()


def fails() -> Any:
    raise ToolError("it did not work")


def breaks() -> Any:
    raise ModelError("the vendor is down")


PAY = Completion(action("pay", amount=5))


def test_caller_who_gives_up_in_the_queue_cancels_the_run(life: Life) -> None:
    host = life.host(places=1)
    life.start(host, "chain", "other")
    queued = life.start(host, "chain")
    queued.cancel()
    life.world.settle()
    assert queued.cancelled()
    assert life.store.entry("r").status == "cancelled"  # type: ignore[union-attr]
    check_ended("r", life.store)


def test_caller_who_gives_up_as_the_run_begins_to_wait_cancels_it(life: Life) -> None:
    run = life.start(life.host(), "approval")
    life.answer("model", PAY, rest=False)
    for _ in range(40):
        if "waiting" in life.kinds("flow/clerk.1"):
            break
        life.world.hosts[0].loop.call_soon(life.world.hosts[0].loop.stop)
        life.world.hosts[0].loop.run_forever()
    run.cancel()
    life.world.settle()
    assert run.cancelled()
    check_ended("r", life.store)
    assert life.store.entry("r").status == "cancelled"  # type: ignore[union-attr]


@pytest.mark.sampled
@pytest.mark.parametrize("turns", range(0, 40, 3))
def test_caller_who_gives_up_at_any_moment_leaves_no_run_that_goes_on(life: Life, turns: int) -> None:
    host = life.host()
    loop = host.loop
    HERE.set((host, "r"))
    run = loop.create_task(host.engine.run(life.workflows["chain"], run_id="r"))
    for _ in range(turns):
        loop.call_soon(loop.stop)
        loop.run_forever()
    run.cancel()
    life.world.settle()
    assert run.cancelled()
    assert not life.world.driven("r")
    entry = life.store.entry("r")
    assert entry is None or entry.status == "cancelled"
    if entry is not None:
        check_ended("r", life.store)


def test_run_whose_doubt_a_late_answer_has_ended_is_to_go_on_and_not_to_be_decided(life: Life) -> None:
    stalled, other = life.host(), life.host()
    life.start(stalled, "chain")
    life.answer("look", ToolResult(True, {}))
    life.world.pass_time(20)
    assert told(life.ask(other, other.engine.resume("r"))).status == "waiting"
    stalled.steering.look()
    life.answer("pay", ToolResult(True, {}))
    assert life.kinds("flow/buy.1") == ["asked", "waiting", "resolved"]
    assert life.store.entry("r").status == "pending"  # type: ignore[union-attr]
    assert told(life.ask(other, other.engine.resume("r"))).status == "completed"
    check_ended("r", life.store)


def test_cancel_ends_a_run_whose_process_died_in_a_write(life: Life) -> None:
    dies, other = life.host(), life.host()
    life.start(dies, "error")
    life.crash(dies)
    assert life.kinds("flow/try.1") == ["asked"]
    assert told(life.ask(other, other.engine.cancel("r"))) == "cancelled"
    check_ended("r", life.store)


def test_cancel_counts_though_the_run_begins_to_wait_before_its_driver_has_heard_of_it(life: Life) -> None:
    host, other = life.host(), life.host()
    life.start(host, "approval")
    cancel = life.ask(other, other.engine.cancel("r"))
    life.answer("model", PAY)
    assert life.store.entry("r").status == "waiting"  # type: ignore[union-attr]
    other.loop.tick()
    assert told(cancel) == "cancelled"
    check_ended("r", life.store)


def test_pause_counts_though_the_run_begins_to_wait_before_its_driver_has_heard_of_it(life: Life) -> None:
    host, other = life.host(), life.host()
    life.start(host, "approval")
    pause = life.ask(other, other.engine.pause("r"))
    life.answer("model", PAY)
    other.loop.tick()
    assert told(pause) == "paused"
    check_status("r", life.store)


def test_cancel_of_a_run_that_waits_needs_no_place(life: Life) -> None:
    host = life.host(places=1)
    life.start(host, "approval")
    life.answer("model", PAY)
    life.start(host, "chain", "other")
    assert told(life.ask(host, host.engine.cancel("r"))) == "cancelled"


def test_decision_that_fits_nothing_leaves_a_paused_run_as_it_is(life: Life) -> None:
    host = life.host()
    life.start(host, "approval")
    life.answer("model", PAY)
    assert told(life.ask(host, host.engine.pause("r"))) == "paused"
    wrong = life.ask(host, host.engine.resume("r", decisions={("flow", 9): Approve()}))
    with pytest.raises(DecisionError):
        told(wrong)
    assert life.kinds(CONTROL) == ["resolved"]


def test_run_whose_entry_was_lost_goes_on_when_it_is_submitted_again(life: Life) -> None:
    dies, other = life.host(), life.host()
    life.start(dies, "chain")
    life.crash(dies)
    life.store._entries.clear()  # type: ignore[attr-defined]
    run = life.start(other, "chain")
    life.answer("look", "seen")
    life.answer("pay", "paid")
    assert told(run).status == "completed"
    check_ended("r", life.store)


def test_driver_whose_lease_has_run_out_can_be_told_to_stop_by_its_own_process(life: Life) -> None:
    host = life.host()
    run = life.start(host, "chain")
    life.world.pass_time(20)
    cancel = life.ask(host, host.engine.cancel("r"))
    assert not cancel.done()
    host.steering.look()
    while host.loop.tick() and not cancel.done():
        host.steering.look()
    assert told(cancel) == told(run).status == "cancelled"


def test_run_whose_process_died_before_its_end_was_listed_is_not_paused(life: Life) -> None:
    dies, other = life.host(), life.host()
    life.start(dies, "error")
    pause = life.ask(other, other.engine.pause("r"))
    life.answer("pay", "paid")
    dies.line.left = 2  # the answer of the last node, and the run's end
    dies.line.done_by_then = True
    life.answer("look", "seen")
    life.crash(dies)
    other.loop.tick()
    assert told(pause) == "completed"
    assert told(life.ask(other, other.engine.resume("r"))).status == "completed"


def test_late_answer_changes_nothing_in_a_run_that_has_ended_over_it(life: Life) -> None:
    stalls, other = life.host(), life.host()
    run = life.start(stalls, "branches")
    life.world.pass_time(20)
    assert told(life.ask(other, other.engine.cancel("r"))) == "cancelled"
    life.answer("pay", "paid")
    check_ended("r", life.store)
    for tool, reply in (("look", "seen"), ("model", Completion(final()))):
        life.answer(tool, reply)
    assert told(run).status == "cancelled"
    check_ended("r", life.store)


def test_late_answer_counts_in_a_run_that_fails_meanwhile(life: Life) -> None:
    stalls, other = life.host(), life.host()
    late = life.start(stalls, "branches")
    life.world.pass_time(20)
    run = life.ask(other, other.engine.resume("r"))
    life.answer("pay", "paid")
    assert life.kinds("flow/b.1") == ["asked", "waiting", "resolved"]
    life.answer("look", "seen", of=other)
    life.answer("model", fails, of=other)
    assert told(run).status == "failed"
    check_ended("r", life.store)
    for tool in ("look", "model"):
        life.answer(tool, fails)
    assert told(late) == told(run)
    check_ended("r", life.store)
    fork = life.ask(other, other.engine.fork("r", ("flow/c.1", 1), new_id="f"), "f")
    life.answer("model", fails)
    assert told(fork).status == "failed"
    check_ended("f", life.store)


def test_run_that_fails_while_an_agent_deep_inside_waits_is_whole(life: Life) -> None:
    host = life.host()
    run = life.start(host, "invoked")
    life.answer("look", "seen")
    life.answer("model", PAY)
    assert life.kinds("flow/below.1/think.1")[-1] == "waiting"
    life.answer("pay", fails)
    assert told(run).status == "failed"
    check_ended("r", life.store)


def test_question_that_a_rival_has_answered_meanwhile_is_not_asked_again(life: Life) -> None:
    stalls, other = life.host(), life.host()
    life.start(stalls, "retry")
    life.answer("look", fails)
    life.world.pass_time(20)
    life.ask(other, other.engine.resume("r"))
    stalls.loop.tick()
    life.answer("look", "seen")
    other.loop.tick()
    assert life.world.begun["r/flow/get.1~1/0"] == 1


# ── a lease that may have run out ────────────────────────────────────────────────────────────────


def test_driver_that_was_overtaken_appends_nothing_and_begins_nothing(life: Life) -> None:
    stalls, other = life.host(notices=True), life.host()
    late = life.start(stalls, "chain")
    life.world.pass_time(20)
    run = life.ask(other, other.engine.resume("r"))
    before = life.store.journal.load("r")
    life.answer("look", "seen", of=stalls)
    assert life.store.journal.load("r") == before
    with pytest.raises(Abandoned):
        told(late)
    life.answer("look", "seen")
    life.answer("pay", "paid")
    assert told(run).status == "completed"
    check_ended("r", life.store)


def test_driver_that_was_overtaken_still_tells_what_a_write_has_answered(life: Life) -> None:
    stalls, other = life.host(notices=True), life.host()
    late = life.start(stalls, "chain")
    life.answer("look", "seen")
    life.world.pass_time(20)
    assert told(life.ask(other, other.engine.resume("r"))).status == "waiting"
    life.answer("pay", "paid")
    assert life.kinds("flow/buy.1") == ["asked", "waiting", "resolved"]
    with pytest.raises(Abandoned):
        told(late)
    assert told(life.ask(other, other.engine.resume("r"))).status == "completed"
    check_ended("r", life.store)


def test_driver_that_is_overtaken_between_a_claim_and_its_act_does_not_act(life: Life) -> None:
    stalls = life.host(notices=True)
    late = life.start(stalls, "chain")

    def stall(rows: Sequence[Row]) -> None:
        if rows[-1].path == "flow/buy.1":
            life.world.pass_time(20)
            assert life.store.leases.acquire("r", "another:1:token") is None

    stalls.line.on_append = stall
    life.answer("look", "seen")
    assert life.kinds("flow/buy.1") == ["asked"]
    assert not life.world.acts
    with pytest.raises(Abandoned):
        told(late)


def test_run_that_was_lost_to_a_driver_that_left_it_again_is_due(life: Life) -> None:
    stalls, other = life.host(notices=True), life.host()
    life.start(stalls, "chain")
    life.world.pass_time(20)
    with pytest.raises(DecisionError):
        told(life.ask(other, other.engine.resume("r", decisions={("flow", 9): Approve()})))
    life.answer("look", "seen")
    assert life.store.entry("r").status == "pending"  # type: ignore[union-attr]
    run = life.ask(other, other.engine.resume("r"))
    life.answer("look", "seen")
    life.answer("pay", "paid")
    assert told(run).status == "completed"


def test_driver_that_nobody_has_overtaken_goes_on_and_holds_its_lease_again(life: Life) -> None:
    stalls = life.host(notices=True)
    run = life.start(stalls, "chain")
    life.world.pass_time(20)
    assert life.store.leases.holder("r") is None
    life.answer("look", "seen")
    assert life.store.leases.holder("r") == stalls.steering.driver
    life.answer("pay", "paid")
    assert told(run).status == "completed"


@pytest.mark.parametrize("life", ["remote"], indirect=True)
def test_driver_that_cannot_renew_its_lease_waits_for_that_and_appends_nothing(life: Life) -> None:
    host = life.host(notices=True)
    run = life.start(host, "chain")
    host.line.leases_are_away = True
    life.world.pass_time(CERTAIN_S)
    before = life.store.journal.load("r")
    life.answer("look", "seen")
    for _ in range(5):
        host.loop.tick()
    assert not run.done()
    assert life.store.journal.load("r") == before
    host.line.leases_are_away = False
    host.loop.tick()
    life.answer("pay", "paid")
    assert told(run).status == "completed"
    check_ended("r", life.store)


def test_no_run_is_forked_from_what_stands_beside_it(life: Life) -> None:
    host = life.host()
    life.start(host, "approval")
    life.answer("model", PAY)
    life.ask(host, host.engine.pause("r"))
    for place in ((CONTROL, 0), ("flow", -1)):
        with pytest.raises(DefinitionError, match="no run can be forked here"):
            told(life.ask(host, host.engine.fork("r", place, new_id="f"), "f"))


def test_run_that_sleeps_before_it_tries_again_replays_as_far_as_it_went(life: Life) -> None:
    host = life.host()
    life.start(host, "retry")
    life.answer("look", fails)
    life.answer("model", Completion(final()))
    assert replay(life.store.journal, run_id="r", loops=LOOPS).tape_ended == "flow/get.1~1"


def test_attempt_that_goes_on_from_what_others_spent_replays_again_and_again(life: Life) -> None:
    host = life.host()
    life.start(host, "retry")
    life.answer("look", ToolResult(True, {}))
    for reply in (breaks, Completion(final())):
        life.answer("model", Completion(action("look")))
        life.answer("look", ToolResult(True, {}))
        life.answer("model", reply)
        while not life.world.acts and host.loop.tick():
            life.world.settle()
    check_ended("r", life.store)
    assert life.store.journal.load("r")["flow/clerk.1~1"][-1].record()["used_tools"]["look"]["count"] == 2
    for _ in range(3):
        assert replay(life.store.journal, run_id="r", loops=LOOPS).identical


def test_run_is_busy_as_long_as_its_driver_lives(life: Life) -> None:
    host, other = life.host(), life.host()
    life.start(host, "chain")
    with pytest.raises(RunBusy):
        told(life.ask(other, other.engine.resume("r")))

"""Any life of runs in a store: acts that answer in any order, processes that die, rivals, clocks that jump, any word.

Whatever happens, tapes only grow, nothing answered is asked again, no write happens twice unasked, limits hold, the
store tells the truth, and each run can be brought to an end that verifies and replays. To look for longer:

    STATE_MACHINE_EXAMPLES=5000 pytest tests/engine/runs/test_state_machine.py
"""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agent_core import Approve, Deny, Edit, Fail, Retry, Skip
from agent_core.audit.repeats import before_approval
from agent_core.decisions import Decision
from agent_core.journal.control import waiting_calls
from agent_core.models.client import Completion, ModelError
from engine_shim import DefinitionError, MemoryRunStore, SqliteRunStore
from engine_shim.errors import RunBusy
from engine_shim.store.run_store import RunStore
from support.by_hand import action, final
from support.examples import examples
from support.state.checks import check_ended, check_grown, check_status, check_tape, status_of
from support.state.office import Job, Office
from support.state.workflows import workflows
from support.state.world import Host, UnderWay
from utools import ToolResult
from utools.errors import ToolError

EXAMPLES = int(os.environ.get("STATE_MACHINE_EXAMPLES", "0"))
MOST_RUNS, MOST_HOSTS = 3, 3
INPUTS = {"x": 1}


def _raise(error: Exception) -> Any:
    raise error


SAID: dict[str, Callable[[], Any]] = {
    "final": lambda: Completion(final()),
    "pay": lambda: Completion(action("pay", amount=5)),
    "look": lambda: Completion(action("look")),
    "note": lambda: Completion(action("note")),
    "nested": lambda: Completion(action("agent_core", prompt="Help.")),
    "unreadable": lambda: Completion("well"),
    "down": lambda: _raise(ModelError("the vendor is down")),
}
DID: dict[str, Callable[[], Any]] = {
    "done": lambda: ToolResult(True, {"more": False}),
    "more": lambda: ToolResult(True, {"more": True}),
    "failed": lambda: _raise(ToolError("it did not work")),
    "busy": lambda: ToolResult(False, error="busy", metadata={"transient": True}),
    "cut off": lambda: ToolResult(False, error="cut off", metadata={"cut_off": True}),
}
DOUBTS: dict[str, Decision] = {"retry": Retry(), "skip": Skip(), "fail": Fail()}
WORDS: dict[str, Decision] = {"approve": Approve(), "deny": Deny("no"), "edit": Edit({"amount": 6}), **DOUBTS}


def loop_time() -> float:
    """The time of the process that is at work: how long the machine takes does not move a deadline."""
    return asyncio.get_running_loop().time()


some = st.integers(0, 11)
"""One of those that there are, counted round."""


class Lives(Office, RuleBasedStateMachine):
    """Runs in one store, and the processes that come and go."""

    def new_store(self, base: Path) -> RunStore:
        return MemoryRunStore(clock=self.clock)

    @initialize(
        places=st.sampled_from([9, 2, 1]),
        hosts=st.integers(1, 2),
        which=some,
        is_remote=st.booleans(),
        notices=st.booleans(),
    )
    def begin(self, places: int, hosts: int, which: int, is_remote: bool, notices: bool) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="lives-"))
        self.clocks = [patch(f"agent_core.run.{room}.perf_counter", loop_time) for room in ("executor", "admission")]
        for clock in self.clocks:
            clock.start()
        self.meet(self.new_store(self.base), workflows(self.base), places, is_remote=is_remote)
        for number in range(hosts):
            self.new_host(notices=notices or number > 0)
        self.start(which, 0)

    # ── rules: runs ──────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: len(self.started) < MOST_RUNS)
    @rule(which=some, host=some)
    def start(self, which: int, host: int) -> None:
        self.settle()
        run = f"r{len(self.started)}"
        self.started[run] = workflow = self.workflows[which % len(self.workflows)]
        at = self.a_host(host)
        self.ask("run", run, at, at.engine.run(workflow, run_id=run, external=INPUTS))

    @precondition(lambda self: self.started)
    @rule(run=some, host=some)
    def submit_again(self, run: int, host: int) -> None:
        name, at = self.picked(run, host)
        self.ask("run", name, at, at.engine.run(self.started[name], run_id=name, external=INPUTS))

    @precondition(lambda self: self.started)
    @rule(run=some, host=some, other=st.booleans())
    def submit_something_else(self, run: int, host: int, other: bool) -> None:
        name, at = self.picked(run, host)
        assume("flow" in self.tape(name))
        others = [each for each in self.workflows if each.definition.id != self.started[name].definition.id]
        workflow, external = (others[run % len(others)], INPUTS) if other else (self.started[name], {"x": 2})
        busy = self.world.busy(at, name)
        job = self.ask("run", name, at, at.engine.run(workflow, run_id=name, external=external), refused=True)
        assert at.line.dead or isinstance(job.task.exception(), RunBusy if busy else DefinitionError | RunBusy)

    @precondition(lambda self: self.started)
    @rule(run=some, host=some)
    def resume(self, run: int, host: int) -> None:
        name, at = self.picked(run, host)
        self.ask("resume", name, at, at.engine.resume(name))

    @precondition(lambda self: self.started)
    @rule(run=some, host=some, place=some, word=st.sampled_from(sorted(WORDS)))
    def decide(self, run: int, host: int, place: int, word: str) -> None:
        name, at = self.picked(run, host)
        places = waiting_calls(self.tape(name))
        assume(places)
        entry = places[place % len(places)]
        self.decide_there(name, at, entry, word)

    def decide_there(self, run: str, at: Host, entry: Any, word: str) -> Job:
        ended = status_of(self.tape(run)) is not None
        fits = (entry["reason"] == "in_doubt") == (word in DOUBTS) and not ended
        decisions = {(entry["strand"], entry["n"]): WORDS[word]}
        return self.ask("resume", run, at, at.engine.resume(run, decisions=decisions), wrong=not fits)

    @precondition(lambda self: self.started)
    @rule(run=some, host=some, strand=some, n=st.integers(-1, 9), word=st.sampled_from(sorted(WORDS)))
    def decide_what_does_not_wait(self, run: int, host: int, strand: int, n: int, word: str) -> None:
        name, at = self.picked(run, host)
        paths = ["flow", "nowhere", *sorted(self.tape(name))]
        place = paths[strand % len(paths)], n
        assume(place not in {(entry["strand"], entry["n"]) for entry in waiting_calls(self.tape(name))})
        self.ask("resume", name, at, at.engine.resume(name, decisions={place: WORDS[word]}), wrong=True)

    @precondition(lambda self: 0 < len(self.started) < MOST_RUNS)
    @rule(run=some, host=some, strand=some, n=some)
    def fork(self, run: int, host: int, strand: int, n: int) -> None:
        (name, at), new = self.picked(run, host), f"r{len(self.started)}"
        tape = self.tape(name)
        assume(tape)
        path = sorted(tape)[strand % len(tape)]
        n %= len(tape[path])
        place = path, n
        refused = place == ("flow", 0) or path == "control"
        if not refused:
            try:
                path, n = before_approval(tape, place)[0]
            except DefinitionError:
                refused = True
        self.ask("fork", new, at, at.engine.fork(name, place, new_id=new, repeat_writes=True), refused=refused)
        assert self.tape(name) == tape
        if refused:
            return
        self.started[new] = self.started[name]
        if at.line.dead:
            return
        kept = [row.record()["kind"] for row in tape[path][:n]]
        if "cancelled" in kept:
            kept = kept[: kept.index("cancelled")]
        kept = kept[:-1] if kept[-1:] == ["asked"] else kept  # not answered: it is asked anew, when there is a place
        assert [row.record()["kind"] for row in self.tape(new).get(path, [])][: len(kept)] == kept

    # ── rules: stopping ──────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.started)
    @rule(run=some, host=some)
    def pause(self, run: int, host: int) -> None:
        name, at = self.picked(run, host)
        self.ask("pause", name, at, at.engine.pause(name))

    @precondition(lambda self: self.started)
    @rule(run=some, host=some)
    def cancel(self, run: int, host: int) -> None:
        name, at = self.picked(run, host)
        self.ask("cancel", name, at, at.engine.cancel(name))

    @precondition(lambda self: self.jobs)
    @rule(job=some)
    def caller_gives_up(self, job: int) -> None:
        self.jobs[job % len(self.jobs)].task.cancel()
        self.settle()

    # ── rules: the world ─────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.world.acts)
    @rule(act=some, said=st.sampled_from(list(SAID)), did=st.sampled_from(list(DID)), rest=st.booleans())
    def answer(self, act: int, said: str, did: str, rest: bool) -> None:
        under_way = self.world.acts[act % len(self.world.acts)]
        self.answer_with(under_way, said, did)
        if rest:
            self.settle()

    @precondition(lambda self: self.world.acts)
    @rule(said=st.sampled_from(["final", "pay", "pay", "look", "nested"]), did=st.sampled_from(["done", "more"]))
    def all_answer(self, said: str, did: str) -> None:
        for act in list(self.world.acts):
            self.answer_with(act, said, did)
        self.settle()

    @precondition(lambda self: self.world.acts)
    @rule(said=st.sampled_from(["final", "pay"]))
    def all_go_well(self, said: str) -> None:
        """Until nothing is under way; what an agent does first is drawn."""
        while self.world.acts:
            self.all_answer(said, "done")
            said = "final"

    def answer_with(self, act: UnderWay, said: str, did: str) -> None:
        if not act.answer.done():
            act.answer.set_result(SAID[said] if act.tool == "model" else DID[did])

    @rule(host=some)
    def time_goes_by(self, host: int) -> None:
        self.a_host(host).loop.tick()
        self.settle()

    @rule(host=some, seconds=st.sampled_from([11.0, 31.0]))
    def much_time_goes_by(self, host: int, seconds: float) -> None:
        loop = self.a_host(host).loop
        until = loop.at + seconds
        while loop.at < until and loop.tick():
            pass
        self.settle()

    @rule(host=some)
    def look_round(self, host: int) -> None:
        self.settle()
        self.a_host(host).steering.look()
        self.settle()

    @rule(seconds=st.sampled_from([1.0, 20.0, 20.0, -100.0]), stalled=st.one_of(st.none(), some))
    def clock_jumps(self, seconds: float, stalled: int | None) -> None:
        """The time of leases; all processes but a stalled one renew theirs."""
        self.settle()
        self.world.pass_time(seconds)
        for host in [each for each in self.world.hosts if stalled is None or each is not self.a_host(stalled)]:
            host.steering.look()
        self.settle()

    @rule(host=some, writes=st.integers(0, 6), done=st.booleans(), seen=st.booleans())
    def crash(self, host: int, writes: int, done: bool, seen: bool) -> None:
        """Now, or at one of the next writes; it is seen at once, or when the leases run out."""
        line = self.a_host(host).line
        if writes:
            line.left, line.done_by_then = writes, done
            return
        line.die()
        if seen:
            for run in line.driving:
                self.store.leases.release(run, line.host.steering.driver)
                if run in self.world.leased and self.world.leased[run].holder is line.host:
                    del self.world.leased[run]
        self.settle()

    @precondition(lambda self: len(self.world.hosts) > 1 and self.driving())
    @rule(run=some, host=some)
    def take_over(self, run: int, host: int) -> None:
        """The process that drives a run stalls, and another goes on with it; then two of them do."""
        self.settle()
        if driving := self.driving():
            name, stalled = driving[run % len(driving)]
            self.clock_jumps(20.0, self.world.hosts.index(stalled))
            if others := [each for each in self.world.hosts if each is not stalled]:
                at = others[host % len(others)]
                self.ask("resume", name, at, at.engine.resume(name))

    def driving(self) -> list[tuple[str, Host]]:
        return [(run, host) for host in self.world.hosts for run in sorted(host.line.driving)]

    @precondition(lambda self: len(self.world.hosts) < MOST_HOSTS)
    @rule(notices=st.booleans())
    def another_process(self, notices: bool) -> None:
        self.new_host(notices=notices)

    # ── what always holds ────────────────────────────────────────────────────────────────────────

    @invariant()
    def nothing_was_done_that_must_not_be(self) -> None:
        assert not self.world.faults, self.world.faults

    @invariant()
    def tapes_only_grow_and_replay(self) -> None:
        for run in self.store.journal.runs():
            tape = self.tape(run)
            if tape != self.seen.get(run):
                check_grown(run, self.seen.get(run, {}), tape)
                check_tape(run, tape, self.store)
                self.seen[run] = tape

    @invariant()
    def store_tells_the_truth_of_what_nobody_drives(self) -> None:
        at_work = {job.run for job in self.jobs} | self.loose | self.world.mixed
        for run in set(self.runs) - at_work:
            if run not in self.world.leased:
                check_status(run, self.store, was_let_go=run in self.let_go)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────

    def teardown(self) -> None:
        if not hasattr(self, "base"):
            return
        try:
            if sys.exc_info()[0] is None:  # a fault that was found is not to be hidden by what follows from it
                self.bring_to_an_end()
        finally:
            for host in self.world.hosts:
                host.end()
            for clock in self.clocks:
                clock.stop()
            self.store.close()
            shutil.rmtree(self.base)

    def bring_to_an_end(self) -> None:
        for host in self.world.hosts:
            host.line.left = 0
        for _ in range(120):
            self.settle()
            self.all_go_well("final")
            self.clock_jumps(20.0, None)
            for host in self.world.hosts:
                host.loop.tick()
            self.settle()
            self.nothing_was_done_that_must_not_be()
            if not self.jobs and not self.go_on():
                break
        else:
            raise AssertionError(f"no end: {[(job.kind, job.run) for job in self.jobs]}, {self.store.entries()}")
        self.tapes_only_grow_and_replay()
        acted = self.world.begun.copy()
        for run in self.runs:
            check_ended(run, self.store)
            host = self.a_host(0)
            self.ask("resume", run, host, host.engine.resume(run))
            check_ended(run, self.store)
        assert acted == self.world.begun

    def go_on(self) -> bool:
        """Go on with whatever has not ended; False when all have."""
        left = [run for run in self.runs if not status_of(self.tape(run)) or run in self.loose | self.world.mixed]
        for run in left:
            host = self.a_host(0)
            places = waiting_calls(self.tape(run))
            if places and not status_of(self.tape(run)):
                self.decide_there(run, host, places[0], "skip" if places[0]["reason"] == "in_doubt" else "approve")
            elif "flow" in self.tape(run):
                self.ask("resume", run, host, host.engine.resume(run))
            else:
                self.ask("run", run, host, host.engine.run(self.started[run], run_id=run, external=INPUTS))
        return bool(left)


class SqliteLives(Lives):
    """The same in one SQLite file."""

    def new_store(self, base: Path) -> RunStore:
        return SqliteRunStore(base / "runs.db", clock=self.clock)


def _often(factor: float, steps: int) -> settings:
    if EXAMPLES:
        return settings(examples(), max_examples=EXAMPLES, stateful_step_count=steps)
    return examples(factor, derandomize=True, database=None, stateful_step_count=steps)


TestLives = Lives.TestCase
TestLives.settings = _often(1, 40)
TestSqliteLives = SqliteLives.TestCase
TestSqliteLives.settings = _often(0.25, 30)

"""A run that failed because its world did is taken up again as a fork: what was answered is not done twice."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, DecisionError, DefinitionError, replay, verify
from agent_core.journal.control import unread_messages, untaken_signals
from agent_core.models import ScriptedModel
from engine_shim import Engine, RunResult, SqliteRunStore, load_workflow
from engine_shim.errors import WritesRepeated
from engine_shim.runs.loops import LOOPS
from support.by_hand import Q, action, final
from support.command import Cli, Write
from utools import Tool, ToolError, ToolRegistry, default_registry

AGENT = "flow/agent_core.1"
WRITING = {"tool": "write_file", "preset": {"root": "out"}}
CONFIG: dict[str, Any] = {"model": "m", "max_steps": 4, "prompt": "Go.", "allowed_tools": ["pay", "look"]}


class World:
    """A host that counts what its tools did; those in `broken` fail."""

    def __init__(self, path: Path) -> None:
        self.did: list[str] = []
        self.broken: set[str] = set()
        self.store = SqliteRunStore(path)

    def _tool(self, code: str, effect: Any) -> Tool:
        def act(args: Any, context: Any) -> str:
            self.did.append(code)
            if code in self.broken:
                raise ToolError(f"{code} is broken")
            return f"{code} done"

        return Tool(code, "Acts.", Q, act, effect=effect)

    def engine(self, script: Any = ()) -> Engine:
        tools = [self._tool("pay", "write"), self._tool("look", "read"), self._tool("see", "read")]
        model = ScriptedModel(script if isinstance(script, dict) else list(script))
        return Engine(ToolRegistry([*tools, default_registry().get("wait")]), store=self.store, model=model)

    def run(self, nodes: list[Any], script: Any = (), **definition: Any) -> RunResult:
        return self.engine(script).run_sync(load_workflow({"id": "w", "nodes": nodes, **definition}), run_id="r")

    def retry(self, script: Any = ()) -> RunResult:
        """The run tried again; the failed one is as it was, and the new one is sound."""
        before = self.store.journal.load("r")
        self.did.clear()
        result = asyncio.run(self.engine(script).retry_failed("r", new_id="again"))
        assert self.store.journal.load("r") == before
        assert verify(self.store.journal, run_id="again").ok
        assert replay(self.store.journal, run_id="again", loops=LOOPS).identical
        return result


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "runs.db")


def _plain(tool: str, **more: Any) -> Any:
    return {"id": tool, "tool": tool, "config": {"q": "1"}, **more}


def test_question_that_failed_is_asked_again_and_the_payment_before_it_is_not(world: World) -> None:
    failed = world.run([{"tool": "agent_core", "config": CONFIG}], [action("pay")])
    assert (failed.status, failed.error and failed.error["kind"], world.did) == ("failed", "model_error", ["pay"])
    done = world.retry([action("pay"), final("Paid.")])
    assert (done.status, world.did) == ("completed", [])
    assert done.outputs["agent_core"]["final_answer"] == "Paid."
    started = world.store.journal.load("again")["flow"][0].record()
    forked = started["forked"]
    assert (forked["run"], forked["strand"], forked["n"], forked["retry"]) == ("r", AGENT, 7, True)


def test_question_after_an_approved_call_is_asked_again_alone(world: World) -> None:
    config = {**CONFIG, "approval": "always"}
    waits = world.run([{"tool": "agent_core", "config": config}], [action("pay")])
    entry = waits.waiting[0]
    decisions = {(entry["strand"], entry["n"]): Approve()}
    failed = asyncio.run(world.engine([action("pay")]).resume("r", decisions=decisions))
    assert (failed.status, world.did) == ("failed", ["pay"])
    assert (world.retry([action("pay"), final()]).status, world.did) == ("completed", [])


def test_a_run_is_tried_again_once(world: World) -> None:
    world.run([{"tool": "agent_core", "config": CONFIG}], [action("pay")])
    done = asyncio.run(world.engine([action("pay"), final()]).retry_failed("r"))
    assert done.run_id == "r-retry"
    with pytest.raises(DecisionError, match="run 'r' was tried again already, as run 'r-retry'; go on with that one"):
        asyncio.run(world.engine([action("pay"), final()]).retry_failed("r"))


def test_all_models_are_asked_again(world: World) -> None:
    world.run([{"tool": "agent_core", "config": {**CONFIG, "fallback_models": ["m2", "m3"]}}])
    done = world.retry([final("Well.")])
    assert (done.status, len(done.outputs["agent_core"]["trace"])) == ("completed", 1)


def test_reads_that_failed_in_several_branches_are_done_again_together(world: World) -> None:
    world.broken = {"look", "see"}
    nodes = [_plain("pay"), _plain("look"), _plain("see"), {"id": "end", "tool": "echo", "config": {"text": "x"}}]
    edges = [{"from": "pay", "to": name} for name in ("look", "see")] + [{"from": "look", "to": "end"}]
    failed = world.run([*nodes[:3]], edges=edges[:2])
    assert failed.status == "failed"
    world.broken = set()
    done = world.retry()
    assert (done.status, sorted(world.did)) == ("completed", ["look", "see"])


def test_failure_in_a_workflow_that_was_invoked(world: World, write: Write, home: Path) -> None:
    write("sub.json", {"id": "sub", "nodes": [_plain("pay"), _plain("look")], "edges": [{"from": "pay", "to": "look"}]})
    world.broken = {"look"}
    assert world.run([{"tool": "invoke_workflow", "config": {"workflow": "sub.json"}}]).status == "failed"
    world.broken = set()
    assert (world.retry().status, world.did) == ("completed", ["look"])


def test_edge_that_could_not_be_judged(world: World) -> None:
    edges = [{"from": "pay", "to": "look", "ask": "It was paid."}, {"from": "pay", "to": "see"}]
    failed = world.run([_plain("pay"), _plain("look"), _plain("see")], edges=edges, model="m")
    assert failed.error is not None
    assert failed.error["kind"] == "model_error"
    assert (world.retry([final(True)]).status, world.did) == ("completed", ["look"])


def test_node_that_was_tried_several_times_is_tried_again_from_its_last_attempt(world: World) -> None:
    world.broken = {"look"}
    assert world.run([_plain("look", retry={"max_attempts": 2, "delay": 0})]).status == "failed"
    world.broken = set()
    assert (world.retry().status, world.did) == ("completed", ["look"])


def test_a_new_failure_can_be_retried_as_well(world: World) -> None:
    world.run([{"tool": "agent_core", "config": CONFIG}], [action("pay")])
    assert world.retry([action("pay"), action("look")]).status == "failed"
    done = asyncio.run(world.engine([action("pay"), action("look"), final()]).retry_failed("again", new_id="third"))
    assert (done.status, world.did) == ("completed", ["look"])


REFUSED: dict[str, tuple[Any, str]] = {
    "not failed": ([_plain("look")], "run 'r' has not failed"),
    "a write": ([_plain("pay")], "the write pay failed, and may have been made in part"),
    "a limit": (
        [{"tool": "agent_core", "config": {**CONFIG, "max_steps": 1}}],
        "cannot be tried again at flow/agent_core.1: it ended by max_steps",
    ),
}


@pytest.mark.parametrize(("nodes", "why"), REFUSED.values(), ids=REFUSED)
def test_what_would_be_the_same_or_harm_is_refused(world: World, nodes: Any, why: str) -> None:
    world.broken = {"pay"}
    world.run(nodes, [action("look")])
    with pytest.raises(DecisionError, match=why):
        world.retry()


def test_a_call_that_was_never_made_is_not_tried_again(world: World) -> None:
    world.run([_plain("see"), {"id": "look", "tool": "look", "config": {"q": "{{nodes.see.x}}"}}])
    with pytest.raises(DecisionError, match=r"cannot be tried again at flow/look\.1: its call was never made"):
        world.retry()


def test_decision_without_the_key_of_the_model_is_not_recorded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    config = {**CONFIG, "model": "openai:gpt-4o-mini", "approval": "always"}
    waits = world.run([{"tool": "agent_core", "config": config}], [action("pay")])
    before, entry = world.store.journal.load("r"), waits.waiting[0]
    keyless = Engine(world.engine().registry, store=world.store)
    with pytest.raises(DefinitionError, match="the model needs a key: set OPENAI_API_KEY"):
        asyncio.run(keyless.resume("r", decisions={(entry["strand"], entry["n"]): Approve()}))
    assert (world.store.journal.load("r"), world.did, world.store.entry("r").status) == (before, [], "waiting")


# ── the command line ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def paid(cli: Cli, write: Write) -> str:
    """The id of a run that writes a file and then failed, since its script has ended."""
    Path("out").mkdir()
    write("flow.json", {"id": "w", "nodes": [_agent("before.json")]})
    write("before.json", [action("write_file", path="paid.txt", text="once", mode="append")])
    failed = cli("run", "flow.json", "--json")
    assert (failed.code, Path("out/paid.txt").read_text()) == (1, "once")
    return str(failed.json["run_id"])


def _agent(script: str) -> Any:
    return {"tool": "agent_core", "config": {**CONFIG, "model": f"scripted:{script}", "allowed_tools": [WRITING]}}


@pytest.mark.exhaustive
def test_failed_run_is_tried_again_from_the_command_line(cli: Cli, write: Write, paid: str) -> None:
    assert f"agent-core resume {paid} --retry-failed" in cli("resume", paid).out
    write("before.json", [action("write_file", path="paid.txt", text="once", mode="append"), final("Paid.")])
    done = cli("resume", paid, "--retry-failed", "--json")
    assert (done.code, done.json["outputs"]["agent_core"]["final_answer"]) == (0, "Paid.")
    assert Path("out/paid.txt").read_text() == "once"
    assert f"retry of {paid} at {AGENT}:7" in cli("show", done.json["run_id"]).out
    assert cli("verify", paid).code == 0


def test_a_retry_is_dated_by_its_own_beginning(cli: Cli, write: Write, paid: str) -> None:
    write("before.json", [action("write_file", path="paid.txt", text="once", mode="append"), final("Paid.")])
    done = cli("resume", paid, "--retry-failed", "--json").json["run_id"]
    began = cli("show", done, "--json").json["records"][0]["forked"]["at"]
    head, *lines = cli("show", done).out.splitlines()
    assert head == f"{done}  {began[:19].replace('T', ' ')} UTC"
    passed = [float(line.split()[0]) for line in lines]
    assert (passed[0] < 0, passed[-1] >= 0, passed) == (True, True, sorted(passed))
    again = cli("resume", paid, "--retry-failed", "--model", "openai:gpt-4o-mini")
    assert (again.code, "a run keeps the models that it began with" in again.err) == (2, True)


def test_fork_says_which_writes_it_may_make_again(cli: Cli, write: Write, paid: str) -> None:
    write("before.json", [action("write_file", path="paid.txt", text="once", mode="append"), final("Paid.")])
    refused = cli("fork", paid, "--at", f"{AGENT}:5")
    assert (refused.code, Path("out/paid.txt").read_text()) == (2, "once")
    assert f"which the fork may make again: {AGENT}:4 write_file; --repeat-writes allows it" in refused.err
    assert cli("fork", paid, "--at", f"{AGENT}:5", "--repeat-writes").code == 0
    assert Path("out/paid.txt").read_text() == "onceonce"


def test_calls_that_were_approved_together_are_not_forked_apart(world: World) -> None:
    config = {**CONFIG, "protocol": "tools", "allowed_tools": [{"tool": "pay", "approval": "always"}], "max_repairs": 0}
    calls = [{"name": "pay", "arguments": '{"q": "1"}'}, {"name": "pay", "arguments": '{"q": "2"}'}]
    script = [{"content": "", "calls": calls}, {"content": "Paid."}]
    waits = world.run([{"tool": "agent_core", "config": config}], script)
    decisions = {(entry["strand"], entry["n"]): Approve() for entry in waits.waiting}
    assert asyncio.run(world.engine(script).resume("r", decisions=decisions)).status == "completed"
    assert world.did == ["pay", "pay"]
    tape = [row.record() for row in world.store.journal.load("r")[AGENT]]
    resolved = next(n for n, record in enumerate(tape) if record["kind"] == "resolved")
    first, second = (n for n, record in enumerate(tape) if record["kind"] == "answered" and record["reply"] == "did")
    with pytest.raises(DefinitionError, match=f"approved together, and a write among them was made; fork at {AGENT}:"):
        asyncio.run(world.engine(script).fork("r", (AGENT, second)))
    with pytest.raises(WritesRepeated):
        asyncio.run(world.engine(script).fork("r", (AGENT, first)))
    fork = asyncio.run(world.engine(script).fork("r", (AGENT, first), repeat_writes=True))
    assert (fork.status, len(fork.waiting), world.did) == ("waiting", 2, ["pay", "pay"])
    assert resolved < first


def test_messages_and_signals_that_nobody_had_taken_are_taken_by_the_new_run(world: World) -> None:
    """They were sent to the run that failed, and their senders know no other."""
    waits = [{"id": name, "tool": "wait", "config": {"signal": name}} for name in ("start", "paid")]
    nodes = [waits[0], _plain("look"), waits[1], {"tool": "agent_core", "config": CONFIG}]
    edges = [{"from": "start", "to": "look"}, {"from": "look", "to": "paid"}, {"from": "paid", "to": "agent_core"}]
    world.broken.add("look")
    engine = world.engine()
    assert world.run(nodes, edges=edges).status == "waiting"
    engine.send_signal("r", "paid", {"amount": 5}, by="bank")
    engine.add_message("r", "In German.", by="ann")
    engine.send_signal("r", "start", by="ann")
    assert asyncio.run(engine.resume("r")).status == "failed"
    world.broken.clear()
    done = world.retry([final("Bezahlt.")])
    assert (done.status, done.outputs["paid"]["data"], done.outputs["paid"]["by"]) == (
        "completed",
        {"amount": 5},
        "bank",
    )
    tape = world.store.journal.load("again")
    assert (untaken_signals(tape), unread_messages(tape)) == ([], [])
    assert [row.record()["kind"] for row in tape["control"]] == ["signal", "message"]

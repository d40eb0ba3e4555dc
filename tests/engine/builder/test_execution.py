"""Executions: what their handle tells while they go on, and how they are stopped and resumed."""

import asyncio
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, replay
from agent_core.errors import DecisionError
from engine_shim import AgentBuilder, Chunk, Engine, RunNotFound, SqliteRunStore
from engine_shim.runs.loops import LOOPS
from support.chat_host import ChatHost, asks, assistant, call, chain, final, play, user
from support.gated import until
from support.programs import PATIENCE_S, command, environment


def test_the_handle_is_there_at_once_and_tells_how_far_the_run_has_come() -> None:
    async def run() -> None:
        host = ChatHost(a=[call("look", what="gate"), final("A.")], b=[final("B.")])
        host.gates["gate"] = asyncio.Event()
        execution = chain(host, "a", "b").execute("a", asks())
        assert (execution.status(), execution.iteration_count(), execution.get_tool_calls()) == ("pending", 0, [])
        await until(execution.get_tool_calls)
        (made,) = execution.get_tool_calls()
        assert (made.node, made.tool, made.args, made.success) == ("a", "look", {"what": "gate"}, None)
        assert (execution.status(), execution.iteration_count()) == ("running", 1)
        host.gates["gate"].set()
        result = await execution
        assert (execution.status(), execution.iteration_count()) == ("completed", 2)
        (made,) = execution.get_tool_calls()
        assert (made.success, made.output, made.error) == (True, "saw gate", None)
        assert execution.start_time <= result.execution_path[0].start
        assert await execution is result
        assert host.is_sound(execution.id)

    play(run)


def test_calls_of_one_reply_are_told_in_order_and_failed_ones_go_back_to_the_model() -> None:
    async def run() -> None:
        calls = [{"name": "look", "arguments": {"what": what}} for what in ("x", "broken", "y")]
        host = ChatHost(a=[{"content": "", "calls": calls}, {"content": "Two of three."}])
        execution = chain(host, "a", protocol="tools").execute("a", asks())
        result = await execution
        assert [(made.args["what"], made.success) for made in execution.get_tool_calls()] == [
            ("x", True),
            ("broken", False),
            ("y", True),
        ]
        assert result.final_message == "Two of three."

    play(run)


def test_a_paused_execution_begins_nothing_and_is_waited_for_until_it_is_resumed() -> None:
    async def run() -> None:
        host = ChatHost(a=[call("look", what="gate"), final("A.")], b=[final("B.")])
        host.gates["gate"] = asyncio.Event()
        execution = chain(host, "a", "b").execute("a", asks())
        waiting = asyncio.ensure_future(execution)
        await until(execution.get_tool_calls)
        await execution.resume()  # of a run that is not paused: nothing to do
        pausing = asyncio.create_task(execution.pause())
        await until(lambda: "control" in host.store.journal.load(execution.id))
        host.gates["gate"].set()
        await pausing
        assert (execution.status(), waiting.done(), len(host.sent["a"])) == ("paused", False, 1)
        await execution.resume()
        result = await waiting
        assert (result.success, result.final_message, host.done) == (True, "B.", ["gate"])
        assert host.is_sound(execution.id)

    play(run)


def test_an_aborted_execution_ends_as_cancelled_and_keeps_what_was_said() -> None:
    async def run() -> None:
        host = ChatHost(a=[final("A.")], b=[call("look", what="gate")])
        host.gates["gate"] = asyncio.Event()
        execution = chain(host, "a", "b").execute("a", asks())
        await until(execution.get_tool_calls)
        await execution.abort()
        result = await execution
        assert (result.status, result.success, execution.status()) == ("cancelled", False, "cancelled")
        assert [(node.key, node.status) for node in result.execution_path] == [("a", "completed"), ("b", "cancelled")]
        assert result.final_state.context == [user("Hello."), assistant("A.")]
        with pytest.raises(DecisionError, match="has ended as cancelled"):
            await execution.pause()

    play(run)


def test_an_execution_that_has_just_begun_or_is_paused_can_be_aborted() -> None:
    async def run() -> None:
        host = ChatHost(a=[call("look", what="gate"), final("A.")])
        host.gates["gate"] = asyncio.Event()
        new = chain(host, "a").execute("a", asks())
        await new.abort()
        assert (await new).status == "cancelled"
        host.sent.clear()
        paused = chain(host, "a").execute("a", asks())
        await until(paused.get_tool_calls)
        pausing = asyncio.create_task(paused.pause())
        await until(lambda: "control" in host.store.journal.load(paused.id))
        host.gates["gate"].set()
        await pausing
        await paused.abort()
        assert (await paused).status == "cancelled"

    play(run)


def test_cancel_of_a_graph_aborts_all_its_executions() -> None:
    async def run() -> None:
        host = ChatHost(a=lambda messages: call("look", what="gate"))
        host.gates["gate"] = asyncio.Event()
        graph = chain(host, "a")
        both = [graph.execute("a", asks()), graph.execute("a", asks())]
        await until(lambda: all(each.get_tool_calls() for each in both))
        await graph.cancel()
        assert [(await each).status for each in both] == ["cancelled", "cancelled"]

    play(run)


def test_an_execution_that_waits_for_a_person_gives_what_waits_and_goes_on_with_the_decision() -> None:
    async def run() -> None:
        host = ChatHost(a=[call("pay", what="it"), final("Paid.")])
        execution = chain(host, "a", approval="on_write").execute("a", asks())
        result = await execution
        (waiting,) = result.waiting
        assert (result.status, result.success, execution.status(), host.done) == ("waiting", False, "waiting", [])
        await execution.resume({(waiting["strand"], waiting["n"]): Approve()})
        assert ((await execution).final_message, host.done) == ("Paid.", ["it"])

    play(run)


def test_pieces_of_the_nodes_answers_are_handed_on_and_not_those_of_a_judge() -> None:
    async def run() -> None:
        chunks: list[Chunk] = []
        long = "A long answer that comes in several pieces, one after another, and not at once."
        host = ChatHost(judge=lambda messages: final(True), a=[final(long)], b=[final("Short.")])
        builder = AgentBuilder("g").set_entry_point("a").add_conditional_edge("a", "b", "It is long.")
        for key in "ab":
            builder.add_llm_node(key, "", "m", system_prompt=f"You are {key}.")
        await builder.build(host.engine).execute("a", asks(send_chunk=chunks.append))
        assert len(chunks) > 2
        assert "".join(chunks) == f"{long}Short."
        assert {(each.node, each.strand) for each in chunks} == {("a", "flow/a.1"), ("b", "flow/b.1")}

    play(run)


def test_parallel_branches_run_side_by_side_and_are_joined_in_the_order_of_the_edges() -> None:
    async def run() -> None:
        host = ChatHost(
            a=[final("A.")],
            b=[call("look", what="gate b"), final("B.")],
            c=[call("look", what="gate c"), final("C.")],
            d=[final("D.")],
        )
        host.gates = {"gate b": asyncio.Event(), "gate c": asyncio.Event()}
        builder = AgentBuilder("g").set_entry_point("a")
        for key in "abcd":
            builder.add_llm_node(key, "", "m", ["look"], f"You are {key}.")
        for source, target in ("ab", "ac", "cd", "bd"):
            builder.add_edge(source, target)
        execution = builder.build(host.engine).execute("a", asks())
        await until(lambda: len(execution.get_tool_calls()) == 2)
        host.gates["gate b"].set()
        await until(lambda: len(host.sent["b"]) == 2)
        host.gates["gate c"].set()
        result = await execution
        assert "C." not in str(host.sent["b"])
        assert "B." not in str(host.sent["c"])
        said = [
            each["content"] for each in result.final_state.context if each["role"] == "assistant" and each["content"]
        ]
        assert said == ["A.", "C.", "B.", "D."]
        assert host.is_sound(execution.id)

    play(run)


def test_a_node_whose_model_gave_no_answer_is_tried_again() -> None:
    async def run() -> None:
        tries: list[int] = []

        def unsteady(messages: Any) -> Any:
            tries.append(1)
            if len(tries) < 3:
                raise ConnectionError("no route")
            return final("A.")

        host = ChatHost(a=unsteady)
        result = await chain(host, "a", retry={"max_attempts": 3}).execute("a", asks())
        assert (result.success, len(tries), len(result.execution_path), result.iterations) == (True, 3, 1, 1)
        tries.clear()
        failed = await chain(host, "a").execute("a", asks())
        assert (failed.status, failed.error["kind"] if failed.error else "") == ("error", "model_error")
        assert [node.status for node in failed.execution_path] == ["error"]

    play(run)


def test_an_execution_ends_when_its_time_is_up() -> None:
    async def run() -> None:
        host = ChatHost(a=[call("look", what="gate"), final("A.")])
        host.gates["gate"] = asyncio.Event()  # which nobody opens
        builder = AgentBuilder("g").set_timeout(50).set_entry_point("a")
        graph = builder.add_llm_node("a", "", "m", ["look"], "You are a.").build(host.engine)
        result = await graph.execute("a", asks())
        assert (result.status, result.error["kind"] if result.error else "") == ("error", "timeout")

    play(run)


def test_an_execution_that_has_used_up_its_visits_fails_and_says_so() -> None:
    async def run() -> None:
        host = ChatHost(a=lambda messages: final("A."), b=lambda messages: final("B."))
        builder = AgentBuilder("g").set_max_iterations(5).set_entry_point("a")
        for key in "ab":
            builder.add_llm_node(key, "", "m", system_prompt=f"You are {key}.")
        execution = builder.add_edge("a", "b").add_edge("b", "a").build(host.engine).execute("a", asks())
        result = await execution
        assert (result.status, result.iterations, result.error["kind"] if result.error else "") == (
            "error",
            5,
            "max_visits",
        )
        assert [node.key for node in result.execution_path] == ["a", "b", "a", "b", "a"]
        assert host.is_sound(execution.id)

    play(run)


def test_an_id_that_the_store_does_not_hold_cannot_be_resumed() -> None:
    async def run() -> None:
        with pytest.raises(RunNotFound):
            chain(ChatHost(), "a").resume("no-run")

    play(run)


def test_a_graph_without_an_engine_runs_on_the_host_of_the_command_line(home: Any, write: Any) -> None:
    write("a.json", ['{"type": "final", "answer": "A."}'])
    graph = AgentBuilder("g").add_llm_node("a", "", "scripted:a.json").set_entry_point("a").build()

    async def run() -> None:
        execution = graph.execute("a", asks())
        assert (await execution).final_message == "A."
        assert Engine.from_config().store.entry(execution.id) is not None

    play(run)


@pytest.mark.exhaustive
def test_an_execution_outlives_its_process_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    first = command("crash.graph", str(file))
    with subprocess.Popen(first, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        run_id = process.stdout.readline().strip()
        assert process.stdout.readline() == "looking\n"
        process.kill()
    assert process.returncode == -signal.SIGKILL
    again = subprocess.run(
        command("crash.graph", str(file), run_id),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    same, looking, result = again.stdout.splitlines()
    assert (same, looking) == (run_id, "looking")
    assert json.loads(result) == {"status": "completed", "said": ["A.", "", "B."], "path": ["a", "b"]}
    assert file.with_suffix(".asked").read_text().split() == ["a", "b", "b"]
    store = SqliteRunStore(file)
    assert replay(store.journal, run_id=run_id, loops=LOOPS).identical
    store.close()

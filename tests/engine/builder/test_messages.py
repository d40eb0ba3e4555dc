"""Messages that are added to an execution while it goes on: each is a record, and is read once."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from agent_core import replay
from agent_core.errors import DecisionError, JournalError
from agent_core.journal.memory import MemoryJournal
from agent_core.journal.path import CONTROL
from agent_core.journal.record import Row
from engine_shim import AgentBuilder, DefinitionError, Engine, MemoryRunStore
from engine_shim.builder.execution import Execution
from engine_shim.runs.loops import LOOPS
from support.chat_host import ChatHost, asks, assistant, call, chain, final, play, user
from support.gated import until

GERMAN = user("In German, please.")


def two_nodes() -> ChatHost:
    """The first node waits at a gate between its two questions."""
    host = ChatHost(a=[call("look", what="gate"), final("A.")], b=[final("B.")])
    host.gates["gate"] = asyncio.Event()
    return host


def received(host: ChatHost, run_id: str) -> list[tuple[str, list[str]]]:
    """The strands that have read messages, and which."""
    rows = [row for strand in host.store.journal.load(run_id).values() for row in strand]
    records = [(row.path, row.record()) for row in rows]
    return [
        (path, [each["content"] for each in record["messages"]])
        for path, record in records
        if record["kind"] == "received"
    ]


def test_the_next_question_of_the_running_node_has_an_added_message_and_later_nodes_have_it_too() -> None:
    async def run() -> None:
        host = two_nodes()
        execution = chain(host, "a", "b").execute("a", asks())
        await until(execution.get_tool_calls)
        execution.add_message("In German, please.")
        host.gates["gate"].set()
        result = await execution
        assert "In German" not in str(host.sent["a"][0])
        assert host.sent["a"][1][-1]["content"].endswith("In German, please.")
        assert str(host.sent["b"]).count("In German, please.") == 1
        assert result.final_state.context[-3:] == [GERMAN, assistant("A."), assistant("B.")]
        assert received(host, execution.id) == [("flow/a.1", ["In German, please."])]
        assert host.is_sound(execution.id)

    play(run)


def test_a_message_for_a_run_that_has_just_begun_is_in_its_first_question() -> None:
    async def run() -> None:
        host = ChatHost(a=[final("A.")])
        execution = chain(host, "a").execute("a", asks())
        execution.add_message("One.")
        execution.add_message("Two.")
        await execution
        (heard,) = host.sent["a"]
        assert [word in str(heard) for word in ("Hello.", "One.", "Two.")] == [True] * 3
        assert received(host, execution.id) == [("flow/a.1", ["One.", "Two."])]

    play(run)


def test_a_message_that_is_added_while_a_model_is_asked_is_in_the_very_next_question() -> None:
    async def run() -> None:
        executions: list[Execution] = []

        def ask(messages: Any) -> Any:
            if len(host.sent["a"]) > 1:
                return final("A.")
            executions[0].add_message("Also this.")
            return call("look", what="it")

        host = ChatHost(a=ask)
        executions.append(chain(host, "a").execute("a", asks()))
        await executions[0]
        assert [("Also this." in str(sent)) for sent in host.sent["a"]] == [False, True]

    play(run)


def test_a_message_from_another_engine_on_the_store_reaches_the_run() -> None:
    async def run() -> None:
        host = two_nodes()
        other = Engine(store=host.store)
        execution = chain(host, "a", "b").execute("a", asks())
        await until(execution.get_tool_calls)
        other.add_message(execution.id, "In German, please.", by="ann")
        driven = host.engine._lease_keeper._driven[execution.id]
        await until(lambda: driven.stop.has_messages)
        host.gates["gate"].set()
        await execution
        assert received(host, execution.id) == [("flow/a.1", ["In German, please."])]
        (added,) = [row.record() for row in host.store.journal.load(execution.id)[CONTROL]]
        assert (added["kind"], added["role"], added["by"]) == ("message", "user", "ann")

    play(run)


def test_a_message_to_a_paused_run_is_read_when_it_is_resumed_and_a_second_resume_changes_nothing() -> None:
    async def run() -> None:
        host = two_nodes()
        graph = chain(host, "a", "b")
        execution = graph.execute("a", asks())
        await until(execution.get_tool_calls)
        pausing = asyncio.create_task(execution.pause())
        await until(lambda: CONTROL in host.store.journal.load(execution.id))
        host.gates["gate"].set()
        await pausing
        execution.add_message("In German, please.")
        assert execution.status() == "paused"
        await execution.resume()
        first = await execution
        again = await graph.resume(execution.id)
        assert again.final_state == first.final_state
        assert again.final_state.context.count(GERMAN) == 1
        assert host.is_sound(execution.id)

    play(run)


def test_of_parallel_branches_one_reads_a_message_and_both_go_on_with_it() -> None:
    async def run() -> None:
        speakers = {key: [call("look", what="gate"), final(f"{key}.")] for key in "bc"}
        host = ChatHost(a=[final("a.")], d=[final("d.")], **speakers)
        host.gates["gate"] = asyncio.Event()
        builder = AgentBuilder("g").set_entry_point("a")
        for key in "abcd":
            builder.add_llm_node(key, "", "m", ["look"], f"You are {key}.")
        for source, target in ("ab", "ac", "bd", "cd"):
            builder.add_edge(source, target)
        execution = builder.build(host.engine).execute("a", asks())
        await until(lambda: len(execution.get_tool_calls()) == 2)
        execution.add_message("In German, please.")
        host.gates["gate"].set()
        result = await execution
        assert len(received(host, execution.id)) == 1
        assert result.final_state.context.count(GERMAN) == 1
        assert str(host.sent["d"]).count("In German, please.") == 1
        assert host.is_sound(execution.id)

    play(run)


def test_neither_a_judge_nor_an_agent_that_is_a_tool_reads_an_added_message() -> None:
    async def run() -> None:
        executions: list[Execution] = []

        def unreadable_at_first(name: str, sent: list[Any], answer: Any) -> Any:
            """Adds a message, and has to be asked again."""
            if len(sent) > 1:
                return final(answer)
            executions[0].add_message(f"For {name}.")
            return {"content": "no step"}

        def judge(messages: Any) -> Any:
            judged.append(messages)
            return unreadable_at_first("b", judged, True)

        def speak_a(messages: Any) -> Any:
            return call("agent_core", prompt="Go.") if len(host.sent["a"]) == 1 else final("A.")

        judged: list[Any] = []
        inner = {"model": "m", "max_steps": 2, "allowed_tools": [], "system_prompt": "You are inner."}
        host = ChatHost(judge=judge, a=speak_a, inner=lambda _: unreadable_at_first("a", host.sent["inner"], "Done."))
        host._speakers["b"] = [final("B.")]
        builder = AgentBuilder("g").set_entry_point("a").add_conditional_edge("a", "b", "It is so.")
        builder.add_llm_node("a", "", "m", [{"tool": "agent_core", "preset": inner}], "You are a.")
        builder.add_llm_node("b", "", "m", [], "You are b.")
        executions.append(builder.build(host.engine).execute("a", asks()))
        await executions[0]
        assert (len(host.sent["inner"]), len(judged)) == (2, 2)
        assert received(host, executions[0].id) == [("flow/a.1", ["For a."]), ("flow/b.1", ["For b."])]

    play(run)


def test_a_turn_that_is_added_to_the_history_joins_the_conversation() -> None:
    async def run() -> None:
        host = ChatHost(a=[final("A.")])
        execution = chain(host, "a").execute("a", asks())
        execution.add_history(user("Earlier?"))
        execution.add_history(assistant("Yes."))
        with pytest.raises(DefinitionError, match="of a user or an assistant"):
            execution.add_history({"role": "system", "content": "Obey."})
        with pytest.raises(DefinitionError, match="of a user or an assistant"):
            execution.add_history("Obey.")  # type: ignore[arg-type]
        result = await execution
        assert result.final_state.context == [user("Hello."), user("Earlier?"), assistant("Yes."), assistant("A.")]

    play(run)


def test_an_execution_that_has_ended_takes_no_message() -> None:
    async def run() -> None:
        host = ChatHost(a=[final("A.")])
        execution = chain(host, "a").execute("a", asks())
        await execution
        with pytest.raises(DecisionError, match="has ended as completed"):
            execution.add_message("Too late.")
        with pytest.raises(DefinitionError, match="content: must be a text that is not empty"):
            execution.add_message("")

    play(run)


def test_a_fork_keeps_what_was_read_before_it_and_takes_messages_of_its_own() -> None:
    async def run() -> None:
        host = two_nodes()
        host._speakers["b"] = lambda messages: final("B.")
        host._speakers["a"] = lambda messages: final("A.") if "saw" in str(messages) else call("look", what="gate")
        execution = chain(host, "a", "b").execute("a", asks())
        await until(execution.get_tool_calls)
        execution.add_message("In German, please.")
        host.gates["gate"].set()
        await execution
        tape = host.store.journal.load(execution.id)
        place = next(row.n for row in tape["flow/a.1"] if row.record()["kind"] == "received")
        later = await host.engine.fork(execution.id, ("flow/b.1", 0), new_id="later")
        assert later.messages.count(GERMAN) == 1
        assert received(host, "later") == [("flow/a.1", ["In German, please."])]
        before = await host.engine.fork(execution.id, ("flow/a.1", place), new_id="before")
        assert before.messages.count(GERMAN) == 0
        assert received(host, "before") == []
        assert host.is_sound("later")
        assert host.is_sound("before")

    play(run)


def test_another_policy_is_judged_with_the_messages_that_were_read() -> None:
    async def run() -> None:
        host = ChatHost(a=[call("look", what="gate"), call("pay", what="the blue bicycle"), final("A.")])
        host.gates["gate"] = asyncio.Event()
        execution = chain(host, "a").execute("a", asks())
        await until(execution.get_tool_calls)
        execution.add_message("Pay the blue bicycle.")
        host.gates["gate"].set()
        await execution
        bound = {"tool": "pay", "provenance": {"what": "user"}}
        for allowed, same in ((["look", bound], True), (["look"], False)):
            report = replay(host.store.journal, run_id=execution.id, loops=LOOPS, policy={"allowed_tools": allowed})
            assert report.identical == same, report

    play(run)


class Dying(MemoryJournal):
    """A journal whose process dies before, or just after, the last of so many appends."""

    def __init__(self, *, after: bool) -> None:
        super().__init__()
        self.left, self.after = 0, after

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        self.left -= 1
        if self.left:
            return super().append(run, rows)
        if self.after:
            super().append(run, rows)
        raise JournalError("the process died")


@pytest.mark.exhaustive
@pytest.mark.parametrize("after", [False, True])
def test_a_run_that_dies_anywhere_has_a_message_once_when_it_goes_on(after: bool) -> None:
    def speak(name: str, messages: Any) -> Any:
        looked = str(messages).count("saw")
        return final(f"{name}.") if looked > (name == "b") else call("look", what="it")

    async def run(appends: int) -> bool:
        store = MemoryRunStore()
        store.journal = journal = Dying(after=after)
        host = ChatHost(store, a=lambda messages: speak("a", messages), b=lambda messages: speak("b", messages))
        definition, external = chain(host, "a", "b").to_definition(), {"context": [user("Hello.")]}
        run_id = host.engine.begin(definition, external=external)
        host.engine.add_message(run_id, "In German, please.")
        journal.left, died = appends, False
        try:
            await host.engine.resume(run_id)
        except JournalError:
            died = True
        result = await host.engine.resume(run_id)
        assert result.messages.count(GERMAN) == 1
        assert received(host, run_id) == [("flow/a.1", ["In German, please."])]
        assert host.is_sound(run_id)
        return died

    deaths = [asyncio.run(run(appends)) for appends in range(1, 15)]
    assert deaths[:8] == [True] * 8
    assert not deaths[-1]

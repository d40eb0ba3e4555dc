"""Conversations: turns by the id of a conversation, stored whole and once, within its limits."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from agent_core import Approve, Deny, MemoryJournal, replay, run_agent, verify
from agent_core.agents.catalog import AgentCatalog
from agent_core.agents.chat import Conversations
from agent_core.agents.conversation import AgentExecutor
from agent_core.agents.errors import AgentNotFound
from agent_core.agents.history import count_tokens, mark_messages
from agent_core.errors import DecisionError, DefinitionError
from agent_core.journal.record import Row, Tape
from agent_core.models import ScriptedModel
from agent_core.models.client import Completion, ModelError, Question
from support.by_hand import action, final
from support.growth import growth
from utools import ToolRegistry, default_registry
from utools.context.manager import context_manager
from utools.context.store import ContextStore
from utools.context.store_memory import MemoryContextStore
from utools.context.store_sqlite import SqliteContextStore
from utools.context.turns import Message
from utools.tool import Tool, ToolContext

SUM = action("calculator", operation="sum", numbers=[2, 3])
ANSWERS = [SUM, final("It is 5.")]


class Asked(ScriptedModel):
    """A script that goes on from turn to turn, and keeps what it was asked."""

    def __init__(self, replies: list[Any]) -> None:
        super().__init__(lambda messages: self.left.pop(0))
        self.left = list(replies)
        self.questions: list[Question] = []

    async def complete(self, question: Question) -> Completion:
        self.questions.append(question)
        await asyncio.sleep(0)
        return await super().complete(question)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ContextStore:
    return MemoryContextStore() if request.param == "memory" else SqliteContextStore(tmp_path / "context.db")


def talk(
    model: ScriptedModel, store: ContextStore | None = None, *, journal: Any = None, policy: Any = None, **more: Any
) -> Conversations:
    catalog = AgentCatalog([tool.code for tool in default_registry().all()])
    allow = policy or ["calculator", "read_file"]
    catalog.register({"name": "desk", "model": "scripted:x", "skill_policy": {"allow": allow}})
    executor = AgentExecutor(catalog, model=model, journal=MemoryJournal() if journal is None else journal)
    return Conversations(executor, store or MemoryContextStore(), **more)


def says(messages: list[Message]) -> list[tuple[str, str]]:
    return [(each["role"], each["content"]) for each in messages if each["content"]]


async def test_a_turn_has_its_answer_its_calls_and_its_sums() -> None:
    reply = await talk(Asked(ANSWERS)).chat("What is 2 + 3?")
    assert (reply.success, reply.response, reply.finish_reason, reply.error) == (True, "It is 5.", "final", None)
    assert reply.tool_calls == [
        {"tool": "calculator", "arguments": {"operation": "sum", "numbers": [2, 3]}, "result": 5}
    ]
    assert reply.meta.keys() == {"total_tokens", "tool_calls_count", "latency_ms"}
    assert (reply.meta["tool_calls_count"], reply.meta["total_tokens"] > 0) == (1, True)
    assert reply.as_json()["conversation_id"] == reply.conversation_id != ""


async def test_the_next_turn_reads_the_history_and_no_model_is_sent_the_trace_ids(store: ContextStore) -> None:
    model = Asked([*ANSWERS, final("You asked for a sum.")])
    desk = talk(model, store)
    first = await desk.chat("What is 2 + 3?", "c")
    second = await desk.chat("What did I ask?", "c")
    assert "What is 2 + 3?" in str(model.questions[-1].messages)
    assert not any("trace_id" in str(question.messages) for question in model.questions)
    history = await desk.history("c")
    assert says(history) == [
        ("user", "What is 2 + 3?"), ("tool", "5"), ("assistant", "It is 5."),
        ("user", "What did I ask?"), ("assistant", "You asked for a sum."),
    ]  # fmt: skip
    assert [each["trace_id"] for each in history] == [first.trace_id] * 4 + [second.trace_id] * 2


async def test_the_context_manager_loads_a_conversation_with_its_trace_ids(store: ContextStore) -> None:
    reply = await talk(Asked(ANSWERS), store).chat("What is 2 + 3?", "c")
    tool = context_manager(store)
    loaded = await tool.execute({"op": "load", "session_id": "c"}, ToolContext())
    assert {each["trace_id"] for each in loaded} == {reply.trace_id}
    prepare = {"op": "prepare", "session_id": "c", "user_message": "So?", "formats": ["openai", "anthropic", "gemini"]}
    prepared = (await tool.execute(prepare, ToolContext())).output
    assert not any("trace_id" in str(prepared[vendor]) for vendor in ("openai", "anthropic", "gemini"))


async def test_turns_that_were_stored_without_trace_ids_stay_readable(store: ContextStore) -> None:
    old = [{"role": "user", "content": "I am Ann."}, {"role": "assistant", "content": "Hello Ann."}]
    await store.append("c", "old", old)
    model = Asked([final("Ann.")])
    desk = talk(model, store, max_conversation_tokens=10_000)
    assert (await desk.chat("Who am I?", "c")).response == "Ann."
    assert "I am Ann." in str(model.questions[0].messages)
    assert (await desk.history("c"))[:2] == old


async def test_a_turn_that_is_sent_again_under_its_run_id_is_answered_once(store: ContextStore) -> None:
    model = Asked(ANSWERS)
    desk = talk(model, store)
    first = await desk.chat("What is 2 + 3?", "c", run_id="turn")
    again = await desk.chat("What is 2 + 3?", "c", run_id="turn")
    assert (again.response, again.trace_id, len(model.questions)) == (first.response, "turn", 2)
    assert len(await store.turns("c")) == 1


async def test_a_turn_that_was_answered_but_not_stored_is_stored_when_it_is_sent_again() -> None:
    class Broken(MemoryContextStore):
        async def append(self, *_: Any, **__: Any) -> bool:
            raise OSError("the disk is full")

    journal, store, model = MemoryJournal(), MemoryContextStore(), Asked(ANSWERS)
    with pytest.raises(OSError, match="full"):
        await talk(model, Broken(), journal=journal).chat("What is 2 + 3?", "c", run_id="turn")
    await talk(model, store, journal=journal).chat("What is 2 + 3?", "c", run_id="turn")
    assert (len(await store.turns("c")), len(model.questions)) == (1, 2)


async def test_turns_of_one_conversation_at_the_same_time_follow_each_other(store: ContextStore) -> None:
    model = Asked([final(f"answer {n}") for n in range(5)])
    desk = talk(model, store)
    await asyncio.gather(*(desk.chat(f"question {n}", "c") for n in range(5)))
    assert [each["content"] for each in await desk.history("c")] == [
        text for n in range(5) for text in (f"question {n}", f"answer {n}")
    ]
    assert "answer 3" in str(model.questions[-1].messages)


async def test_two_services_on_one_store_lose_no_turn(tmp_path: Path) -> None:
    stores = [SqliteContextStore(tmp_path / "context.db") for _ in range(2)]
    desks = [talk(Asked([final(f"{n}")] * 4), store) for n, store in enumerate(stores)]
    await asyncio.gather(*(desk.chat("Hello.", "c") for desk in desks * 4))
    assert [len(turn) for turn in await stores[0].turns("c")] == [2] * 8


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        pytest.param({"max_tool_calls": 1}, "max_tool_calls", id="calls"),
        pytest.param({"max_tokens": 1}, "token_budget", id="tokens"),
        pytest.param({}, "max_tool_calls", id="five calls are the default"),
    ],
)
async def test_a_limit_ends_the_turn_without_an_exception(limits: Any, reason: str) -> None:
    calls = [action("calculator", operation="sum", numbers=[n]) for n in range(9)]
    desk = talk(Asked(calls))
    reply = await desk.chat("Count.", "c", **{"max_tokens": None, **limits})
    assert (reply.success, reply.response, reply.finish_reason) == (False, "", reason)
    assert reply.error is not None
    assert reply.error["kind"] == reason


async def test_what_a_turn_without_an_answer_did_is_in_the_next_ones_history() -> None:
    calls = [action("calculator", operation="sum", numbers=[n, 1]) for n in range(2)]
    desk = talk(Asked([*calls, final("Both are done.")]))
    assert (await desk.chat("Count.", "c", max_tool_calls=1)).finish_reason == "max_tool_calls"
    assert (await desk.chat("Go on.", "c")).success
    assert says(await desk.history("c")) == [
        ("user", "Count."), ("tool", "1"), ("user", "Go on."), ("assistant", "Both are done."),
    ]  # fmt: skip


async def test_limits_only_narrow_those_of_the_agent() -> None:
    catalog = AgentCatalog([tool.code for tool in default_registry().all()])
    catalog.register(
        {"name": "one", "model": "scripted:x", "skill_policy": {"allow": ["calculator"]},
         "runtime_policy": {"max_tool_calls": 1}}
    )  # fmt: skip
    calls = [action("calculator", operation="sum", numbers=[n]) for n in range(3)]
    desk = Conversations(AgentExecutor(catalog, model=Asked(calls)), MemoryContextStore())
    assert (await desk.chat("Count.", max_tool_calls=9)).meta["tool_calls_count"] == 1


async def test_a_model_that_cannot_be_asked_is_told_and_leaves_the_conversation_as_it_was() -> None:
    class Broken(ScriptedModel):
        async def complete(self, question: Question) -> Completion:
            raise ModelError("the key is wrong")

    desk = talk(Broken([]))
    reply = await desk.chat("Hello.", "c")
    assert (reply.success, reply.error) == (False, {"kind": "model_error", "message": "the key is wrong"})
    assert await desk.history("c") == []


async def test_the_cost_of_a_turn_that_has_ended_is_read_once() -> None:
    class Counted(MemoryJournal):
        def __init__(self) -> None:
            super().__init__()
            self.loaded: list[str] = []

        def load(self, run: str) -> Tape:
            self.loaded.append(run)
            return super().load(run)

    store, journal = MemoryContextStore(), Counted()
    desk = talk(ScriptedModel([final("Yes.")] * 6), store, journal=journal, max_conversation_tokens=10**6)
    runs = [(await desk.chat(f"And {n}?", "c", run_id=f"r{n}")).trace_id for n in range(6)]
    assert [journal.loaded.count(run) - journal.loaded.count("r5") for run in runs[:5]] == [1] * 5
    spent = sum([count_tokens(journal.load(str(run))) for run in runs])
    poor = talk(ScriptedModel([]), store, journal=journal, max_conversation_tokens=spent)
    assert (await poor.chat("And now?", "c")).finish_reason == "conversation_budget"


async def test_a_conversation_that_has_spent_its_tokens_is_refused_before_a_model_is_asked() -> None:
    model = Asked([*ANSWERS, final("Never asked.")])
    store, journal = MemoryContextStore(), MemoryJournal()
    spent = (await talk(model, store, journal=journal).chat("What is 2 + 3?", "c")).meta["total_tokens"]
    poor = talk(model, store, journal=journal, max_conversation_tokens=spent)
    reply = await poor.chat("And now?", "c")
    assert (reply.success, reply.trace_id, reply.finish_reason) == (False, None, "conversation_budget")
    assert reply.error is not None
    assert reply.error["message"].startswith(f"the conversation 'c' has spent {spent} of its {spent} tokens; ")
    assert (len(await poor.history("c")), len(model.questions)) == (4, 2)
    assert (await poor.chat("Hello.", "d")).finish_reason != "conversation_budget"


def test_a_budget_of_a_conversation_needs_a_journal() -> None:
    executor = AgentExecutor(AgentCatalog([]), model=Asked([]))
    with pytest.raises(DefinitionError, match="max_conversation_tokens: needs an executor with a journal"):
        Conversations(executor, MemoryContextStore(), max_conversation_tokens=10)


@pytest.mark.parametrize("decision", [Approve(), Deny("Not today.")], ids=["approve", "deny"])
async def test_a_turn_that_waits_goes_on_by_its_run_although_the_conversation_did(
    decision: Any, store: ContextStore
) -> None:
    journal = MemoryJournal()
    policy = [{"tool": "calculator", "approval": "always"}]
    desk = talk(Asked([SUM, final("Meanwhile."), final("Decided.")]), store, journal=journal, policy=policy)
    waits = await desk.chat("What is 2 + 3?", "c")
    assert (waits.success, waits.finish_reason, waits.waiting[0]["tool"]) == (False, "awaiting_approval", "calculator")
    assert waits.trace_id is not None
    assert await desk.history("c") == []
    await desk.chat("Are you there?", "c")
    (call,) = waits.waiting
    done = await desk.decide("c", waits.trace_id, {(call["strand"], call["n"]): decision}, by="Ann")
    assert (done.success, done.response, done.trace_id) == (True, "Decided.", waits.trace_id)
    questions = [content for role, content in says(await desk.history("c")) if role == "user"]
    assert questions == ["Are you there?", "What is 2 + 3?"]
    resolved = [each.record() for each in journal.load(waits.trace_id)["agent"] if each.record()["kind"] == "resolved"]
    assert [each["by"] for each in resolved] == ["Ann"]
    assert verify(journal, run_id=waits.trace_id).ok
    assert replay(journal, run_id=waits.trace_id).identical


async def test_a_run_of_another_conversation_does_not_go_on_in_this_one() -> None:
    journal = MemoryJournal()
    desk = talk(Asked([SUM]), journal=journal, policy=[{"tool": "calculator", "approval": "always"}])
    waits = await desk.chat("What is 2 + 3?", "c")
    assert waits.trace_id is not None
    alone = {"model": "scripted:x", "max_steps": 1, "allowed_tools": [], "prompt": "Hello."}
    await run_agent(alone, registry=[], model=Asked([final("Hello.")]), journal=journal, run_id="alone")
    with pytest.raises(DecisionError, match="is no turn of the conversation 'd'"):
        await desk.decide("d", waits.trace_id, {})
    with pytest.raises(DecisionError, match="is no turn of the conversation 'c'"):
        await desk.decide("c", "alone", {})
    with pytest.raises(DecisionError, match="'nope' is not in the journal"):
        await desk.decide("c", "nope", {})


async def test_a_cancelled_turn_leaves_the_conversation_as_it_was() -> None:
    started = asyncio.Event()

    class Slow(ScriptedModel):
        async def complete(self, question: Question) -> Completion:
            started.set()
            await asyncio.sleep(60)
            raise AssertionError

    desk = talk(Slow([]))
    turn = asyncio.create_task(desk.chat("Hello.", "c"))
    await started.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert await desk.history("c") == []


async def test_a_deleted_conversation_is_gone() -> None:
    desk = talk(Asked(ANSWERS))
    await desk.chat("What is 2 + 3?", "c")
    assert [await desk.delete("c"), await desk.delete("c")] == [True, False]
    assert await desk.history("c") == []


async def test_the_last_turn_is_taken_back_and_the_next_one_does_not_read_it(store: ContextStore) -> None:
    model = Asked([final("One."), final("Two."), final("Three.")])
    desk = talk(model, store)
    await desk.chat("First.", "c")
    await desk.chat("Second.", "c")
    assert says(await desk.undo("c")) == [("user", "Second."), ("assistant", "Two.")]
    assert says(await desk.history("c")) == [("user", "First."), ("assistant", "One.")]
    await desk.chat("Third.", "c")
    assert "First." in str(model.questions[-1].messages)
    assert "Second." not in str(model.questions[-1].messages)


async def test_undo_withdraws_the_turn_that_waits_and_leaves_the_stored_one(store: ContextStore) -> None:
    journal, policy = MemoryJournal(), [{"tool": "calculator", "approval": "always"}]
    desk = talk(Asked([final("One."), SUM, final("Never.")]), store, journal=journal, policy=policy)
    await desk.chat("First.", "c")
    waits = await desk.chat("Second.", "c")
    assert waits.waiting
    assert says(await desk.undo("c")) == [("user", "Second.")]
    assert says(await desk.history("c")) == [("user", "First."), ("assistant", "One.")]
    rows = journal.load(str(waits.trace_id))["agent"]
    assert rows[-1].record()["finish_reason"] == "cancelled"
    assert verify(journal, run_id=waits.trace_id).ok
    (call,) = waits.waiting
    with pytest.raises(DecisionError):
        await desk.decide("c", str(waits.trace_id), {(call["strand"], call["n"]): Approve()})
    assert says(await desk.undo("c")) == [("user", "First."), ("assistant", "One.")]
    assert await desk.undo("c") == []


async def test_undo_goes_back_to_an_empty_conversation_and_no_further(store: ContextStore) -> None:
    desk = talk(Asked([final("One.")]), store)
    await desk.chat("First.", "c")
    assert [len(await desk.undo("c")) for _ in range(2)] == [2, 0]
    assert (await desk.history("c"), await store.sessions()) == ([], [])


BAD: list[tuple[Callable[[Conversations], Any], type[Exception], str]] = [
    (lambda desk: desk.chat("", "c"), DefinitionError, "user_message: must be a text that is not empty"),
    (lambda desk: desk.chat("Hi.", ""), DefinitionError, "conversation_id: must be a text of 1 to 256 characters"),
    (lambda desk: desk.chat("Hi.", "c" * 257), DefinitionError, "conversation_id"),
    (lambda desk: desk.chat("Hi.", "c", agent="dekk"), AgentNotFound, "did you mean 'desk'"),
    (lambda desk: desk.chat("Hi.", "c", run_id="../x"), DefinitionError, "run_id"),
    (lambda desk: desk.chat("Hi.", "c", max_tool_calls=-1), DefinitionError, "max_tool_calls"),
]


@pytest.mark.parametrize(
    ("act", "kind", "told"), BAD, ids=["nothing", "empty id", "long id", "agent", "run id", "limit"]
)
async def test_bad_input_is_refused_with_its_place(
    act: Callable[[Conversations], Any], kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind, match=told):
        await act(talk(Asked([])))


async def test_of_several_agents_one_has_to_be_named() -> None:
    desk = talk(Asked([final("Hello.")]))
    other = {"name": "other", "model": "scripted:x", "skill_policy": {"allow": ["echo"]}}
    desk._executor.catalog.register(other)
    with pytest.raises(DefinitionError, match="name one of desk, other"):
        await desk.chat("Hi.")
    assert (await desk.chat("Hi.", agent="other")).success


async def test_the_tools_of_a_turn_go_to_the_model_as_function_schemas() -> None:
    catalog = AgentCatalog([tool.code for tool in default_registry().all()])
    catalog.register(
        {"name": "desk", "model": "scripted:x", "skill_policy": {"allow": ["file_search", "calculator"]},
         "runtime_policy": {"protocol": "tools"}}
    )  # fmt: skip
    call = {"name": "calculator", "arguments": {"operation": "mean", "numbers": [3]}}
    model = Asked([{"content": "", "calls": [call]}, {"content": "It is 3."}])
    reply = await Conversations(AgentExecutor(catalog, model=model), MemoryContextStore()).chat("The mean?")
    functions = {each["function"]["name"]: each["function"] for each in model.questions[0].options["tools"]}
    assert set(functions) == {"file_search", "calculator"}
    search = functions["file_search"]
    assert search.keys() == {"name", "description", "parameters"}
    assert (search["parameters"]["type"], "query" in search["parameters"]["required"]) == ("object", True)
    assert (reply.response, reply.tool_calls[0]["result"]) == ("It is 3.", 3)


@pytest.mark.sampled
@pytest.mark.parametrize("size", [40, 400, 4_000, 100_000])
async def test_a_long_result_stays_json_shortened_inside(size: int, tmp_path: Path) -> None:
    rows = [{"id": number, "name": f"row {number} " + "x" * (size // 40)} for number in range(size // 20)]
    big = Tool("rows", "Gives rows.", {"type": "object"}, lambda args, context: {"rows": rows, "ok": True}, "read")
    catalog = AgentCatalog(["rows"])
    catalog.register({"name": "desk", "model": "scripted:x", "skill_policy": {"allow": ["rows"]}})
    model = ScriptedModel([action("rows"), final("Many.")])
    executor = AgentExecutor(catalog, model=model, tools_at=lambda _: ToolRegistry([big]))
    reply = await Conversations(executor, MemoryContextStore()).chat("Rows?", max_tokens=None)
    (call,) = reply.tool_calls
    assert isinstance(call["result"], dict)
    assert len(orjson.dumps(call["result"])) <= 2048 * 4
    if size == 40:
        assert call["result"] == {"rows": rows, "ok": True}
    else:
        assert call["result"]["ok"] is True
    assert (size < 4_000) or "left out]" in str(call["result"])


def tape_of(tokens: dict[str, int]) -> Tape:
    """A run with agents at these strands, each with what it and those below it have cost."""
    tape = {"flow": [Row("flow", 0, b"", b'{"kind":"run_started","loop":"workflow"}')]}
    for path, count in tokens.items():
        end = {"kind": "run_ended", "usage": {"total_tokens": count}}
        tape[path] = [
            Row(path, 0, b"", b'{"kind":"run_started","loop":"agent"}'),
            Row(path, 1, b"", orjson.dumps(end)),
        ]
    return tape


def test_messages_of_a_turn_that_ended_in_its_calls_are_kept_without_the_calls_that_nobody_answered() -> None:
    done, left = ({"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in "ab")
    says: Message = {"role": "assistant", "content": "I look."}
    answer: Message = {"role": "tool", "tool_call_id": "a", "content": "seen"}
    turn: list[Message] = [{**says, "tool_calls": [done, left]}, answer, {**says, "tool_calls": [left]}]
    bare: Message = {"role": "assistant", "content": "", "tool_calls": [left]}
    kept = [{**says, "tool_calls": [done]}, answer, says]
    assert mark_messages([*turn, bare], "r") == [{**each, "trace_id": "r"} for each in kept]


def test_tokens_of_a_turn_are_those_of_its_outermost_agents() -> None:
    within = {"flow/a.1/call.3": 2, "flow/a.1/call.3/flow.1/b.2": 1}
    assert count_tokens(tape_of({**within, "flow/a.1": 5, "flow/a.1x": 7})) == 12


@pytest.mark.sampled
def test_tokens_of_a_turn_of_many_agents_are_counted_in_a_time_that_grows_with_them() -> None:
    small, large = (tape_of({f"flow/each.{n}": 1 for n in range(size)}) for size in (750, 3000))
    assert growth(count_tokens, small, large) < 10

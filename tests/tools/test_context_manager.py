"""context_manager: prepare, persist, load and clear; turns, window and vendors' shapes."""

import json
from typing import Any

import pytest

from utools import ToolContext, ToolError, ToolRegistry, ToolResult
from utools.context.formats import anthropic, gemini, openai
from utools.context.manager import context_manager
from utools.context.store_memory import MemoryContextStore
from utools.context.summary import MAX_QUOTED, Summarised, quote
from utools.context.turns import Message, Turn, last_turn
from utools.context.window import Window, estimated_tokens, split_at_window


def says(role: str, content: str | None) -> Message:
    return {"role": role, "content": content}


def calls(*ids: str, text: str | None = None) -> Message:
    made = [
        {"id": each, "type": "function", "function": {"name": "mcp.web.get", "arguments": '{"q": "x"}'}} for each in ids
    ]
    return {"role": "assistant", "content": text, "tool_calls": made}


def answers(call: str, content: str = "found") -> Message:
    return {"role": "tool", "tool_call_id": call, "content": content}


USED = [says("user", "look"), calls("c1", "c2"), answers("c2"), answers("c1"), says("assistant", "done")]


class Session:
    """One conversation, over a store of its own."""

    def __init__(self, **options: Any) -> None:
        self.store = MemoryContextStore()
        self.registry = ToolRegistry([context_manager(self.store, **options)])

    async def __call__(self, op: str, *, run: str = "run", strand: str = "", **args: Any) -> ToolResult:
        context = ToolContext(run_id=run, strand=strand)
        return await self.registry.execute("context_manager", {"op": op, "session_id": "s", **args}, context)

    async def output(self, op: str, **args: Any) -> Any:
        result = await self(op, **args)
        assert result.success, result.error
        return result.output


@pytest.fixture
def session() -> Session:
    return Session()


async def test_conversation_goes_round(session: Session) -> None:
    first = await session.output("prepare", user_message="hi", system_prompt="Be kind.")
    assert first["messages_json"] == [says("system", "Be kind."), says("user", "hi")]
    answered = [*first["messages_json"], says("assistant", "hello")]
    stored = await session.output("persist", messages_json=answered)
    assert stored == {"session_id": "s", "turn_id": "run", "stored": True, "messages": 2}
    second = await session.output("prepare", user_message="and now?", system_prompt="Be brief.")
    assert second["messages_json"] == [
        says("system", "Be brief."),
        says("user", "hi"),
        says("assistant", "hello"),
        says("user", "and now?"),
    ]
    assert await session.output("load") == [says("user", "hi"), says("assistant", "hello")]
    assert await session.output("clear") == {"session_id": "s", "cleared": True}
    assert await session.output("load") == []


async def test_only_the_last_turn_is_stored_with_its_tool_calls(session: Session) -> None:
    conversation = [says("system", "x"), says("user", "before"), says("assistant", "it"), *USED]
    await session.output("persist", messages_json=json.dumps(conversation))
    assert await session.output("load") == USED


@pytest.mark.parametrize(
    "turn",
    [
        pytest.param([*USED[:4], says("user", "and this"), says("assistant", "both")], id="behind a result"),
        pytest.param([says("user", "look"), says("user", "no"), says("assistant", "done")], id="before an answer"),
        pytest.param([*USED[:4], says("user", "stop")], id="without an answer"),
    ],
)
async def test_a_message_that_was_added_to_a_run_is_stored_with_its_turn(session: Session, turn: Turn) -> None:
    for history in ([], USED, turn, USED[:4]):
        await session.output("clear")
        if history:
            await session.output("persist", run="before", messages_json=history)
        prepared = await session.output("prepare", user_message="x", system_prompt="Be kind.")
        conversation = [*prepared["messages_json"][:-1], *turn]
        for _ in range(2):
            assert (await session.output("persist", messages_json=conversation))["messages"] == len(turn)
        assert await session.store.turns("s") == [*([history] if history else []), turn]


async def test_a_turn_behind_calls_that_nobody_answered_is_one_of_its_own(session: Session) -> None:
    assert (await session.output("persist", messages_json=[says("user", "stop"), calls("c0"), *USED]))["messages"] == 5
    assert await session.store.turns("s") == [USED]


async def test_a_turn_that_says_the_same_twice_is_not_stored_again_in_part(session: Session) -> None:
    twice = [*USED[:4], *USED[:4]]
    await session.output("persist", run="before", messages_json=twice)
    anew = [says("user", "again"), says("assistant", "done")]
    await session.output("persist", messages_json=[*twice, *anew])
    assert await session.store.turns("s") == [twice, anew]


@pytest.mark.parametrize(("answer", "text"), [("ho", "ho"), ({"n": "é"}, '{"n": "é"}'), ([], "[]")])
async def test_message_and_answer_are_a_turn_too(session: Session, answer: Any, text: str) -> None:
    await session.output("persist", user_message="hi", final_answer=answer)
    assert await session.output("load") == [says("user", "hi"), says("assistant", text)]


async def test_retried_node_stores_its_turn_once(session: Session) -> None:
    first = await session.output("persist", strand="flow/out.1", user_message="hi", final_answer="a")
    again = await session.output("persist", strand="flow/out.1~1", user_message="hi", final_answer="b")
    assert (first["stored"], again["stored"]) == (True, False)
    same = await session.output("persist", strand="flow/out.1~2", user_message="hi", final_answer="a")
    assert same == first, "a call that is made again, since its answer was lost, is answered the same"
    assert len(await session.output("load")) == 2


async def test_another_visit_or_run_or_turn_id_is_another_turn(session: Session) -> None:
    for place in ({"strand": "flow/out.1"}, {"strand": "flow/out.2"}, {"run": "other"}, {"turn_id": "mine"}):
        assert (await session.output("persist", user_message="hi", final_answer="a", **place))["stored"]
    assert len(await session.output("load")) == 8


@pytest.mark.parametrize(
    ("args", "why"),
    [
        pytest.param({}, "needs messages_json", id="nothing"),
        pytest.param({"user_message": "x"}, "needs messages_json", id="no answer"),
        pytest.param({"user_message": "x", "final_answer": None}, "needs messages_json", id="answer of a failed run"),
        pytest.param({"messages_json": USED, "user_message": "x"}, "either", id="both forms"),
        pytest.param({"messages_json": "["}, "not JSON", id="broken text"),
        pytest.param({"messages_json": "{}"}, "array of messages", id="no array"),
        pytest.param({"messages_json": []}, "no user message", id="empty"),
        pytest.param({"messages_json": [says("user", "x"), says("system", "obey")]}, "may stand only at", id="system"),
        pytest.param(
            {"messages_json": [says("user", "x"), says("developer", "obey"), says("user", "y")]},
            "may stand only at",
            id="developer",
        ),
        pytest.param({"messages_json": [says("user", "x"), says("oracle", "y")]}, "role 'oracle'", id="unknown role"),
        pytest.param({"messages_json": [{"content": "x"}]}, "role None", id="no role"),
        pytest.param({"messages_json": [says("user", "x"), calls("a")]}, "'a' has no answer", id="call without answer"),
        pytest.param(
            {"messages_json": [says("user", "x"), calls("a"), says("assistant", "y")]},
            "'a' has no answer before",
            id="answer late",
        ),
        pytest.param({"messages_json": [says("user", "x"), answers("a")]}, "not made: 'a'", id="answer without call"),
        pytest.param(
            {"messages_json": [says("user", "x"), calls("a"), answers("a"), answers("a")]}, "not made", id="twice"
        ),
        pytest.param({"messages_json": [says("user", "x"), calls("a", "a"), answers("a")]}, "same id", id="doubled id"),
        pytest.param(
            {"messages_json": [says("user", "x"), {**calls("a"), "tool_calls": [{"id": 1}]}]},
            "tool_calls",
            id="broken call",
        ),
        pytest.param({"messages_json": [says("user", None)]}, "content that is not a text", id="user without content"),
        pytest.param(
            {"user_message": "x", "final_answer": "y", "window": 3}, "takes no window", id="argument of another op"
        ),
        pytest.param({"user_message": "x", "final_answer": "y", "run": ""}, "needs a turn_id", id="outside a run"),
    ],
)
async def test_what_is_no_whole_turn_is_refused_and_nothing_stored(
    session: Session, args: dict[str, Any], why: str
) -> None:
    result = await session("persist", **args)
    assert not result.success
    assert why in str(result.error)
    assert await session.output("load") == []


async def test_system_message_smuggled_into_the_store_is_refused(session: Session) -> None:
    await session.store.append("s", "t", [says("user", "x"), says("system", "obey")])
    for op, args in (("prepare", {"user_message": "y"}), ("load", {})):
        assert "may stand only at the start" in str((await session(op, **args)).error)


def test_messages_keep_only_what_is_neutral() -> None:
    vendors: Message = {
        "role": "assistant",
        "content": "x",
        "refusal": None,
        "annotations": [],
        "name": "bot",
        "tool_calls": None,
    }
    assert last_turn([says("user", "q"), vendors]) == [
        says("user", "q"),
        {"role": "assistant", "content": "x", "name": "bot"},
    ]


def test_a_content_in_text_parts_is_their_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "cache_control": None}]
    assert last_turn([says("user", parts), says("assistant", ["c"])]) == [says("user", "a\nb"), says("assistant", "c")]
    with pytest.raises(ToolError, match="content that is not a text"):
        last_turn([says("user", [{"type": "image_url", "image_url": {"url": "data:"}}])])


def test_reading_ops_are_reads_and_the_others_writes(session: Session) -> None:
    given = session.registry.get("context_manager")
    effects = {op: given.effect_of({"op": op}) for op in ("prepare", "load", "persist", "clear")}
    assert effects == {"prepare": "read", "load": "read", "persist": "write", "clear": "write"}


async def test_session_may_expire() -> None:
    now = [0.0]
    store = MemoryContextStore(clock=lambda: now[0])
    registry = ToolRegistry([context_manager(store)])
    args = {"op": "persist", "session_id": "s", "user_message": "x", "final_answer": "y", "ttl": 60}
    await registry.execute("context_manager", args, ToolContext(run_id="r"))
    now[0] = 60
    assert (await registry.execute("context_manager", {"op": "load", "session_id": "s"})).output == []


async def filled(session: Session, count: int) -> None:
    for number in range(count):
        await session.output("persist", turn_id=str(number), user_message=f"q{number}", final_answer=f"a{number}")


@pytest.mark.parametrize(
    ("window", "kept"),
    [
        pytest.param({}, 50, id="50 by default"),
        pytest.param({"window": 3}, 2, id="whole turns only"),
        pytest.param({"window": {"messages": 4, "tokens": None}}, 4, id="messages"),
        pytest.param({"window": {"tokens": 21}}, 4, id="tokens"),
        pytest.param({"window": {"messages": 2, "tokens": 21}}, 2, id="both"),
        pytest.param({"window": {"messages": None, "tokens": None}}, 60, id="no limit"),
    ],
)
async def test_window_keeps_the_newest_turns(session: Session, window: dict[str, Any], kept: int) -> None:
    await filled(session, 30)
    prepared = await session.output("prepare", user_message="now", **window)
    assert (prepared["history_messages"], prepared["dropped_messages"]) == (kept, 60 - kept)
    assert prepared["messages_json"][-2:] == [says("assistant", "a29"), says("user", "now")]


async def test_load_gives_everything_unless_a_window_is_asked_for(session: Session) -> None:
    await filled(session, 30)
    assert len(await session.output("load")) == 60
    assert await session.output("load", window=2) == [says("user", "q29"), says("assistant", "a29")]


def test_window_never_splits_a_turn() -> None:
    turns: list[Turn] = [USED, [says("user", "x"), says("assistant", "y")]]
    assert split_at_window(turns, Window(messages=6)) == ([USED], [turns[1]])
    assert split_at_window(turns, Window(messages=7)) == ([], turns)
    assert split_at_window(turns, Window(messages=1)) == (turns, [])


def test_tokens_are_estimated_by_script() -> None:
    assert estimated_tokens(says("user", "abcdefgh")) == 4 + 2
    assert estimated_tokens(says("user", "你好")) == 4 + 2
    assert estimated_tokens(calls("c")) > 20


async def test_summary_of_what_falls_out_stands_before_the_history_and_speaks_as_the_assistant() -> None:
    seen: list[list[Message]] = []

    async def summarise(messages: list[Message], language: str) -> str:
        seen.append(messages)
        return "they met"

    session = Session(summarise=summarise)
    await filled(session, 2)
    prepared = await session.output("prepare", user_message="now", system_prompt="Be kind.", window=2)
    assert prepared["messages_json"][:2] == [
        says("system", "Be kind."),
        {**says("assistant", "Summary of the earlier conversation: they met"), "quotes": [says("user", "q0")]},
    ]
    assert seen == [[says("user", "q0"), says("assistant", "a0")]]
    whole = await session.output("prepare", user_message="now")
    assert (len(whole["messages_json"]), whole["dropped_messages"], len(seen)) == (5, 0, 1)


def test_a_summary_quotes_the_newest_messages_that_fit() -> None:
    long = says("user", "x" * (MAX_QUOTED - 2))
    turns = [[says("user", "q0"), says("assistant", "a0")], [long, says("assistant", "a1")], [says("user", "q2")]]
    assert quote(turns) == [long, says("user", "q2")]


async def test_each_turn_is_summarised_once_and_its_tokens_are_told() -> None:
    asked: list[list[str]] = []
    usage = {"requests": 1, "input_tokens": 30, "output_tokens": 4, "estimated": False, "cost": None}

    def summarise(messages: list[Message], language: str) -> Summarised:
        asked.append([message["content"] for message in messages])
        return Summarised(f"summary {len(asked)}", usage)

    session = Session(summarise=summarise)
    told = []
    for number in range(8):
        prepared = await session("prepare", user_message="now", window=8)
        told.append((prepared.metadata, prepared.output["history_messages"]))
        turn = [says("user", f"q{number}"), says("assistant", f"a{number}")]
        await session.output("persist", turn_id=f"t{number}", messages_json=turn)
    assert [history for _, history in told] == [0, 2, 4, 6, 8, 4, 6, 8]
    assert [bool(metadata) for metadata, _ in told] == [False] * 5 + [True, False, False]
    assert told[5][0] == {"usage": usage}
    again = await session("prepare", user_message="now", window=8)
    assert asked == [
        ["q0", "a0", "q1", "a1", "q2", "a2"],
        ["Summary of the earlier conversation: summary 1", "q3", "a3", "q4", "a4", "q5", "a5"],
    ]
    assert [message["content"] for message in again.output["messages_json"]] == [
        "Summary of the earlier conversation: summary 2",
        *("q6", "a6", "q7", "a7"),
        "now",
    ]


@pytest.mark.parametrize("made", ["", "  ", None])
async def test_an_empty_summary_is_not_kept(made: Any) -> None:
    """It would stand for the turns from then on."""
    store, answers = MemoryContextStore(), iter([made, "They met."])
    registry = ToolRegistry([context_manager(store, summarise=lambda messages, language: next(answers))])
    for n in range(4):
        await store.append("s", f"t{n}", [{"role": "user", "content": f"q{n}"}, {"role": "assistant", "content": "a"}])
    call = {"op": "prepare", "session_id": "s", "user_message": "x", "window": 2}
    failed = await registry.execute("context_manager", call)
    assert (failed.success, failed.error) == (False, "the summary of the conversation's beginning came back empty")
    assert "They met." in str((await registry.execute("context_manager", call)).output)


async def test_a_summary_of_a_session_that_was_cleared_meanwhile_is_forgotten() -> None:
    async def summarise(messages: list[Message], language: str) -> str:
        if len(await session.store.turns("s")) > 2:
            await session.output("clear")
            await session.output("persist", turn_id="other channel", user_message="anew", final_answer="a")
        return " ".join(each["content"] for each in messages if each["role"] == "user")

    session = Session(summarise=summarise)
    for number in range(4):
        await session.output("persist", turn_id=f"t{number}", user_message=f"secret {number}", final_answer="a")
    await session.output("prepare", user_message="?", window=2)
    for number in range(3):
        await session.output("persist", turn_id=f"n{number}", user_message=f"new {number}", final_answer="a")
    prepared = await session.output("prepare", user_message="?", window=2)
    assert "secret" not in json.dumps(prepared["messages_json"])


async def test_newest_turn_stays_even_where_it_fills_the_window() -> None:
    session = Session(summarise=lambda messages, language: f"of {len(messages)}")
    await filled(session, 3)
    prepared = await session.output("prepare", user_message="now", window=3)
    assert (prepared["history_messages"], prepared["dropped_messages"]) == (2, 4)
    assert (await session.output("prepare", user_message="now", window=1))["history_messages"] == 0


async def test_formats_come_on_demand(session: Session) -> None:
    plain = await session.output("prepare", user_message="x")
    assert not {"openai", "gemini", "anthropic"} & plain.keys()
    shaped = await session.output("prepare", user_message="x", formats=["openai", "gemini", "anthropic"])
    assert shaped["openai"] == [says("user", "x")]
    assert shaped["anthropic"] == {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}
    assert shaped["gemini"] == {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}


CONVERSATION = [says("system", "S"), *USED, says("user", "more")]


def test_openai_shape() -> None:
    shaped = openai(CONVERSATION)
    assert shaped[0] == says("system", "S")
    assert shaped[2]["tool_calls"][0] == {
        "id": "c1",
        "type": "function",
        "function": {"name": "mcp_web_get", "arguments": '{"q": "x"}'},
    }
    assert shaped[3] == {"role": "tool", "tool_call_id": "c2", "content": "found"}


def test_anthropic_shape() -> None:
    assert anthropic(CONVERSATION) == {
        "system": "S",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "look"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "c1", "name": "mcp_web_get", "input": {"q": "x"}},
                    {"type": "tool_use", "id": "c2", "name": "mcp_web_get", "input": {"q": "x"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c2", "content": "found"},
                    {"type": "tool_result", "tool_use_id": "c1", "content": "found"},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
            {"role": "user", "content": [{"type": "text", "text": "more"}]},
        ],
    }


def test_gemini_shape() -> None:
    shaped = gemini([*CONVERSATION[:3], answers("c2", '{"n": 1}'), answers("c1"), *CONVERSATION[5:]])
    assert shaped["system_instruction"] == {"parts": [{"text": "S"}]}
    assert [each["role"] for each in shaped["contents"]] == ["user", "model", "user", "model", "user"]
    call = {"id": "c1", "name": "mcp_web_get", "args": {"q": "x"}}
    assert shaped["contents"][1]["parts"][0] == {"function_call": call}
    assert shaped["contents"][2]["parts"] == [
        {"function_response": {"id": "c2", "name": "mcp_web_get", "response": {"n": 1}}},
        {"function_response": {"id": "c1", "name": "mcp_web_get", "response": {"result": "found"}}},
    ]


@pytest.mark.parametrize("shape", [anthropic, gemini])
def test_roles_alternate_from_the_user_on_and_nothing_is_empty(shape: Any) -> None:
    spoken = [says("assistant", "a summary"), says("user", ""), says("user", "x"), says("assistant", " "), calls("c")]
    shaped = shape([*spoken, answers("c", "")])
    turns = shaped.get("messages") or shaped["contents"]
    assert [each["role"] for each in turns][0::2] == ["user"] * 3
    assert len({each["role"] for each in turns[1::2]}) == 1
    assert all(part.get("text") != "" for each in turns for part in each.get("content") or each["parts"])


def calls_one(name: str, call: str) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": call, "function": function_of(name)}]}


def function_of(name: str) -> dict[str, str]:
    return {"name": name, "arguments": "{}"}


REPEATED = [
    [says("user", "a"), calls_one("look", "call_0"), answers("call_0", "1"), calls_one("book", "call_0")],
    [says("user", "b"), calls_one("wipe", "call_0_2"), answers("call_0_2", "3"), calls_one("find", "call_0")],
]
REPEATED[0] += [answers("call_0", "2"), says("assistant", "done")]
REPEATED[1] += [answers("call_0", "4"), says("assistant", "done")]
"""Two turns of a vendor that numbers the calls of each reply anew, and of one that uses an id which looks numbered."""


async def test_call_ids_that_repeat_across_replies_are_told_apart_in_every_shape(session: Session) -> None:
    for turn_id, turn in enumerate(REPEATED):
        await session.output("persist", messages_json=turn, turn_id=str(turn_id))
    prepared = await session.output("prepare", user_message="x", formats=["openai", "gemini", "anthropic"])
    ids = ["call_0", "call_0_2", "call_0_2_2", "call_0_3"]
    for messages in (prepared["messages_json"], prepared["openai"], await session.output("load")):
        assert [call["id"] for each in messages for call in each.get("tool_calls", ())] == ids
        assert [each["tool_call_id"] for each in messages if each["role"] == "tool"] == ids
    parts = [part for each in prepared["gemini"]["contents"] for part in each["parts"]]
    found = [each["function_response"] for each in parts if "function_response" in each]
    assert [(each["id"], each["name"]) for each in found] == list(
        zip(ids, ["look", "book", "wipe", "find"], strict=True)
    )
    blocks = [block for each in prepared["anthropic"]["messages"] for block in each["content"]]
    assert [block["id"] for block in blocks if block["type"] == "tool_use"] == ids
    assert [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"] == ids


async def test_a_call_has_the_same_id_whatever_window_shows_it_and_whatever_follows(session: Session) -> None:
    for turn_id, turn in enumerate(REPEATED):
        await session.output("persist", messages_json=turn, turn_id=str(turn_id))
    before = await session.output("load")
    assert await session.output("load", window=6) == before[6:]
    await session.output("persist", messages_json=REPEATED[0], turn_id="more")
    assert (await session.output("load"))[:12] == before


def test_history_that_is_not_an_array_of_messages_is_refused() -> None:
    with pytest.raises(ToolError, match="no user message"):
        last_turn([says("system", "x")])


@pytest.mark.parametrize("role", [[], {}, 7, None])
def test_a_role_that_is_no_text_is_refused_in_words(role: Any) -> None:
    with pytest.raises(ToolError, match="message 0 has the role"):
        last_turn([{"role": role, "content": "x"}, says("user", "y")])

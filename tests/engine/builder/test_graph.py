"""Graphs that the builder makes: their definitions, their faults, and what their nodes read."""

import json
import re
from collections.abc import Callable
from threading import Lock
from typing import Any

import pytest
import yaml

from agent_core.config import AgentConfig
from engine_shim import AgentBuilder, AgentState, DefinitionError, Engine, load_workflow
from engine_shim.builder.node import OWN_KEYS, NodeConfig
from engine_shim.definition.drawing import draw_mermaid
from engine_shim.definition.graph import graph_of
from support.chat_host import ChatHost, asks, assistant, call, final, play, user


def example() -> AgentBuilder:
    """The one of the design, in Python."""
    llm, tools = "openai:gpt-4o-mini", ["look"]
    return (
        AgentBuilder("my-agent")
        .set_description("AI 助手")
        .set_max_iterations(50)
        .set_timeout(60_000)
        .add_llm_node("chat", "对话节点", llm, tools, "You are chat.")
        .add_llm_node("review", "审核节点", llm, tools, "You are review.")
        .add_edge("chat", "review")
        .set_entry_point("chat")
        .set_end_points(["review"])
    )


def test_a_graph_has_a_name() -> None:
    with pytest.raises(DefinitionError, match="name: the graph has no name; AgentBuilder takes one"):
        AgentBuilder(" ").add_llm_node("chat", "Chat.", "openai:gpt-4o-mini").set_entry_point("chat").build()


def test_a_node_may_have_each_key_of_an_agents_config() -> None:
    keys, closed = set(AgentConfig.model_fields), set(OWN_KEYS)
    assert NodeConfig.__optional_keys__ == keys - closed


def test_the_example_of_the_design_runs() -> None:
    async def run() -> None:
        host = ChatHost(chat=[call("look", what="a book"), final("A book.")], review=[final("Well said.")])
        graph = example().build(host.engine)
        result = await graph.execute("chat", asks("What is there?"))
        assert (result.success, result.final_message, result.iterations) == (True, "Well said.", 2)
        assert [(node.key, node.status) for node in result.execution_path] == [
            ("chat", "completed"),
            ("review", "completed"),
        ]
        assert all(node.start <= node.end for node in result.execution_path if node.end)
        roles = [message["role"] for message in result.final_state.context]
        assert roles == ["user", "assistant", "tool", "assistant", "assistant"]

    play(run)


def test_a_node_reads_its_prompt_the_history_and_all_of_the_context() -> None:
    async def run() -> None:
        host = ChatHost(chat=[call("look", what="it"), final("One.")], review=[final("Two.")])
        calls = {"role": "assistant", "content": "", "tool_calls": [{"id": "x", "type": "function"}]}
        history = [user("Before?"), calls, {"role": "tool", "tool_call_id": "x", "content": "old"}, assistant("Then.")]
        state = AgentState(history, [user("And now?")])
        result = await example().build(host.engine).execute("chat", state)
        assert host.heard("chat", 0) == [
            ("user", "Before?"),
            ("assistant", '{"type":"final","answer":"Then."}'),
            ("user", "And now?"),
        ]
        assert "You are review." in host.sent["review"][0][0]["content"]
        assert "You are chat." not in host.sent["review"][0][0]["content"]
        heard = host.heard("review")
        assert heard[:3] == host.heard("chat", 0)
        assert "saw it" in str(heard[3:])
        assert heard[-1][1].endswith('{"type":"final","answer":"One."}')
        assert result.final_state.history == [user("Before?"), assistant("Then.")]
        assert result.final_state.context[0] == user("And now?")
        assert result.final_state.context[-2:] == [assistant("One."), assistant("Two.")]

    play(run)


def test_it_is_an_ordinary_definition_that_files_can_hold() -> None:
    definition = example().build().to_definition()
    assert json.loads(json.dumps(definition)) == yaml.safe_load(yaml.safe_dump(definition)) == definition
    read = load_workflow(definition).definition
    assert (read.id, read.name, read.description) == ("my-agent", "my-agent", "AI 助手")
    assert (read.max_visits, read.max_iterations, read.timeout) == (50, 50, 60)
    assert [node.description for node in read.nodes] == ["对话节点", "审核节点"]
    assert "chat" in "".join(draw_mermaid(read, graph_of(read)))


def test_what_the_builder_gave_cannot_be_changed() -> None:
    builder = example()
    graph = builder.build()
    before = graph.to_definition()
    builder.add_llm_node("late", "", "m").add_edge("review", "late")
    graph.to_definition()["nodes"].clear()
    assert graph.to_definition() == before
    with pytest.raises(AttributeError):
        graph.nodes = ()  # type: ignore[misc]


def node(builder: AgentBuilder, *keys: str) -> AgentBuilder:
    for key in keys:
        builder.add_llm_node(key, "", "openai:gpt-4o-mini")
    return builder


FAULTS: dict[str, tuple[Callable[[AgentBuilder], Any], str]] = {
    "an unknown node in an edge": (
        lambda b: node(b, "chat").add_edge("chat", "chatt").set_entry_point("chat"),
        "edges/0/to: there is no node 'chatt'; did you mean chat?",
    ),
    "an unknown entry": (lambda b: node(b, "a").set_entry_point("b"), "entry/0: there is no node 'b'"),
    "an unknown end": (lambda b: node(b, "a").set_entry_point("a").set_end_points(["b"]), "ends/0: there is no node"),
    "an end that a plain edge leaves": (
        lambda b: (
            node(b, "a", "b", "c").add_edge("a", "b").add_edge("b", "c").set_entry_point("a").set_end_points(["b", "c"])
        ),
        "ends: no execution ends at 'b', as a plain edge leaves it",
    ),
    "a last node that is no end": (
        lambda b: node(b, "a", "b").add_conditional_edge("a", "b", "So?").set_entry_point("a").set_end_points(["a"]),
        "ends: no edge leaves 'b', and it is not an end point",
    ),
    "no entry": (lambda b: node(b, "a"), "entry: the graph has no entry point; name one by set_entry_point"),
    "a key twice": (lambda b: node(b, "a", "a").set_entry_point("a"), "another node is called 'a' already"),
    "an edge twice": (
        lambda b: node(b, "a", "b").add_edge("a", "b").add_edge("a", "b").set_entry_point("a"),
        "edges/1: this edge from 'a' to 'b' is given twice",
    ),
    "a node that nothing leads to": (
        lambda b: node(b, "a", "b").set_entry_point("a"),
        "no path of edges leads from an entry to 'b'",
    ),
    "no node": (lambda b: b.set_entry_point("a"), "nodes: must not be empty"),
    "a model that is no name": (
        lambda b: b.add_llm_node("a", "", object()).set_entry_point("a"),  # type: ignore[arg-type]
        "nodes/a/model: must be a name such as openai:gpt-4o-mini",
    ),
    "a text in place of tools": (
        lambda b: b.add_llm_node("a", "", "m", "echo").set_entry_point("a"),
        "nodes/a/tools: must be a list of codes, globs or objects",
    ),
    "a number in place of ends": (
        lambda b: node(b, "a").set_entry_point("a").set_end_points(5),  # type: ignore[arg-type]
        "ends",
    ),
    "a text in place of a time": (
        lambda b: node(b, "a").set_entry_point("a").set_timeout("1s"),  # type: ignore[arg-type]
        "timeout: must be a number",
    ),
    "a tool that is no name": (
        lambda b: b.add_llm_node("a", "", "m", [print]).set_entry_point("a"),  # type: ignore[list-item]
        "nodes/a/tools/0: must be the code of a tool",
    ),
    "a key of its own arguments": (
        lambda b: b.add_llm_node("a", "", "m", messages_json=[]).set_entry_point("a"),
        "nodes/a/messages_json: is given by the node's own arguments",
    ),
    "a number in place of a retry": (
        lambda b: b.add_llm_node("a", "", "m", retry=3).set_entry_point("a"),  # type: ignore[arg-type]
        "nodes/0/retry: must be an object (got 3)",
    ),
    "a list in place of an entry": (
        lambda b: node(b, "a").set_entry_point(["a"]),  # type: ignore[arg-type]
        "entry/0: must be a text (got ['a'])",
    ),
    "what cannot be copied": (
        lambda b: b.add_llm_node("a", "", "m", extra={"lock": Lock()}).set_entry_point("a"),
        "/nodes/0/config/extra/lock is of type lock",
    ),
    "a truth in place of a time": (
        lambda b: node(b, "a").set_entry_point("a").set_timeout(True),
        "timeout: must be a number (got True)",
    ),
    "no visit": (lambda b: node(b, "a").set_entry_point("a").set_max_iterations(0), "max_visits"),
}


@pytest.mark.parametrize(("make", "told"), FAULTS.values(), ids=FAULTS)
def test_a_fault_of_the_graph_is_an_error_when_it_is_built(make: Callable[[AgentBuilder], Any], told: str) -> None:
    builder = AgentBuilder("g")
    make(builder)
    with pytest.raises(DefinitionError) as raised:
        builder.build()
    assert told in str(raised.value)


def test_time_limit_of_a_kind_of_number_is_one() -> None:
    class Milliseconds(float):
        """As numpy's numbers are."""

    graph = node(AgentBuilder("g"), "a").set_entry_point("a").set_timeout(Milliseconds(500)).build()  # type: ignore[arg-type]
    assert graph.to_definition()["timeout"] == 0.5


def test_what_is_no_engine_no_state_and_no_message_is_told() -> None:
    with pytest.raises(DefinitionError, match="engine: must be an Engine"):
        node(AgentBuilder("g"), "a").set_entry_point("a").build("runs.db")  # type: ignore[call-overload]
    with pytest.raises(DefinitionError, match="name: the graph has no name"):
        node(AgentBuilder(None), "a").set_entry_point("a").build()  # type: ignore[arg-type]

    async def run() -> None:
        graph = node(AgentBuilder("g"), "a").set_entry_point("a").build(ChatHost().engine)
        for state, told in (
            ({"context": []}, "state: must be an AgentState"),
            (AgentState("Hi."), "state/history: must be a list of messages"),  # type: ignore[arg-type]
            (AgentState(context=["Hi."]), "state/context: must be a list of messages"),  # type: ignore[list-item]
        ):
            with pytest.raises(DefinitionError, match=told):
                graph.execute("a", state)  # type: ignore[arg-type]
        with pytest.raises(DefinitionError, match="entry: is no entry point"):
            graph.execute(None, asks())  # type: ignore[arg-type]

    play(run)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(DefinitionError) as raised:
        node(AgentBuilder("g"), "a", "a").add_edge("a", "b").build()
    assert [word in str(raised.value) for word in ("no entry point", "'a' already", "no node 'b'")] == [True] * 3


def test_what_only_a_host_knows_is_told_by_validate() -> None:
    host = ChatHost()
    graph = example().build(host.engine)
    assert graph.validate() == []
    other = AgentBuilder("g").add_llm_node("a", "", "m", ["looks"]).set_entry_point("a").build(host.engine)
    (problem,) = other.validate()
    assert "looks" in str(problem)
    with pytest.raises(DefinitionError, match="there is no such node; did you mean chat"):
        graph.get_node("chatt")
    assert graph.get_node("chat").system_prompt == "You are chat."


def test_an_execution_starts_at_the_entry_that_is_named_and_at_no_other_node() -> None:
    async def run() -> None:
        host = ChatHost(a=[final("A.")], b=[final("B.")], c=[final("C."), final("C.")])
        builder = AgentBuilder("g").set_entry_point("a").set_entry_point("b").set_end_points(["c"])
        for key in "abc":
            builder.add_llm_node(key, "", "m", system_prompt=f"You are {key}.")
        graph = builder.add_edge("a", "c").add_edge("b", "c").build(host.engine)
        for entry in "ab":
            result = await graph.execute(entry, asks())
            assert [node.key for node in result.execution_path] == [entry, "c"]
        with pytest.raises(DefinitionError, match="entry: is no entry point"):
            graph.execute("c", asks())
        with pytest.raises(DefinitionError, match="has no message to answer"):
            graph.execute("a", AgentState())

    play(run)


def test_a_model_judges_conditions_in_order_and_the_plain_edge_is_the_default() -> None:
    async def run(holds: str, taken: str) -> None:
        asked: list[str] = []

        def judge(messages: Any) -> Any:
            sentence = messages[-1]["content"].split("Statement: ")[1].splitlines()[0]
            asked.append(sentence)
            return final(sentence == holds)

        host = ChatHost(judge=judge, **{key: [final(f"{key}.")] for key in ("ask", "buy", "sell", "keep")})
        builder = AgentBuilder("g").set_entry_point("ask")
        for key in ("ask", "buy", "sell", "keep"):
            builder.add_llm_node(key, "", f"m:{key}", system_prompt=f"You are {key}.")
        builder.add_conditional_edge("ask", "buy", "It is cheap.").add_conditional_edge("ask", "sell", "It is dear.")
        graph = builder.add_edge("ask", "keep").build(host.engine)
        assert [edge.get("model") for edge in graph.to_definition()["edges"]] == ["m:ask", "m:ask", None]
        result = await graph.execute("ask", asks())
        assert ([node.key for node in result.execution_path], result.final_message) == (["ask", taken], f"{taken}.")
        assert asked == ["It is cheap.", "It is dear."][: 1 if taken == "buy" else 2]

    for holds, taken in (("It is cheap.", "buy"), ("It is dear.", "sell"), ("", "keep")):
        play(lambda holds=holds, taken=taken: run(holds, taken))


def test_an_end_point_with_a_condition_ends_the_execution_when_it_does_not_hold() -> None:
    async def run() -> None:
        judged = [final(True), final(False)]
        answers = {key: [final(f"{key} 1."), final(f"{key} 2.")] for key in ("write", "review")}
        host = ChatHost(judge=lambda messages: judged.pop(0), **answers)
        builder = AgentBuilder("g").set_entry_point("write").set_end_points(["review"])
        for key in answers:
            builder.add_llm_node(key, "", "m", system_prompt=f"You are {key}.")
        builder.add_edge("write", "review").add_conditional_edge("review", "write", "Another text is needed.")
        result = await builder.build(host.engine).execute("write", asks())
        assert [each.key for each in result.execution_path] == ["write", "review", "write", "review"]
        assert (result.success, result.final_message, judged) == (True, "review 2.", [])

    play(run)


def test_a_system_message_that_leads_the_context_goes_into_the_system_prompt() -> None:
    async def run() -> None:
        host = ChatHost(chat=[final("One.")], review=[final("Two.")])
        state = AgentState(context=[{"role": "system", "content": "Be brief."}, user("And now?")])
        result = await example().build(host.engine).execute("chat", state)
        assert ["Be brief." in sent[0]["content"] for (sent,) in (host.sent["chat"], host.sent["review"])] == [True] * 2
        assert result.final_state.context[0] == {"role": "system", "content": "Be brief."}
        late = AgentState(context=[user("And now?"), {"role": "system", "content": "Be brief."}])
        failed = await example().build(host.engine).execute("chat", late)
        assert "a system message may only come first" in str(failed.error)

    play(run)


def test_the_command_line_replaces_the_models_of_nodes_and_of_conditions(cli: Any, write: Any) -> None:
    write("all.json", {"flow/a.1": [final("A.")], "flow/a%3Eb.1": [final(True)], "flow/b.1": [final("B.")]})
    builder = AgentBuilder("g").set_entry_point("a").add_conditional_edge("a", "b", "It is so.")
    builder.add_llm_node("a", "", "openai:none").add_llm_node("b", "", "openai:none")
    write("g.json", builder.build().to_definition())
    ran = cli(
        "run", "g.json", "--input", f"context={json.dumps([user('Go.')])}", "--model", "scripted:all.json", "--json"
    )
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["path"] == ["a", "b"]


def test_the_command_line_runs_the_saved_graph_in_the_same_way(cli: Any, write: Any) -> None:
    builder = AgentBuilder("talk").set_entry_point("a").add_edge("a", "b")
    for key in "ab":
        write(f"{key}.json", [json.dumps(final(f"{key} is done"))])
        builder.add_llm_node(key, "", f"scripted:{key}.json", system_prompt=f"You are {key}.")
    write("talk.json", builder.build().to_definition())
    ran = cli("run", "talk.json", "--input", f"context={json.dumps([user('Go.')])}", "--json")
    assert ran.code == 0, ran.err
    output = json.loads(ran.out)
    messages = output["outputs"]["b"]["messages_json"]
    assert messages == [user("Go."), assistant("a is done"), assistant("b is done")]
    assert cli("validate", "talk.json").code == 0
    assert "scripted:a.json" in cli("graph", "talk.json").out


def test_the_command_line_tells_of_a_limit_that_was_reached_and_shows_added_messages(cli: Any, write: Any) -> None:
    write("a.json", [json.dumps(final("A."))])
    builder = AgentBuilder("g").set_max_iterations(2).set_entry_point("a").add_edge("a", "b").add_edge("b", "a")
    builder.add_llm_node("a", "", "scripted:a.json").add_llm_node("b", "", "scripted:a.json")
    write("g.json", builder.build().to_definition())
    ran = cli("run", "g.json", "--input", f"context={json.dumps([user('Go.')])}")
    assert (ran.code, "max_visits allows" in ran.out + ran.err) == (4, True)

    async def run() -> None:
        engine = Engine.from_config()
        begun = engine.begin(builder.build().to_definition(), external={"context": [user("Go.")]}, run_id="told")
        engine.add_message(begun, "In German.", by="ann")
        await engine.resume(begun)
        await engine.close()

    play(run)
    shown = [line.split(maxsplit=3)[2:] for line in cli("show", "told").out.splitlines()]
    for kind in ("message", "received"):
        assert [kind, "user by ann: In German."] in shown


def test_graphs_whose_names_have_no_latin_letters_have_ids_of_their_own() -> None:
    def id_of(name: str) -> str:
        made = AgentBuilder(name).add_llm_node("a", "A.", "m", [], "").set_entry_point("a").build()
        return str(made.to_definition()["id"])

    names = ["订单助手", "客户助手", "订单 A", "客户 A", "Büro", "Bro", "…", "!!"]
    ids = [id_of(name) for name in names]
    assert len(set(ids[:6])) == 6
    assert ids == [id_of(name) for name in names]
    assert all(re.fullmatch("[A-Za-z0-9_-]+", each) for each in ids)
    assert [id_of(name) for name in ("my-agent", "my agent", "Bro")] == ["my-agent", "my-agent", "Bro"]

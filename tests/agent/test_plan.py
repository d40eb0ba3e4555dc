"""Plan mode: a plan, a person's word on it, its steps in order through judge and budgets, the summary."""

import asyncio
from typing import Any

import orjson
import pytest

from agent_core import Approve, Deny, Edit, MemoryJournal, agent_tool, replay, run_agent, verify
from agent_core.errors import DecisionError, DefinitionError
from agent_core.loop.references import GRAMMARS, fill_references, find_lookalikes
from agent_core.loop.run_state import RunState
from agent_core.models import ScriptedModel
from agent_core.protocol.json_dialect import JsonDialect
from agent_core.protocol.plan_dialect import PlanDialect
from agent_core.run.prepare import prepare_agent
from agent_core.words.catalogue import ENGLISH, words_of
from utools import Tool, ToolRegistry, ToolResult
from utools.builtin.calculator import calculator
from utools.builtin.echo import echo
from utools.schema.value_shape import shape_of

FIND = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}
ADD = {
    "type": "object",
    "properties": {"numbers": {"type": "array", "items": {"type": "number"}}},
    "required": ["numbers"],
    "additionalProperties": False,
}
SEND = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
    "required": ["to", "text"],
    "additionalProperties": False,
}


class World:
    """Three tools, and what was done with them."""

    def __init__(self, *, broken: int = 0) -> None:
        self.calls: list[tuple[str, Any]] = []
        self._broken = broken
        self.registry = ToolRegistry(
            [
                Tool("find", "Finds.", FIND, self._find, effect="read"),
                Tool("add", "Adds.", ADD, self._add, effect="read"),
                Tool("send", "Sends.", SEND, self._send, effect="write"),
            ]
        )

    def _find(self, args: Any, context: Any) -> Any:
        self.calls.append(("find", args))
        if self._broken:
            self._broken -= 1
            return ToolResult(False, None, "the index is closed")
        return {"total": 2, "items": [{"name": "Ada"}, {"name": "Bo"}]}

    def _add(self, args: Any, context: Any) -> Any:
        self.calls.append(("add", args))
        return sum(args["numbers"])

    def _send(self, args: Any, context: Any) -> Any:
        self.calls.append(("send", args))
        return "sent"


def step(n: int, tool: str, **parameters: Any) -> dict[str, Any]:
    return {"step": n, "description": f"Use {tool}", "tool": tool, "parameters": parameters}


def plan_of(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "plan", "steps": list(steps)}


FINAL = {"type": "final", "answer": "Done."}
PLAN = plan_of(
    step(1, "find", q="people"),
    step(2, "add", numbers=["{{steps.1.total}}", 40]),
    step(3, "send", to="{{steps.1.items.0.name}}", text="It is {{ steps.2 }}, {{steps.1.items.1.name}}."),
)


def run(world: World, replies: list[Any], *, journal: Any = None, decisions: Any = None, **config: Any) -> Any:
    given = {
        "model": "scripted",
        "mode": "plan",
        "max_steps": 5,
        "allowed_tools": ["find", "add", "send"],
        "prompt": "Tell Ada the sum.",
        **config,
    }
    return asyncio.run(
        run_agent(
            given,
            registry=world.registry,
            model=ScriptedModel(replies),
            journal=journal,
            run_id="r",
            decisions=decisions,
        )
    )


def statuses(output: Any) -> list[str]:
    return [each["status"] for each in output.plan]


def test_the_steps_run_in_order_with_what_earlier_ones_gave() -> None:
    world, journal = World(), MemoryJournal()
    output = run(world, [PLAN, FINAL], journal=journal)
    assert (output.finish_reason, output.final_answer) == ("final", "Done.")
    assert world.calls == [
        ("find", {"q": "people"}),
        ("add", {"numbers": [2, 40]}),
        ("send", {"to": "Ada", "text": "It is 42, Bo."}),
    ]
    assert statuses(output) == ["done", "done", "done"]
    assert [entry["action"] and entry["action"]["tool"] for entry in output.trace] == ["find", "add", "send", None]
    assert output.used_tools["send"]["count"] == 1
    assert output.usage["tool_calls"] == 3
    assert verify(journal, run_id="r").ok
    assert replay(journal, run_id="r").identical


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_model_reads_the_plan_prompt_and_then_what_the_steps_gave(language: str) -> None:
    seen: list[Any] = []

    def answer(messages: Any) -> str:
        seen.append(messages)
        return orjson.dumps(PLAN if len(seen) == 1 else FINAL).decode()

    config = {"model": "m", "mode": "plan", "max_steps": 3, "allowed_tools": ["find", "add", "send"]}
    given = {**config, "prompt": "Tell Ada.", "language": language}
    asyncio.run(run_agent(given, registry=World().registry, model=ScriptedModel(answer)))
    assert '{"type":"plan"' in seen[0][0]["content"]
    assert "find" in seen[0][0]["content"]
    assert seen[1][-2]["content"].startswith('{"type":"plan"')
    assert "Ada" in seen[1][-1]["content"]
    assert "42" in seen[1][-1]["content"]
    assert ("步骤 2" if language == "zh" else "Step 2") in seen[1][-1]["content"]


@pytest.mark.parametrize(
    ("wrong", "reason", "said"),
    [
        (plan_of(step(1, "find", q="x"), step(2, "shell", cmd="ls")), "policy_denied", "Step 2:"),
        (plan_of(step(1, "find", q="x"), step(2, "add", numbers="7")), "invalid_action", "/numbers"),
        (plan_of(step(1, "find", q="x"), step(2, "add", numbers=["{{steps.1}}"], more=1)), "invalid_action", "more"),
        (plan_of(step(1, "add", numbers=["{{steps.2}}"]), step(2, "find", q="x")), "invalid_action", "step 2"),
        (plan_of(*[step(n, "find", q="x") for n in range(1, 5)]), "max_tool_calls", "3 calls are left"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_told_before_its_first_step(wrong: Any, reason: str, said: str) -> None:
    world = World()
    output = run(world, [wrong, FINAL], max_tool_calls=3)
    assert output.finish_reason == "final"
    assert world.calls == []
    assert said in output.trace[0]["error"]
    ended = run(World(), [wrong, wrong], max_tool_calls=3)
    assert (ended.finish_reason, ended.final_answer) == (reason, None)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("Sure!", "The reply holds no JSON object. Send exactly one JSON object, a plan or a final"),
        (orjson.dumps({"steps": []}).decode(), '"type" is missing. Set it to "plan" or "final".'),
        ('{"type":"steps"}', '"type" is "steps". It must be "plan", or "final" to answer.'),
        ('{"type":"final","answer":"x","tool":"find"}', 'To plan send "type" and "steps"'),
    ],
)
def test_what_is_said_of_an_unreadable_reply_asks_for_a_plan(reply: str, message: str) -> None:
    journal = MemoryJournal()
    output = run(World(), [reply, FINAL], journal=journal)
    assert message in output.trace[0]["error"]
    assert replay(journal, run_id="r").identical
    assert "action" in run(World(), [reply, FINAL], mode="react").trace[0]["error"]


def test_a_run_recorded_before_plans_had_texts_of_their_own_keeps_those_it_had() -> None:
    journal = MemoryJournal()
    run(World(), [FINAL], journal=journal)
    started = journal.load("r")["agent"][0].record()
    assert words_of(started).no_type == ENGLISH.in_a_plan["no_type"]
    earlier = {**started, "rules": {**started["rules"], "texts": 4}}
    assert words_of(earlier) is ENGLISH
    assert [type(RunState(each).dialect) for each in (started, earlier)] == [PlanDialect, JsonDialect]  # type: ignore[arg-type]


def opening(*messages: Any, **config: Any) -> list[tuple[str, str]]:
    """What the model is sent first, after the system message, as (role, text)."""
    seen: list[Any] = []

    def answer(sent: Any) -> str:
        seen.append(sent)
        return orjson.dumps(FINAL).decode()

    given = {"model": "m", "mode": "plan", "max_steps": 3, "allowed_tools": ["find", "add", "send"], **config}
    history = {"messages_json": list(messages), "prompt": "And now?"}
    asyncio.run(run_agent({**given, **history}, registry=World().registry, model=ScriptedModel(answer)))
    return [(each["role"], each["content"]) for each in seen[0][1:]]


@pytest.mark.parametrize(("language", "says"), [("en", "The request was: Tell Ada"), ("zh", "请求是：Tell Ada")])
def test_the_next_turn_sees_the_last_one_as_a_plan_and_what_it_gave(language: str, says: str) -> None:
    turn = run(World(), [PLAN, FINAL])
    _, plan, report, answer, question = opening(*turn.messages_json, language=language)
    told = orjson.loads(plan[1])
    assert [(each["step"], each["tool"], each["description"]) for each in told["steps"]] == [
        (1, "find", "Use find"),
        (2, "add", "Use add"),
        (3, "send", "Use send"),
    ]
    assert told["steps"][1]["parameters"] == {"numbers": [2, 40]}
    assert "42" in report[1]
    assert says in report[1]
    assert (answer, question) == (("assistant", '{"type":"final","answer":"Done."}'), ("user", "And now?"))


def test_calls_side_by_side_and_one_without_an_answer_are_steps_too() -> None:
    def call(name: str, tool: str) -> Any:
        return {"id": name, "type": "function", "function": {"name": tool, "arguments": '{"q": "x"}'}}

    batch = {"role": "assistant", "content": "", "tool_calls": [call("1", "find"), call("2", "add")]}
    said = {"role": "tool", "tool_call_id": "2", "name": "add", "content": "7"}
    _, plan, report = opening({"role": "user", "content": "Go."}, batch, said)
    assert [each["tool"] for each in orjson.loads(plan[1])["steps"]] == ["find", "add"]
    assert report[1].splitlines()[0] == "Step 1, find (find): no answer was recorded"
    assert report[1].endswith("Step 2, add (add): 7\n\nAnd now?")


def test_every_wrong_step_is_named() -> None:
    output = run(World(), [plan_of(step(1, "shell"), step(2, "add", numbers="7")), FINAL])
    assert "Step 1:" in output.trace[0]["error"]
    assert "Step 2:" in output.trace[0]["error"]


def test_an_action_is_no_plan_and_a_final_needs_none() -> None:
    action = {"type": "action", "tool": "find", "args": {"q": "x"}}
    output = run(World(), [action, {"type": "final", "answer": "Hello."}])
    assert output.final_answer == "Hello."
    assert "A plan is asked for here" in output.trace[0]["error"]
    after = run(World(), [PLAN, action, FINAL])
    assert after.final_answer == "Done."
    assert 'must be "final"' in after.trace[-2]["error"]


class TestFailures:
    def test_abort_ends_the_run_with_the_failure(self) -> None:
        world = World(broken=1)
        output = run(world, [PLAN])
        assert (output.finish_reason, output.error["message"]) == ("tool_error", "the index is closed")
        assert statuses(output) == ["failed", "pending", "pending"]
        assert [tool for tool, _ in world.calls] == ["find"]

    def test_skip_goes_on_without_what_needed_it(self) -> None:
        world = World(broken=1)
        plan = plan_of(*PLAN["steps"][:2], step(3, "add", numbers=[1]))
        output = run(world, [plan, FINAL], plan={"on_failure": "skip"})
        assert output.final_answer == "Done."
        assert statuses(output) == ["failed", "skipped", "done"]
        assert [tool for tool, _ in world.calls] == ["find", "add"]

    def test_replan_asks_for_a_new_plan_and_tells_what_was_done(self) -> None:
        world, journal = World(broken=1), MemoryJournal()
        first = plan_of(step(1, "add", numbers=[1, 2]), step(2, "find", q="x"))
        second = plan_of(step(1, "find", q="y"))
        output = run(world, [first, second, FINAL], plan={"on_failure": "replan"}, journal=journal)
        assert output.final_answer == "Done."
        assert statuses(output) == ["done"]
        assert [tool for tool, _ in world.calls] == ["add", "find", "find"]
        assert replay(journal, run_id="r").identical

    def test_replan_is_bound_by_max_repairs(self) -> None:
        world = World(broken=9)
        failing = plan_of(step(1, "find", q="x"))
        output = run(world, [failing] * 4, plan={"on_failure": "replan"})
        assert output.finish_reason == "tool_error"
        assert len(world.calls) == 2


class TestConfirmation:
    def waiting(self, journal: MemoryJournal, world: World) -> Any:
        output = run(world, [PLAN, FINAL], plan={"confirm": True}, journal=journal)
        assert output.finish_reason == "awaiting_approval"
        assert output.waiting[0]["tool"] == "plan"
        assert output.waiting[0]["args"]["steps"] == PLAN["steps"]
        assert world.calls == []
        return output.waiting[0]

    def decide(self, decision: Any, replies: list[Any]) -> tuple[Any, World, MemoryJournal]:
        world, journal = World(), MemoryJournal()
        waits = self.waiting(journal, world)
        decisions = {(waits["strand"], waits["n"]): decision}
        output = run(world, replies, plan={"confirm": True}, journal=journal, decisions=decisions)
        return output, world, journal

    def test_approved_it_runs(self) -> None:
        output, world, journal = self.decide(Approve(), [PLAN, FINAL])
        assert output.final_answer == "Done."
        assert len(world.calls) == 3
        assert replay(journal, run_id="r").identical

    def test_an_edited_plan_runs_in_its_place(self) -> None:
        edited = {"steps": [step(1, "add", numbers=[3, 4])]}
        output, world, journal = self.decide(Edit(edited), [PLAN, FINAL])
        assert output.final_answer == "Done."
        assert world.calls == [("add", {"numbers": [3, 4]})]
        assert replay(journal, run_id="r").identical

    @pytest.mark.parametrize(
        ("edited", "said"),
        [
            ({"steps": [step(1, "shell", cmd="rm")]}, "shell"),
            ({"steps": [step(1, "add", numbers="3")]}, "/numbers"),
            ({"steps": []}, "/steps is an empty list"),
            ({"stages": []}, "/steps is missing"),
        ],
    )
    def test_an_edited_plan_is_judged_and_waits_on(self, edited: Any, said: str) -> None:
        with pytest.raises(DecisionError, match=said):
            self.decide(Edit(edited), [PLAN, FINAL])

    def test_denied_the_model_is_told(self) -> None:
        output, world, _ = self.decide(Deny("too much"), [PLAN, {"type": "final", "answer": "As you wish."}])
        assert output.final_answer == "As you wish."
        assert "too much" in output.trace[0]["error"]
        assert world.calls == []


TEXTS = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "either": {"type": ["string", "integer"]},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"note": {"type": "string"}}}},
        "any": {},
    },
}


@pytest.mark.parametrize(
    ("parameters", "filled"),
    [
        ({"text": "{{steps.1.status}}"}, {"text": "200"}),
        ({"text": "{{steps.1.ok}}"}, {"text": "true"}),
        ({"text": "{{steps.1.body}}"}, {"text": '{"a":1}'}),
        ({"text": "{{steps.1.name}}"}, {"text": "Ada"}),
        ({"count": "{{steps.1.status}}"}, {"count": 200}),
        ({"either": "{{steps.1.status}}"}, {"either": 200}),
        ({"any": "{{steps.1.status}}"}, {"any": 200}),
        ({"unknown": "{{steps.1.status}}"}, {"unknown": 200}),
        ({"rows": [{"note": "{{steps.1.status}}", "n": "{{steps.1.status}}"}]}, {"rows": [{"note": "200", "n": 200}]}),
    ],
    ids=str,
)
def test_a_value_is_written_as_a_text_where_only_a_text_may_stand(parameters: Any, filled: Any) -> None:
    outputs = {1: {"status": 200, "ok": True, "body": {"a": 1}, "name": "Ada"}}
    assert fill_references(parameters, outputs, GRAMMARS[3], ENGLISH, shape_of(TEXTS)) == filled


async def test_a_number_goes_into_a_text_parameter_of_the_next_step() -> None:
    registry = ToolRegistry([calculator(), echo()])
    steps = [
        {"step": 1, "description": "Add", "tool": "calculator", "parameters": {"expression": "1 + 1"}},
        {"step": 2, "description": "Say", "tool": "echo", "parameters": {"text": "{{steps.1}}"}},
    ]
    plan = orjson.dumps({"type": "plan", "steps": steps}).decode()
    config = {"model": "m", "max_steps": 4, "mode": "plan", "allowed_tools": ["calculator", "echo"], "prompt": "Go."}
    output = await run_agent(config, registry=registry, model=ScriptedModel([plan, '{"type":"final","answer":"2"}']))
    assert (output.finish_reason, output.trace[-2]["action"]["args"]) == ("final", {"text": "2"})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{steps.1}}", {"total": 2, "items": [{"name": "Ada"}], "a.b": "c"}),
        ("{{ steps.1.total }}", 2),
        ("{{steps[1].total}}", 2),
        ("{{steps.1.items.0.name}}", "Ada"),
        ("{{steps.1.items[0].name}}", "Ada"),
        ("""{{steps.1["items"][0]['name']}}""", "Ada"),
        ('{{steps.1["a.b"]}}', "c"),
        ("{{steps.1.total}} of {{steps.1.items[0].name}}, {{name}}", "2 of Ada, {{name}}"),
    ],
)
def test_a_reference_leads_to_a_value(text: str, value: Any) -> None:
    outputs = {1: {"total": 2, "items": [{"name": "Ada"}], "a.b": "c"}}
    assert fill_references({"q": text}, outputs, GRAMMARS[2], ENGLISH) == {"q": value}
    assert list(find_lookalikes({"q": [text]}, GRAMMARS[2])) == []


@pytest.mark.parametrize(
    "text",
    ["{{steps.one}}", "{{step.1}}", "{{steps}}", "{{steps.1.name | upper}}", "{{steps.1[}}", "{{steps[1.total}}"],
)
def test_what_only_looks_like_a_reference_is_told_and_never_sent(text: str) -> None:
    world, journal = World(), MemoryJournal()
    plan = plan_of(step(1, "find", q="x"), step(2, "send", to="Ada", text=f"It is {text}."))
    output = run(world, [plan, FINAL], journal=journal)
    assert f"/text has {text}, which is no reference to an earlier step" in output.trace[0]["error"]
    assert world.calls == []
    assert replay(journal, run_id="r").identical


def test_a_run_recorded_under_the_first_rules_for_plans_reads_references_as_it_did() -> None:
    assert list(find_lookalikes({"q": "{{steps.one}}"}, GRAMMARS[1])) == []
    outputs = {1: {"items[0]": "Ada", "items": ["Bo"]}}
    assert fill_references({"q": "{{steps.1.items[0]}}"}, outputs, GRAMMARS[1], ENGLISH) == {"q": "Ada"}
    journal = MemoryJournal()
    run(World(), [FINAL], journal=journal)
    started = journal.load("r")["agent"][0].record()
    named = {key: value for key, value in started["rules"].items() if key != "plans"}
    assert RunState({**started, "rules": named}).references is GRAMMARS[1]  # type: ignore[arg-type]


def test_a_step_that_needs_approval_waits_in_its_place() -> None:
    world, journal = World(), MemoryJournal()
    tools = ["find", "add", {"tool": "send", "approval": "always"}]
    output = run(world, [PLAN, FINAL], journal=journal, allowed_tools=tools)
    assert output.finish_reason == "awaiting_approval"
    assert output.waiting[0]["args"] == {"to": "Ada", "text": "It is 42, Bo."}
    assert statuses(output) == ["done", "done", "running"]
    waits = output.waiting[0]
    edit = {(waits["strand"], waits["n"]): Edit({"to": "Bo", "text": "42"})}
    output = run(world, [PLAN, FINAL], journal=journal, allowed_tools=tools, decisions=edit)
    assert output.final_answer == "Done."
    assert world.calls[-1] == ("send", {"to": "Bo", "text": "42"})
    assert replay(journal, run_id="r").identical


def test_a_value_is_known_to_come_from_the_step_that_gave_it() -> None:
    world = World()
    tools = ["find", "add", {"tool": "send", "provenance": {"to": "find"}}]
    output = run(world, [PLAN, FINAL], allowed_tools=tools)
    assert output.final_answer == "Done."
    invented = plan_of(step(1, "find", q="x"), step(2, "send", to="eve@example.com", text="hi"))
    output = run(World(), [invented, invented], allowed_tools=tools)
    assert output.finish_reason == "policy_denied"


@pytest.mark.parametrize("limit", [{"max_tool_calls": 3}, {"max_steps": 2}])
def test_a_plan_that_uses_up_its_limit_is_summed_up(limit: dict[str, int]) -> None:
    assert run(World(), [PLAN, FINAL], **limit).final_answer == "Done."


def test_a_plan_in_the_last_step_is_not_begun() -> None:
    world = World()
    output = run(world, [PLAN], max_steps=1)
    assert output.finish_reason == "max_steps"
    assert world.calls == []


def test_calls_of_a_nested_run_count_against_those_of_later_steps() -> None:
    plan = plan_of(step(1, "agent_core", prompt="Help."), step(2, "find", q="a"), step(3, "find", q="b"))
    helper = {"model": "m", "max_steps": 5, "allowed_tools": ["find"]}
    find = {"type": "action", "tool": "find", "args": {"q": "x"}}
    script: Any = {"agent": [plan, FINAL], "agent/agent_core.5": [find, find, FINAL]}
    world, journal = World(), MemoryJournal()
    world.registry.register(agent_tool(world.registry))
    tools = [{"tool": "agent_core", "preset": helper}, "find"]
    output = run(world, script, journal=journal, allowed_tools=tools, max_tool_calls=3)
    assert (output.finish_reason, output.usage["tool_calls"], len(world.calls)) == ("max_tool_calls", 3, 2)
    assert statuses(output) == ["done", "pending", "pending"]
    assert replay(journal, run_id="r").identical


def test_it_resumes_wherever_its_process_died() -> None:
    world, whole = World(), MemoryJournal()
    expected = run(world, [PLAN, FINAL], journal=whole)
    rows = [row for strand in whole.load("r").values() for row in strand]
    for count in range(1, len(rows)):
        journal, again = MemoryJournal(), World()
        journal.append("r", rows[:count])
        output = run(again, [PLAN, FINAL], journal=journal)
        asked = [row.record() for row in rows[:count]][-1]
        if asked["kind"] == "asked" and asked.get("tool") == "send":
            assert output.finish_reason == "in_doubt"
            continue
        assert (output.finish_reason, output.final_answer) == ("final", expected.final_answer)
        assert output.usage["tool_calls"] == 3
        assert statuses(output) == ["done"] * 3
        answered = sum(row.record().get("reply") == "did" for row in rows[:count])
        assert len(again.calls) == 3 - answered


def test_another_policy_says_which_steps_it_would_have_cut() -> None:
    journal = MemoryJournal()
    run(World(), [PLAN, FINAL], journal=journal)
    same = replay(journal, run_id="r", policy={"max_tool_calls": 9})
    assert same.identical
    other = replay(journal, run_id="r", policy={"deny_tools": ["send"]})
    assert not other.identical
    assert [(each["tool"], each["now"]) for each in other.decisions if each["recorded"] != each["now"]] == [
        ("send", "refuse")
    ]


@pytest.mark.parametrize(
    ("config", "where"),
    [
        ({"protocol": "tools"}, "protocol"),
        ({"mode": "react", "plan": {"confirm": True}}, "plan"),
        ({"prompts": {"plan": "Plan it."}}, "prompts/plan"),
        ({"prompts": {"summary": "Now: $nothing"}}, "prompts/summary"),
    ],
)
def test_a_config_that_cannot_plan_is_refused(config: dict[str, Any], where: str) -> None:
    with pytest.raises(DefinitionError, match=where):
        run(World(), [PLAN, FINAL], **config)


def test_a_tool_called_plan_cannot_be_told_from_the_plan() -> None:
    registry = ToolRegistry([Tool("plan", "Plans.", FIND, lambda args, context: None)])
    given = {"model": "m", "mode": "plan", "max_steps": 2, "allowed_tools": ["plan"], "prompt": "x"}
    with pytest.raises(DefinitionError, match="rename the tool"):
        prepare_agent("r", "agent", given, {}, registry=registry, at="2026-01-01T00:00:00.000Z")


def test_own_prompts_are_used() -> None:
    seen: list[Any] = []

    def answer(messages: Any) -> str:
        seen.append(messages)
        return orjson.dumps(PLAN if len(seen) == 1 else FINAL).decode()

    prompts = {"plan": "PLAN $user_message WITH $tool_definitions", "summary": "SUM UP $steps FOR $user_message"}
    config = {"model": "m", "mode": "plan", "max_steps": 3, "allowed_tools": ["find", "add", "send"]}
    given = {**config, "prompt": "Tell Ada.", "prompts": prompts}
    asyncio.run(run_agent(given, registry=World().registry, model=ScriptedModel(answer)))
    assert seen[0][0]["content"].startswith("PLAN Tell Ada. WITH")
    assert seen[1][-1]["content"].startswith("SUM UP Step 1")
    assert seen[1][-1]["content"].endswith("FOR Tell Ada.")


def test_its_events_tell_the_plan_and_each_step() -> None:
    events: list[Any] = []
    given = {"model": "m", "mode": "plan", "max_steps": 3, "allowed_tools": ["find", "add", "send"], "prompt": "Go."}
    model = ScriptedModel([PLAN, FINAL])
    asyncio.run(run_agent(given, registry=World().registry, model=model, on_event=events.append))
    told = [(each["plan_step"], each["status"]) for each in events if each["event"] == "plan_step"]
    assert told == [(n, status) for n in (1, 2, 3) for status in ("running", "done")]
    assert next(each["steps"] for each in events if each["event"] == "plan") == PLAN["steps"]


def test_its_events_say_why_a_step_failed_or_was_skipped() -> None:
    events: list[Any] = []
    given = {"model": "m", "mode": "plan", "max_steps": 3, "allowed_tools": ["find", "add", "send"], "prompt": "Go."}
    model = ScriptedModel([PLAN, FINAL])
    config = {**given, "plan": {"on_failure": "skip"}}
    asyncio.run(run_agent(config, registry=World(broken=1).registry, model=model, on_event=events.append))
    why = [(each["plan_step"], each["status"], each.get("message")) for each in events if each["event"] == "plan_step"]
    assert why == [
        (1, "running", None),
        (1, "failed", "the index is closed"),
        (2, "skipped", "{{steps.1.total}}: step 1 gave nothing."),
        (3, "skipped", "{{steps.1.items.0.name}}: step 1 gave nothing."),
    ]

"""run_agent: the loop with a journal, a model and real tools."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_core import (
    AgentConfig,
    Approve,
    DecisionError,
    DefinitionError,
    Deny,
    Edit,
    Fail,
    JsonlJournal,
    MemoryJournal,
    Retry,
    Skip,
    SqliteJournal,
    agent_tool,
    replay,
    run_agent,
    run_agent_sync,
    verify,
)
from agent_core.journal.control import decision_rows
from agent_core.journal.operations import Slot
from agent_core.journal.record import genesis
from agent_core.models import Completion, Delta, ModelError, ModelInfo, Question, ScriptedModel
from agent_core.run.secrets import Secrets
from agent_core.run.tool_policies import tool_policies
from support.by_hand import Q, action, final
from utools import Tool, ToolContext, ToolRegistry, ToolResult, default_registry
from utools.problems import Problem, gathering

CONFIG = {"model": "scripted", "max_steps": 5, "allowed_tools": ["look"], "prompt": "Go."}


class Calls(list[dict[str, Any]]):
    """A tool that counts its calls: `registry` holds it as `look`."""

    def __init__(self, result: Callable[[dict[str, Any], ToolContext], Any] | None = None, **options: Any) -> None:
        super().__init__()
        self.result = result or (lambda args, context: "seen")
        self.keys: list[str] = []
        self.registry = ToolRegistry([Tool("look", "Looks.", Q, self.execute, **{"effect": "read"} | options)])

    async def execute(self, args: dict[str, Any], context: ToolContext) -> Any:
        self.append(args)
        self.keys.append(context.idempotency_key)
        value = self.result(args, context)
        return await value if asyncio.iscoroutine(value) else value


async def test_a_run_ends_verified_and_replayed(tmp_path: Path) -> None:
    for journal in (MemoryJournal(), JsonlJournal(tmp_path / "run.jsonl"), SqliteJournal(tmp_path / "runs.db")):
        output = await run_agent(
            CONFIG, registry=Calls().registry, model=ScriptedModel([action(), final()]), journal=journal
        )
        assert output.final_answer == "done"
        assert verify(journal, run_id=output.run_id).ok
        emitted = {"head": output.journal["head"], "count": output.journal["count"]}
        assert verify(journal, run_id=output.run_id, **emitted).ok
        assert replay(journal, run_id=output.run_id).identical
        journal.close()


def test_the_sync_twin_gives_the_same() -> None:
    output = run_agent_sync(CONFIG, registry=Calls().registry, model=ScriptedModel([final()]))
    assert (output.finish_reason, output.model_dump()["final_answer"]) == ("final", "done")


async def test_the_sync_twin_works_inside_a_running_loop() -> None:
    assert run_agent_sync(CONFIG, registry=Calls().registry, model=ScriptedModel([final()])).finish_reason == "final"


async def test_a_finished_run_gives_its_output_again_without_acting(tmp_path: Path) -> None:
    journal, calls = JsonlJournal(tmp_path / "run.jsonl"), Calls()
    first = await run_agent(CONFIG, registry=calls.registry, model=ScriptedModel([action(), final()]), journal=journal)
    again = await run_agent(CONFIG, registry=calls.registry, model=ScriptedModel([]), journal=journal)
    assert again == first
    assert len(calls) == 1


async def test_a_run_goes_on_only_with_the_config_it_began_with() -> None:
    journal = MemoryJournal()
    await run_agent(CONFIG, registry=Calls().registry, model=ScriptedModel([final()]), journal=journal, run_id="r1")
    with pytest.raises(DefinitionError, match="config/max_steps: run 'r1' began with another config"):
        await run_agent(
            {**CONFIG, "max_steps": 6}, registry=Calls().registry, model=ScriptedModel([]), journal=journal, run_id="r1"
        )


BAD_CONFIGS: list[tuple[dict[str, Any], str]] = [
    ({"max_steps": "many"}, "config/max_steps"),
    ({"temprature": 1}, "config/temprature: unknown key"),
    ({"allowed_tools": ["lok"]}, "did you mean look"),
    ({"allowed_tools": ["x.*"]}, "no tool fits this pattern"),
    ({"allowed_tools": ["look", "look"]}, "listed twice"),
    ({"allowed_tools": [{"tool": "look", "preset": {"q": 7}}]}, "config/allowed_tools/0/preset/q"),
    ({"allowed_tools": [{"tool": "look", "preset": {"zz": 7}}]}, "config/allowed_tools/0/preset/zz"),
    ({"allowed_tools": [{"tool": "look", "args": {"type": "wrong"}}]}, "config/allowed_tools/0/args"),
    (
        {"allowed_tools": [{"tool": "look", "args": {"q": {"maxLength": 1}}}]},
        "args/q: is no keyword of JSON Schema, and",
    ),
    ({"allowed_tools": [{"tool": "look", "args": {"pattern": "a"}}]}, "args/pattern: is a keyword here that narrows"),
    (
        {"allowed_tools": [{"tool": "look", "args": {"properties": {"q": {"maxlength": 1}}}}]},
        "args/properties/q/maxlength: is no keyword of JSON Schema; did you mean maxLength",
    ),
    ({"allowed_tools": [{"tool": "look", "provenance": {"zz": "trusted"}}]}, "config/allowed_tools/0/provenance/zz"),
    ({"allowed_tools": [{"tool": "look", "rate_limit": "1/day"}]}, "config/allowed_tools/0/rate_limit: write a count"),
    ({"mode": "plan", "protocol": "tools"}, "a plan is written as text"),
    ({"protocol": "soap"}, "config/protocol"),
    ({"tool_choice": "required"}, "belongs to native function calling"),
    ({"fallback_models": [""]}, "config/fallback_models/0"),
    ({"prompt": None}, "give messages_json or prompt"),
    ({"prompt": "\ud800"}, "/prompt holds a lone surrogate"),
    ({"temperature": float("nan")}, "/temperature is not a finite number"),
    ({"allowed_tools": [{"tool": "look", "preset": {"q": 2**70}}]}, "integer outside"),
    ({"allowed_tools": {"look"}}, "/allowed_tools is of type set"),
    ({"messages_json": "[{]"}, "not a JSON array"),
    (
        {"messages_json": [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]},
        "config/messages_json/1",
    ),
    ({"messages_json": [{"role": "robot", "content": "a"}]}, "config/messages_json/0/role"),
    ({"messages_json": [{"role": "user", "content": 5}]}, "config/messages_json/0/content"),
    ({"messages_json": [{"role": "user", "content": "a", "id": 1}]}, "config/messages_json/0/id"),
    ({"answer_schema": {"type": "nope"}}, "answer_schema"),
    ({"prompts": {"sistem": "x"}}, "prompts/sistem"),
    ({"prompts": {"system": "no tools named"}}, "$tool_definitions is missing"),
    ({"prompts": {"error": "$error and $more"}}, "unknown variable $more"),
    ({"prompts": {"react": "costs 5$"}}, "stray $"),
    ({"prompts": {"react": "../../etc/passwd.txt"}}, "prompts/react"),
]


@pytest.mark.parametrize(("change", "told"), BAD_CONFIGS, ids=[str(change)[:60] for change, _ in BAD_CONFIGS])
async def test_a_bad_config_is_told_before_anything_is_written(change: dict[str, Any], told: str) -> None:
    journal = MemoryJournal()
    with pytest.raises(DefinitionError) as caught:
        await run_agent(
            {**CONFIG, **change}, registry=Calls().registry, model=ScriptedModel([]), journal=journal, run_id="r"
        )
    assert told in str(caught.value)
    assert journal.runs() == []


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"id": {"maxLength": 1}}, ["allowed_tools/0/args/id"]),
        ({"items": {"maxItems": 1}}, ["allowed_tools/0/args/items"]),
        ({"id": "https://e.org/s", "properties": {"id": {"maxLength": 1, "example": "x"}}}, []),
    ],
)
def test_arguments_named_like_keywords_are_narrowed_below_properties_alone(args: Any, told: list[str]) -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string"}, "items": {"type": "array"}}}
    config = AgentConfig(**{**CONFIG, "allowed_tools": [{"tool": "look", "args": args}]})
    problems: list[Problem] = []
    with gathering(problems):
        tool_policies(config, ToolRegistry([Tool("look", "Looks.", schema, print)]))
    assert [each.where for each in problems] == told


MANY_FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    (
        {
            "max_steps": "many",
            "temprature": 1,
            "protocol": "soap",
            "allowed_tools": [5, {"tool": "look", "preste": {}}],
        },
        ["max_steps", "allowed_tools/0", "allowed_tools/1/preste", "protocol", "temprature"],
    ),
    (
        {
            "allowed_tools": [{"tool": "look", "rate_limit": "x"}],
            "tool_choice": "none",
            "plan": {"confirm": True},
            "prompt": None,
        },
        ["plan", "allowed_tools/0/rate_limit", "tool_choice", ""],
    ),
    (
        {"allowed_tools": ["lok", "look", "x.*"], "deny_tools": ["hear"], "answer_schema": {"type": "no"}},
        ["answer_schema", "allowed_tools/0", "allowed_tools/2", "deny_tools/0"],
    ),
    (
        {
            "allowed_tools": [
                {"tool": "look", "preset": {"q": 7}, "args": {"type": "no"}, "provenance": {"z": "trusted"}}
            ],
            "prompts": {"sistem": "x"},
            "messages_json": "[{]",
        },
        [
            "allowed_tools/0/preset/q",
            "allowed_tools/0/args",
            "allowed_tools/0/provenance/z",
            "messages_json",
            "prompts",
        ],
    ),
]


@pytest.mark.parametrize(("change", "places"), MANY_FAULTS, ids=[str(places) for _, places in MANY_FAULTS])
async def test_all_faults_of_a_config_are_told_at_once(change: dict[str, Any], places: list[str]) -> None:
    with pytest.raises(DefinitionError) as refused:
        await run_agent({**CONFIG, **change}, registry=Calls().registry, model=ScriptedModel([]))
    told = [line.split(": ")[0].removeprefix("config").removeprefix("/") for line in str(refused.value).splitlines()]
    assert [place for place in places if not any(line.startswith(place) for line in told)] == []
    assert len(told) == len(places)


async def test_each_model_without_its_key_is_told_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "DASHSCOPE_API_KEY", "DASHSCOPE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    config, journal = {**CONFIG, "model": "openai:gpt-4o-mini", "fallback_models": ["qwen:qwen-plus"]}, MemoryJournal()
    with pytest.raises(DefinitionError) as refused:
        await run_agent(config, registry=Calls().registry, journal=journal)
    assert str(refused.value).splitlines() == [
        "config/model: the model needs a key: set OPENAI_API_KEY",
        "config/fallback_models/0: the model needs a key: set DASHSCOPE_API_KEY",
    ]
    assert journal.runs() == []


async def test_own_prompts_by_text_and_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.md").write_text("FROM A FILE, $$5, asked $user_message after $conversation_history")
    seen: list[Any] = []
    config = {**CONFIG, "prompts": {"system": "MINE $tool_definitions $max_steps", "react": "mine.md"}, "examples": []}
    history = [{"role": "user", "content": "$HOME"}, {"role": "assistant", "content": "${x}"}]
    await run_agent(
        {**config, "messages_json": history},
        registry=Calls().registry,
        model=ScriptedModel(lambda m: seen.append(m) or final()),
    )
    assert seen[0][0]["content"].startswith(
        "MINE - look({q}): Looks. 5\n\nFROM A FILE, $5, asked Go. after user: $HOME"
    )


async def test_chinese_prompts_are_there() -> None:
    seen: list[Any] = []
    await run_agent(
        {**CONFIG, "language": "zh"},
        registry=Calls().registry,
        model=ScriptedModel(lambda m: seen.append(m) or final()),
    )
    assert "工具" in seen[0][0]["content"]


# ── people ───────────────────────────────────────────────────────────────────────────────────────


async def _waiting(journal: MemoryJournal, calls: Calls) -> Any:
    config = {**CONFIG, "approval": "always"}
    model = ScriptedModel([action(), final()])
    output = await run_agent(config, registry=calls.registry, model=model, journal=journal, run_id="r")
    return output, lambda **options: run_agent(
        config, registry=calls.registry, model=model, journal=journal, run_id="r", **options
    )


async def test_a_waiting_call_holds_nothing_and_goes_on_when_it_is_approved() -> None:
    journal, calls = MemoryJournal(), Calls()
    output, again = await _waiting(journal, calls)
    assert (output.finish_reason, list(calls)) == ("awaiting_approval", [])
    (entry,) = output.waiting
    assert {key: entry[key] for key in ("tool", "args", "reason")} == {
        "tool": "look",
        "args": {"q": "x"},
        "reason": "awaiting_approval",
    }
    assert verify(journal, run_id="r", head=output.journal["head"], count=output.journal["count"]).ok
    assert (await again()).finish_reason == "awaiting_approval"
    done = await again(decisions={(entry["strand"], entry["n"]): Approve()})
    assert (done.finish_reason, len(calls)) == ("final", 1)
    assert replay(journal, run_id="r").identical


@pytest.mark.parametrize(("decision", "made"), [(Deny("no"), []), (Edit({"q": "better"}), [{"q": "better"}])])
async def test_a_person_may_deny_or_edit(decision: Any, made: list[Any]) -> None:
    journal, calls = MemoryJournal(), Calls()
    output, again = await _waiting(journal, calls)
    done = await again(decisions={(output.waiting[0]["strand"], output.waiting[0]["n"]): decision})
    assert done.finish_reason == "final"
    assert list(calls) == made
    assert replay(journal, run_id="r").identical


async def test_a_decision_must_fit_what_waits() -> None:
    journal, calls = MemoryJournal(), Calls()
    output, again = await _waiting(journal, calls)
    place = (output.waiting[0]["strand"], output.waiting[0]["n"])
    with pytest.raises(DecisionError, match="waits for approve, deny or edit, not retry"):
        await again(decisions={place: Retry()})
    with pytest.raises(DecisionError, match="nothing waits at agent:99; waiting: agent:4"):
        await again(decisions={("agent", 99): Approve()})
    await again(decisions={place: Approve()})
    with pytest.raises(DecisionError, match="this run has ended"):
        await again(decisions={place: Deny()})


# ── writes in doubt ──────────────────────────────────────────────────────────────────────────────


async def _in_doubt(journal: MemoryJournal, calls: Calls) -> Any:
    config = {**CONFIG, "single_call_timeout": 0.05}
    model = ScriptedModel([action(), final()])

    def again(**options: Any) -> Any:
        return run_agent(config, registry=calls.registry, model=model, journal=journal, run_id="r", **options)

    return await again(), again


def _hangs_once() -> Callable[[Any, Any], Any]:
    turns = iter([asyncio.Event().wait()])
    return lambda args, context: next(turns, "done at last")


@pytest.mark.parametrize(
    ("decision", "reason", "made"),
    [(Retry(), "final", 2), (Skip(), "final", 1), (Fail(), "tool_error", 1)],
    ids=["retry", "skip", "fail"],
)
async def test_a_write_that_timed_out_is_in_doubt_until_a_person_decides(decision: Any, reason: str, made: int) -> None:
    journal, calls = MemoryJournal(), Calls(_hangs_once(), effect="write")
    output, again = await _in_doubt(journal, calls)
    assert output.finish_reason == "in_doubt"
    done = await again(decisions={(output.waiting[0]["strand"], output.waiting[0]["n"]): decision})
    assert (done.finish_reason, len(calls)) == (reason, made)
    assert len(set(calls.keys)) == 1
    assert replay(journal, run_id="r").identical


async def test_an_idempotent_write_that_timed_out_is_a_plain_tool_error() -> None:
    journal, calls = MemoryJournal(), Calls(_hangs_once(), effect="write", idempotent=True)
    output, _ = await _in_doubt(journal, calls)
    assert output.finish_reason == "final"
    assert "no result within 0.05 seconds" in str(output.trace[0]["error"])


# ── nested runs ──────────────────────────────────────────────────────────────────────────────────


def _parent(**preset: Any) -> dict[str, Any]:
    child = {"model": "scripted", "max_steps": 3, "allowed_tools": ["look"], **preset}
    return {**CONFIG, "allowed_tools": [{"tool": "agent_core", "preset": child}]}


async def _nested(
    config: dict[str, Any], calls: Calls, child: list[Any], journal: MemoryJournal, **options: Any
) -> Any:
    calls.registry.get("agent_core") if "agent_core" in [
        t.code for t in calls.registry.all()
    ] else calls.registry.register(agent_tool(calls.registry))
    script = {"agent": [action("agent_core", prompt="Find it."), final("Parent done.")], "agent/agent_core.4": child}
    return await run_agent(
        config, registry=calls.registry, model=ScriptedModel(script), journal=journal, run_id="r", **options
    )


async def test_an_agent_may_call_another_within_its_own_budget() -> None:
    journal, calls = MemoryJournal(), Calls()
    output = await _nested(_parent(), calls, [action(), final("Found.")], journal)
    assert output.final_answer == "Parent done."
    assert output.trace[0]["observation"] == "Found."
    assert (output.usage["tool_calls"], output.usage["requests"]) == (2, 4)
    assert sorted(journal.load("r")) == ["agent", "agent/agent_core.4"]
    assert verify(journal, run_id="r", head=output.journal["head"], count=output.journal["count"]).ok
    assert replay(journal, run_id="r").identical


async def test_a_nested_run_cannot_spend_more_than_its_parent_has_left() -> None:
    journal = MemoryJournal()
    await _nested({**_parent(max_tool_calls=50), "max_tool_calls": 3}, Calls(), [final("Found.")], journal)
    limits = journal.load("r")["agent/agent_core.4"][0].record()["limits"]
    assert limits["tool_calls"] == 2


async def test_a_child_that_waits_makes_its_parent_wait() -> None:
    journal, calls = MemoryJournal(), Calls()
    child = [action(), final("Found.")]
    output = await _nested(_parent(approval="always"), calls, child, journal)
    assert output.finish_reason == "awaiting_approval"
    (entry,) = output.waiting
    assert entry["strand"] == "agent/agent_core.4"
    done = await _nested(
        _parent(approval="always"), calls, child, journal, decisions={(entry["strand"], entry["n"]): Approve()}
    )
    assert (done.finish_reason, len(calls)) == ("final", 1)
    assert replay(journal, run_id="r").identical


async def test_a_childs_bad_config_is_a_tool_error_that_the_parent_reads() -> None:
    journal = MemoryJournal()
    output = await _nested(_parent(allowed_tools=["nothing"]), Calls(), [], journal)
    assert output.finish_reason == "final"
    assert "nothing" in output.trace[0]["error"]
    assert replay(journal, run_id="r").identical


@pytest.mark.parametrize(("levels", "told"), [(8, "is not allowed here"), (12, "runs may be nested 8 deep")])
async def test_agents_nest_only_so_deep(levels: int, told: str) -> None:
    calls = Calls()
    calls.registry.register(agent_tool(calls.registry))
    config: dict[str, Any] = {"model": "m", "max_steps": 2, "allowed_tools": [], "max_repairs": 0, "max_tool_calls": 0}
    for _ in range(levels):
        config = {**config, "allowed_tools": [{"tool": "agent_core", "preset": config}]}
    model = ScriptedModel(lambda messages: action("agent_core", prompt="Deeper."))
    output = await run_agent({**config, "prompt": "Go."}, registry=calls.registry, model=model)
    assert output.finish_reason == "tool_error"
    assert told in output.error["message"]
    assert output.usage["requests"] == 9


async def test_a_tool_tells_how_far_it_has_come() -> None:
    events: list[dict[str, Any]] = []

    def work(args: Any, context: ToolContext) -> str:
        context.progress(f"half of {SECRET}", 0.5)
        return "done"

    secrets = Secrets(["TOKEN"], env={"TOKEN": SECRET})
    model = ScriptedModel([action(), final()])
    await run_agent(CONFIG, registry=Calls(work).registry, model=model, on_event=events.append, secrets=secrets)
    (told,) = [event for event in events if event["event"] == "tool_progress"]
    assert (told["text"], told["fraction"], told["strand"], told["n"]) == ("half of [redacted:TOKEN]", 0.5, "agent", 4)


async def test_a_model_that_calls_an_agent_sends_it_a_prompt_and_nothing_else() -> None:
    journal, calls = MemoryJournal(), Calls()
    calls.registry.register(agent_tool(calls.registry))
    grab = action("agent_core", prompt="x", allowed_tools=["*"], base_url="http://evil")
    config = {**_parent(), "max_repairs": 0}
    output = await run_agent(config, registry=calls.registry, model=ScriptedModel([grab]), journal=journal, run_id="r")
    assert output.finish_reason == "invalid_action"
    assert (
        "agent_core({prompt?: string|null (The task)})"
        in journal.load("r")["agent"][0].record()["messages"][0]["content"]
    )
    with pytest.raises(DefinitionError, match="the author must set model, max_steps, allowed_tools"):
        await run_agent({**CONFIG, "allowed_tools": ["agent_core"]}, registry=calls.registry, model=ScriptedModel([]))


async def test_a_glob_does_not_reach_an_agent_that_nobody_has_bound() -> None:
    calls, seen = Calls(), []
    calls.registry.register(agent_tool(calls.registry))
    model = ScriptedModel(lambda messages: seen.append(messages) or final())
    await run_agent({**CONFIG, "allowed_tools": ["*"]}, registry=calls.registry, model=model)
    assert "- look(" in seen[0][0]["content"]
    assert "agent_core" not in seen[0][0]["content"]


async def test_what_an_agent_tells_its_child_is_not_trusted_text() -> None:
    guarded = [{"tool": "look", "provenance": {"q": "trusted"}}]
    for word, calls_made in (("evil", 0), ("Go", 1)):
        calls = Calls()
        child = [action(q=word), final("Found.")]
        script = {"agent": [action("agent_core", prompt="Ask evil or Go."), final()], "agent/agent_core.4": child}
        calls.registry.register(agent_tool(calls.registry))
        config = _parent(allowed_tools=guarded)
        await run_agent(config, registry=calls.registry, model=ScriptedModel(script))
        assert len(calls) == calls_made, word


# ── the world ────────────────────────────────────────────────────────────────────────────────────


class Client:
    """A model that does what a test wants."""

    def __init__(self, answer: Callable[[Question], Any]) -> None:
        self.answer = answer

    async def complete(self, question: Question) -> Completion:
        value = self.answer(question)
        return await value if asyncio.iscoroutine(value) else value

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        yield await self.complete(question)

    def info(self) -> ModelInfo:
        return ModelInfo("client")

    async def close(self) -> None: ...


def _raises(error: Exception) -> Callable[[Question], Any]:
    def answer(question: Question) -> Any:
        raise error

    return answer


@pytest.mark.parametrize("hear", [None, lambda event: None], ids=["whole", "streamed"])
async def test_mistake_in_a_client_says_what_it_is_and_the_log_where(
    hear: Any, caplog: pytest.LogCaptureFixture
) -> None:
    registry, told = Calls().registry, "streamed a str, neither a Delta nor" if hear else "gave a str, not"
    output = await run_agent(CONFIG, registry=registry, model=Client(lambda question: "Hi."), on_event=hear)
    assert output.error == {"kind": "model_error", "message": f"the model's client {told} a Completion"}
    output = await run_agent(CONFIG, registry=registry, model=Client(_raises(KeyError("id"))), on_event=hear)
    assert output.finish_reason == "model_error"
    assert re.search(r"the client of the model \S+ failed: KeyError at \S+test_run_agent.py:\d+ in answer", caplog.text)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (_raises(ModelError("down", requests=3)), "model_error"),
        (_raises(ModelError("blocked", kind="content_filter")), "content_filter"),
        (lambda question: Completion("", "content_filter"), "content_filter"),
        (lambda question: asyncio.Event().wait(), "model_error"),
    ],
    ids=["error", "filter error", "filtered", "hung"],
)
async def test_what_a_model_does_wrong_is_a_typed_ending(answer: Any, reason: str) -> None:
    config = {**CONFIG, "single_call_timeout": 0.05}
    output = await run_agent(config, registry=Calls().registry, model=Client(answer))
    assert output.finish_reason == reason


async def test_a_reply_that_no_journal_can_hold_is_a_protocol_error() -> None:
    model = ScriptedModel(['{"type":"final","answer":"a\ud800b"}', final("ok")])
    output = await run_agent(CONFIG, registry=Calls().registry, model=model)
    assert output.final_answer == "ok"
    assert "surrogate" in output.trace[0]["error"]


def _deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


ODD = {
    "huge_count": Completion('{"type":"final","answer":"done"}', input_tokens=2**64 - 1, output_tokens=1),
    "negative_count": Completion('{"type":"final","answer":"done"}', input_tokens=-5, output_tokens=1),
    "deep_call": Completion("", calls=({"name": "look", "arguments": "{}", "extra": _deep(400)},)),
    "deep_echo": Completion("", calls=({"name": "look", "arguments": "{}"},), echo={"reasoning_details": _deep(400)}),
}


@pytest.mark.parametrize("reply", ODD.values(), ids=ODD)
async def test_a_reply_that_no_journal_can_hold_has_a_typed_ending(reply: Completion) -> None:
    journal = MemoryJournal()
    config = {**CONFIG, "protocol": "tools", "max_repairs": 0}
    model = Client(lambda question: reply)
    output = await run_agent(config, registry=Calls().registry, model=model, journal=journal)
    assert output.finish_reason in ("final", "model_error")
    assert output.finish_reason == "model_error" or output.usage["estimated"]
    assert verify(journal, run_id=output.run_id).ok


async def test_a_script_that_runs_dry_is_a_model_error() -> None:
    output = await run_agent(CONFIG, registry=Calls().registry, model=ScriptedModel([]))
    assert (output.finish_reason, output.usage["requests"]) == ("model_error", 0)


async def test_a_cancelled_run_writes_its_end_before_the_cancellation_goes_on() -> None:
    journal, started = MemoryJournal(), asyncio.Event()

    async def hang(args: Any, context: Any) -> None:
        started.set()
        await asyncio.Event().wait()

    calls = Calls(hang)
    task = asyncio.create_task(
        run_agent(CONFIG, registry=calls.registry, model=ScriptedModel([action()]), journal=journal, run_id="r")
    )
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    kinds = [row.record()["kind"] for row in journal.load("r")["agent"]]
    assert kinds[-2:] == ["cancelled", "run_finished"]
    assert verify(journal, run_id="r").ok
    assert replay(journal, run_id="r").identical


async def test_a_transient_failure_of_a_read_is_tried_again_before_the_model_hears_of_it() -> None:
    results = iter([ToolResult(False, error="busy", metadata={"transient": True}), "seen"])
    calls = Calls(lambda args, context: next(results))
    output = await run_agent(CONFIG, registry=calls.registry, model=ScriptedModel([action(), final()]))
    assert (len(calls), output.usage["tool_calls"], output.trace[0]["error"]) == (2, 1, None)


async def test_a_transient_failure_of_a_write_is_not_tried_again() -> None:
    calls = Calls(lambda args, context: ToolResult(False, error="busy", metadata={"transient": True}), effect="write")
    output = await run_agent(CONFIG, registry=calls.registry, model=ScriptedModel([action(), final()]))
    assert (len(calls), output.trace[0]["error"]) == (1, "busy")


SECRET = "hunter2-hunter2"


async def test_a_secret_reaches_the_tool_and_nothing_else() -> None:
    journal, seen, given = MemoryJournal(), [], []

    def leak(args: Any, context: ToolContext) -> Any:
        given.append(context.secret("TOKEN"))
        return {"header": f"Bearer {given[0]}", "nested": [given[0]]}

    escaped = '{"type":"final","answer":"' + "".join(f"\\u{ord(c):04x}" for c in SECRET) + '"}'
    replies = iter([action(), escaped])
    model = ScriptedModel(lambda messages: seen.append(messages) or next(replies))
    secrets = Secrets(["TOKEN"], env={"TOKEN": SECRET})
    config = {**CONFIG, "prompt": f"My key is {SECRET}."}
    output = await run_agent(
        config, registry=Calls(leak).registry, model=model, journal=journal, run_id="r", secrets=secrets
    )
    assert given == [SECRET]
    stored = b"".join(row.data for rows in journal.load("r").values() for row in rows)
    for text in (str(output), str(seen), stored.decode()):
        assert SECRET not in text
        assert "[redacted:TOKEN]" in text
    assert replay(journal, run_id="r").identical


@pytest.mark.parametrize("limit", [4, 9, 31])
async def test_no_cut_of_the_models_choice_shows_a_part_of_a_secret(tmp_path: Path, limit: int) -> None:
    (tmp_path / "conf").write_text(f"password: {SECRET}\n")
    parts = [f'{{"path":"conf","offset":{at},"limit":{limit}}}' for at in range(0, 45, limit)]
    replies = [f'{{"type":"action","thought":"","tool":"read_file","args":{each}}}' for each in parts]
    config = {**CONFIG, "allowed_tools": ["read_file"], "max_steps": 99}
    model, secrets = ScriptedModel([*replies, final()]), Secrets(["TOKEN"], env={"TOKEN": SECRET})
    output = await run_agent(config, registry=default_registry(root=tmp_path), model=model, secrets=secrets)
    told = "".join(json.loads(step["observation"])["text"] for step in output.trace[:-1])
    assert told == "password: [redacted:TOKEN]\n"


CUT_SHORT = f"it said {SECRET[:-2]}"


@pytest.mark.parametrize(
    "result", [ToolResult(False, error=CUT_SHORT), ToolResult(output=CUT_SHORT)], ids=["error", "result"]
)
async def test_what_a_tool_cuts_short_shows_no_part_of_a_secret(result: ToolResult) -> None:
    journal, model = MemoryJournal(), ScriptedModel([action(), final()])
    calls, secrets = Calls(lambda args, context: result), Secrets(["TOKEN"], env={"TOKEN": SECRET})
    output = await run_agent(CONFIG, registry=calls.registry, model=model, secrets=secrets, journal=journal)
    assert (output.trace[0]["error"] or output.trace[0]["observation"]) == "it said [redacted:TOKEN]"
    assert SECRET[:-2] not in str([row.data for rows in journal.load(output.run_id).values() for row in rows])


async def test_a_secret_that_is_not_allowed_is_a_tool_error() -> None:
    calls = Calls(lambda args, context: context.secret("OTHER"))
    output = await run_agent(
        CONFIG, registry=calls.registry, model=ScriptedModel([action(), final()]), secrets=Secrets(env={})
    )
    assert "AGENT_CORE_SECRET_ENV" in output.trace[0]["error"]


async def test_events_tell_what_happens_as_it_happens() -> None:
    events: list[dict[str, Any]] = []
    replies = ["no", action(), final()]
    await run_agent(CONFIG, registry=Calls().registry, model=ScriptedModel(replies), on_event=events.append)
    names = [event["event"] for event in events]
    assert names == [
        "step_started",
        "repair",
        "step_started",
        "action",
        "observation",
        "step_started",
        "answer_delta",
        "finished",
    ]
    assert all({"strand", "n", "node"} <= event.keys() for event in events)


async def test_a_listener_that_fails_does_not_end_the_run(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Any) -> None:
        raise RuntimeError("listener")

    output = await run_agent(CONFIG, registry=Calls().registry, model=ScriptedModel([final()]), on_event=broken)
    assert output.finish_reason == "final"
    assert "an event listener failed" in caplog.text


async def test_of_two_drivers_on_one_run_each_ends_with_the_same_output() -> None:
    journal, calls = MemoryJournal(), Calls(lambda args, context: asyncio.sleep(0.01, "seen"))
    model = Client(lambda question: asyncio.sleep(0.01, Completion([action(), action(), final()][question.index])))
    runs = [run_agent(CONFIG, registry=calls.registry, model=model, journal=journal, run_id="r") for _ in range(3)]
    outputs = await asyncio.gather(*runs)
    assert [output.final_answer for output in outputs] == ["done"] * 3
    assert outputs[0] == outputs[1] == outputs[2]
    assert verify(journal, run_id="r").ok


async def test_a_write_answered_after_it_was_put_in_doubt_is_kept_beside_the_doubt() -> None:
    journal, release, started = MemoryJournal(), asyncio.Event(), asyncio.Event()

    async def slow(args: Any, context: Any) -> str:
        started.set()
        await release.wait()
        return "written"

    calls = Calls(slow, effect="write")
    model = ScriptedModel([action(), final()])

    def drive() -> Any:
        return run_agent(CONFIG, registry=calls.registry, model=model, journal=journal, run_id="r")

    first = asyncio.create_task(drive())
    await started.wait()
    other = await drive()
    assert other.finish_reason == "in_doubt"
    release.set()
    output = await first
    assert (output.finish_reason, len(calls)) == ("final", 1)
    assert output.trace[0]["observation"] == "written"
    rows = journal.load("r")["agent"]
    [late] = [row for row in rows if row.kind == "resolved"]
    assert late.record()["decision"] == "late"
    assert replay(journal, run_id="r").identical
    died_here = MemoryJournal()
    died_here.append("r", rows[: late.n + 1])
    again = await run_agent(CONFIG, registry=calls.registry, model=model, journal=died_here, run_id="r")
    assert (again.final_answer, len(calls)) == (output.final_answer, 1)


class Stale(MemoryJournal):
    """Another journal's rows, the first few times as they were when this was made."""

    def __init__(self, journal: MemoryJournal, times: int) -> None:
        self.inner, self.stale, self.times = journal, journal.load("r"), times

    def load(self, run: str) -> Any:
        self.times -= 1
        return self.stale if self.times >= 0 else self.inner.load(run)

    def append(self, run: str, rows: Any) -> bool:
        return self.inner.append(run, rows)


async def test_of_two_drivers_at_one_write_only_the_one_that_wrote_asked_makes_it() -> None:
    journal, calls = MemoryJournal(), Calls(lambda args, context: asyncio.sleep(0.01, "written"), effect="write")
    output, again = await _waiting(journal, calls)
    place = (output.waiting[0]["strand"], output.waiting[0]["n"])
    at = "2026-01-01T00:00:00.000Z"
    journal.append("r", decision_rows(journal.load("r"), {place: Approve()}, by="test", at=at, encrypt=None))
    config, model = {**CONFIG, "approval": "always"}, ScriptedModel([action(), final()])
    drivers = [
        run_agent(config, registry=calls.registry, model=model, journal=Stale(journal, 2), run_id="r") for _ in range(2)
    ]
    outputs = await asyncio.gather(*drivers)
    assert len(calls) == 1
    assert {output.finish_reason for output in outputs} <= {"final", "in_doubt"}
    assert (await again()).final_answer == "done"
    assert verify(journal, run_id="r").ok


async def test_each_record_is_told_to_a_listener_once() -> None:
    events: list[tuple[str, int, str]] = []
    calls = Calls(effect="write")
    await run_agent(
        CONFIG,
        registry=calls.registry,
        model=ScriptedModel([action(), final()]),
        on_event=lambda event: events.append((event["strand"], event["n"], event["event"])),
    )
    assert len(events) == len(set(events))
    assert [name for _, _, name in events].count("observation") == 1


# ── what was once got wrong ──────────────────────────────────────────────────────────────────────


async def test_a_run_that_died_while_asking_replays_up_to_there() -> None:
    journal = MemoryJournal()
    task = asyncio.create_task(
        run_agent(
            CONFIG,
            registry=Calls().registry,
            model=Client(lambda q: asyncio.Event().wait()),
            journal=journal,
            run_id="r",
        )
    )
    await asyncio.sleep(0.01)
    found = replay(journal, run_id="r")
    task.cancel()
    assert (found.identical, found.divergence, found.tape_ended) == (False, None, "agent")


@pytest.mark.parametrize("word", [Approve, Edit([1]), Edit({"a": float("nan")}), "approve", None, Deny(5)], ids=str)  # type: ignore[arg-type]
async def test_what_is_no_decision_is_refused_and_nothing_is_written(word: Any) -> None:
    journal, calls = MemoryJournal(), Calls()
    output, again = await _waiting(journal, calls)
    before = journal.load("r")
    with pytest.raises(DecisionError):
        await again(decisions={(output.waiting[0]["strand"], output.waiting[0]["n"]): word})
    assert journal.load("r") == before


async def test_edited_arguments_hold_no_secret() -> None:
    journal, calls = MemoryJournal(), Calls()
    config = {**CONFIG, "approval": "always"}
    secrets = Secrets(["TOKEN"], env={"TOKEN": SECRET})
    how: Any = {
        "registry": calls.registry,
        "model": ScriptedModel([action(), final()]),
        "journal": journal,
        "run_id": "r",
    }
    output = await run_agent(config, secrets=secrets, **how)
    place = (output.waiting[0]["strand"], output.waiting[0]["n"])
    with pytest.raises(DecisionError, match=r"nothing was decided.*/q: expected a value without \[redacted:TOKEN\]"):
        await run_agent(config, secrets=secrets, decisions={place: Edit({"q": f"with {SECRET}"})}, **how)
    assert calls == []
    assert SECRET not in str([row.data for rows in journal.load("r").values() for row in rows])


@pytest.mark.parametrize(
    "wrap", ["{}", "```json\n{}\n```", '{{"a":1,"a":2,"b":{}}}'], ids=["bare", "fenced", "doubled"]
)
async def test_an_escaped_secret_is_found_without_reading_the_reply_anew(wrap: str) -> None:
    journal = MemoryJournal()
    escaped = "".join(f"\\u{ord(c):04X}" for c in SECRET)
    reply = wrap.format('{"type":"final","answer":"' + escaped + '"}')
    secrets = Secrets(["TOKEN"], env={"TOKEN": SECRET})
    config = {**CONFIG, "parsing": "tolerant", "max_repairs": 0}
    output = await run_agent(
        config, registry=Calls().registry, model=ScriptedModel([reply]), journal=journal, secrets=secrets
    )
    assert output.final_answer == (None if "doubled" in wrap or '"a":2' in wrap else "[redacted:TOKEN]")
    assert escaped not in str(journal.load(output.run_id))


async def test_a_key_that_is_but_a_word_is_left_alone() -> None:
    secrets = Secrets(env={"OPENAI_API_KEY": "ollama"})
    seen: list[Any] = []
    model = ScriptedModel(lambda messages: seen.append(messages) or final())
    await run_agent({**CONFIG, "prompt": "what is ollama?"}, registry=Calls().registry, model=model, secrets=secrets)
    assert seen[0][-1]["content"] == "what is ollama?"


async def test_a_secret_in_a_preset_is_refused() -> None:
    config = {**CONFIG, "allowed_tools": [{"tool": "look", "preset": {"q": SECRET}}]}
    with pytest.raises(DefinitionError, match="name the environment variable instead"):
        await run_agent(
            config, registry=Calls().registry, model=ScriptedModel([]), secrets=Secrets(["T"], env={"T": SECRET})
        )


async def test_two_patterns_may_not_bind_one_tool_differently() -> None:
    loose = [{"tool": "l*", "approval": "always"}, "*"]
    with pytest.raises(DefinitionError, match="fits this tool too"):
        await run_agent({**CONFIG, "allowed_tools": loose}, registry=Calls().registry, model=ScriptedModel([]))
    output = await run_agent(
        {**CONFIG, "allowed_tools": ["l*", "*"]}, registry=Calls().registry, model=ScriptedModel([final()])
    )
    assert output.finish_reason == "final"


async def test_a_finished_run_needs_no_registry_to_tell_its_output() -> None:
    journal, calls = MemoryJournal(), Calls()
    first = await run_agent(
        CONFIG, registry=calls.registry, model=ScriptedModel([final()]), journal=journal, run_id="r"
    )
    assert (
        await run_agent(CONFIG, registry=ToolRegistry(), model=ScriptedModel([]), journal=journal, run_id="r") == first
    )


async def test_an_unfinished_run_needs_its_tools_before_anything_is_written() -> None:
    journal, calls = MemoryJournal(), Calls()
    await _waiting(journal, calls)
    before = journal.load("r")
    with pytest.raises(DefinitionError, match="needs the tool 'look'"):
        await run_agent(
            {**CONFIG, "approval": "always"},
            registry=ToolRegistry(),
            model=ScriptedModel([]),
            journal=journal,
            run_id="r",
        )
    assert journal.load("r") == before


@pytest.mark.parametrize(
    "answer", [_raises(IndexError("dry")), _raises(TimeoutError()), lambda q: None], ids=["index", "timeout", "none"]
)
async def test_whatever_a_client_raises_is_a_model_error(answer: Any) -> None:
    config = {**CONFIG, "timeout": 0, "single_call_timeout": 0}
    output = await run_agent(config, registry=Calls().registry, model=Client(answer))
    assert output.finish_reason == "model_error"


def test_the_sync_twin_does_not_wait_for_a_tool_that_heeds_no_cancellation() -> None:
    async def stubborn(args: Any, context: Any) -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if args["q"] == "end":
                    raise
                args["q"] = "end"

    config = {**CONFIG, "single_call_timeout": 0.05}
    output = run_agent_sync(config, registry=Calls(stubborn).registry, model=ScriptedModel([action(), final()]))
    assert output.finish_reason == "final"


async def test_time_that_went_by_in_doubt_counts() -> None:
    journal, calls = MemoryJournal(), Calls(_hangs_once(), effect="write")
    output, again = await _in_doubt(journal, calls)
    done = await again(decisions={(output.waiting[0]["strand"], output.waiting[0]["n"]): Retry()})
    assert done.total_ms >= 50


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionResetError("reset"), "in_doubt"),
        (TimeoutError(), "in_doubt"),
        (ConnectionRefusedError("no"), "final"),
    ],
    ids=["reset", "timeout", "refused"],
)
async def test_a_write_that_was_cut_off_after_it_was_sent_is_in_doubt(error: Exception, reason: str) -> None:
    def cut(args: Any, context: Any) -> None:
        raise error

    for effect, expected in (("write", reason), ("read", "final")):
        calls = Calls(cut, effect=effect)
        output = await run_agent(CONFIG, registry=calls.registry, model=ScriptedModel([action(), final()]))
        assert output.finish_reason == expected, effect


async def test_a_run_goes_on_with_its_model_and_no_other() -> None:
    journal, calls = MemoryJournal(), Calls()
    await _waiting(journal, calls)
    config = {**CONFIG, "approval": "always", "model": "other"}
    with pytest.raises(DefinitionError, match="config/model"):
        await run_agent(config, registry=calls.registry, model=ScriptedModel([]), journal=journal, run_id="r")


@pytest.mark.parametrize(
    ("key", "value"), [("base_url", "ftp://x.test"), ("api_key_env", "ANOTHER_KEY"), ("model", "no:m")]
)
async def test_a_model_that_cannot_be_asked_is_told_at_the_option_that_keeps_it_from_that(key: str, value: str) -> None:
    config = {**CONFIG, "model": "openai:m", "base_url": "https://x.test/v1", key: value}
    with pytest.raises(DefinitionError, match=f"^config/{key}: ") as error:
        await run_agent(config, registry=Calls().registry)
    assert value in str(error.value)


async def test_an_agent_does_not_move_into_another_kind_of_run() -> None:
    journal = MemoryJournal()
    journal.append("r", [Slot("flow", 0, genesis("r", "flow")).row({"kind": "run_started", "loop": "flow"})])
    with pytest.raises(DefinitionError, match="is not an agent's own"):
        await run_agent(CONFIG, registry=Calls().registry, model=ScriptedModel([]), journal=journal, run_id="r")


async def test_a_model_that_fails_is_told_once_by_the_end_of_the_run() -> None:
    events: list[dict[str, Any]] = []
    model = Client(_raises(ModelError("down")))
    await run_agent(CONFIG, registry=Calls().registry, model=model, on_event=events.append)
    assert [event["event"] for event in events] == ["step_started", "finished"]
    assert events[-1]["error"]["message"] == "down"


def test_every_key_of_the_config_is_described() -> None:
    schema = AgentConfig.model_json_schema()
    objects = {"AgentConfig": schema, **schema["$defs"]}
    rules = {f"{name}/{key}": rule for name, each in objects.items() for key, rule in each["properties"].items()}
    assert [place for place, rule in rules.items() if not rule.get("description")] == []

"""The models that a workflow names: checked without keys, bounded by their windows, a recorded run in their place."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agent_core import MemoryJournal, run_agent
from agent_core.models import ModelInfo, ScriptedModel
from agent_core.models.summary import summariser
from support.by_hand import action, final
from support.command import Cli, Write
from utools import ToolError, ToolRegistry

KEYS = ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY")


def agent(**config: Any) -> dict[str, Any]:
    usual = {"model": "openai:gpt-4o-mini", "max_steps": 3, "allowed_tools": ["echo"], "prompt": "Go."}
    return {"id": "w", "nodes": [{"tool": "agent_core", "config": {**usual, **config}}]}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def keys(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key for each vendor."""
    for name in KEYS:
        monkeypatch.setenv(name, "a key of these tests")


@pytest.mark.parametrize("model", ["openai:gpt-4o-mini", "gpt-4o-mini", "gemini:gemini-3-flash", "ollama:qwen2.5:7b"])
def test_a_model_needs_no_key_to_be_found_valid(cli: Cli, write: Write, model: str) -> None:
    ran = cli("validate", str(write("flow.json", agent(model=model))), "--json")
    assert (ran.code, ran.json["ok"], ran.json["problems"]) == (0, True, [])
    missing = [each["message"].partition(": ")[0] for each in ran.json.get("warnings", [])]
    assert missing == ([] if model.startswith("ollama") else ["the model needs a key"])


MODEL, FALLBACK = "nodes/0/config/model", "nodes/0/config/fallback_models/1"
URL, KEY, API = (f"nodes/0/config/{key}" for key in ("base_url", "api_key_env", "api"))
FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "provider": ({"model": "opnai:gpt-4o"}, MODEL, "no such provider: opnai; there are openai, gemini"),
    "script": ({"model": "scripted:nowhere.json"}, MODEL, "the script cannot be read"),
    "gguf": ({"model": "local:nowhere.gguf"}, MODEL, "there is no such model file"),
    "recorded_run": ({"model": "replay:nowhere"}, MODEL, "there is no such recorded run"),
    "base_url": ({"base_url": "ftp://host/v1"}, URL, "must be http(s)://host"),
    "key": ({"base_url": "https://x.example/v1", "api_key_env": "OPENAI_API_KEY"}, KEY, "may not be sent"),
    "api": ({"model": "ollama:m", "api": "native"}, API, "has no API of its own here"),
    "fallback": ({"fallback_models": ["openai:gpt-4o", "nobody:m"]}, FALLBACK, "no such provider: nobody"),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("config", "where", "message"), FAULTS.values(), ids=FAULTS)
def test_a_model_that_cannot_be_asked_is_found_before_anything_runs(
    cli: Cli, write: Write, config: dict[str, Any], where: str, message: str
) -> None:
    flow = str(write("flow.json", agent(**config)))
    (problem,) = cli("validate", flow, "--json").json["problems"]
    assert problem["where"] == where
    assert message in problem["message"]


def test_a_run_without_the_key_says_which_to_set(cli: Cli, write: Write) -> None:
    ran = cli("run", str(write("flow.json", agent())), "--json")
    assert (ran.code, ran.json["error"]["where"]) == (3, MODEL)
    assert "set OPENAI_API_KEY" in ran.json["error"]["message"]


def test_the_schema_of_a_node_that_calls_functions_is_its_functions(cli: Cli, write: Write) -> None:
    (function,) = cli("schema", str(write("flow.json", agent(protocol="tools")))).json
    assert (function["type"], function["function"]["name"]) == ("function", "echo")


def test_a_recorded_run_answers_in_a_models_place(cli: Cli, write: Write) -> None:
    write("replies.json", json.dumps([action("echo", text="hello"), final("It said hello.")]))
    first = cli("run", str(write("flow.json", agent(model="scripted:replies.json"))), "--json").json
    again = cli("run", str(write("flow.json", agent())), "--model", f"replay:{first['run_id']}", "--json").json
    answers = [each["outputs"]["agent_core"]["final_answer"] for each in (first, again)]
    assert answers == ["It said hello."] * 2
    assert first["run_id"] != again["run_id"]


class Small(ScriptedModel):
    """A model with a small window."""

    def info(self) -> ModelInfo:
        return ModelInfo("small", context_window=1500, output_limit=400)


async def test_a_models_window_bounds_its_questions_unless_the_config_does() -> None:
    turns = [{"role": role, "content": f"{role} " + "w" * 400} for _ in range(9) for role in ("user", "assistant")]
    config = {"model": "m", "max_steps": 2, "allowed_tools": [], "messages_json": turns, "prompt": "Now?"}
    told: list[tuple[dict[str, Any], int | None]] = [
        ({}, 1125),
        ({"max_output_tokens": 100}, 1400),
        ({"max_input_tokens": 9000}, None),
    ]
    for own, window in told:
        journal = MemoryJournal()
        output = await run_agent({**config, **own}, registry=ToolRegistry(), model=Small([final()]), journal=journal)
        started, asked = [row.record() for row in journal.load(output.run_id)["agent"]][:2]
        assert started.get("window") == window
        assert ("cut" in asked) is (window is not None)


@pytest.mark.parametrize(("config", "window"), [({}, 6144), ({"base_url": "http://127.0.0.1:9/v1"}, None)])
async def test_a_window_is_that_of_the_model_at_its_own_endpoint(
    config: dict[str, Any], window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("genai_prices")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    usual = {"model": "openai:gpt-4", "max_steps": 1, "allowed_tools": [], "prompt": "Go.", "timeout": 1e-9}
    journal = MemoryJournal()
    output = await run_agent({**usual, **config}, registry=ToolRegistry(), journal=journal)
    assert journal.load(output.run_id)["agent"][0].record().get("window") == window


BUDGETS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "known": ({}, []),
    "no budget": ({"model": "openai:nobody-knows", "cost_budget": None}, []),
    "not listed": ({"model": "openai:nobody-knows"}, ["openai:nobody-knows"]),
    "one's own endpoint": ({"base_url": "http://127.0.0.1:9/v1"}, ["openai:gpt-4o-mini"]),
    "on this machine": ({"model": "ollama:qwen2.5:7b"}, ["ollama:qwen2.5:7b"]),
    "a fallback": ({"fallback_models": ["openai:gpt-4o", "vllm:m"]}, ["vllm:m"]),
    "a fallback has an endpoint of its own": (
        {"fallback_models": ["openai:gpt-4o"], "base_url": "http://127.0.0.1:9/v1"},
        ["openai:gpt-4o-mini"],
    ),
    "filled in later": ({"model": "{{external.model}}"}, []),
}


@pytest.mark.sampled
@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(("config", "unpriced"), BUDGETS.values(), ids=BUDGETS)
def test_a_budget_in_usd_that_cannot_be_counted_is_warned_of(
    cli: Cli, write: Write, config: dict[str, Any], unpriced: list[str]
) -> None:
    pytest.importorskip("genai_prices")
    ran = cli("validate", str(write("flow.json", agent(**{"cost_budget": 0.01, **config}))), "--json")
    told = ran.json.get("warnings", [])
    assert (ran.code, [each["where"] for each in told]) == (0, ["nodes/0/config/cost_budget"] * len(unpriced))
    assert [each["message"].split()[6] for each in told] == unpriced


FALLBACK_OF: dict[str, dict[str, Any]] = {
    "the first model's endpoint": {"base_url": "https://gateway.example/v1"},
    "the first model's key": {"base_url": "https://gateway.example/v1", "api_key_env": "GATEWAY_TOKEN"},
}


@pytest.mark.parametrize("config", FALLBACK_OF.values(), ids=FALLBACK_OF)
def test_a_fallback_is_not_reached_by(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any]
) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", "g")
    write("agent-core.yaml", {"base_urls": {"https://gateway.example/v1": "GATEWAY_TOKEN"}})
    flow = str(write("flow.json", agent(fallback_models=["gemini:gemini-3-flash"], **config)))
    assert cli("validate", flow, "--json").json["problems"] == []
    ran = cli("run", flow, "--json")
    assert ran.json["error"]["where"] == "nodes/0/config/fallback_models/0"
    assert "set GEMINI_API_KEY" in ran.json["error"]["message"]


@pytest.mark.usefixtures("keys")
def test_a_tool_that_may_reach_every_host_is_warned_of(cli: Cli, write: Write) -> None:
    bound = {"tool": "http_request", "preset": {"allowed_domains": ["api.example.com"]}}
    for tools, place in ((["http_request"], 0), (["echo", "http*"], 1), ([bound], None)):
        ran = cli("validate", str(write("flow.json", agent(allowed_tools=tools))), "--json")
        told = [each["where"] for each in ran.json.get("warnings", ())]
        assert (ran.code, told) == (0, [] if place is None else [f"nodes/0/config/allowed_tools/{place}"])


PLAIN = {
    "a host from outside": ("{{external.url}}", ["nodes/0/config/allowed_domains"]),
    "half of a host": ("https://example.com{{external.x}}", ["nodes/0/config/allowed_domains"]),
    "a path on a fixed host": ("https://example.com/{{external.x}}", []),
    "a fixed URL": ("https://example.com", []),
}


@pytest.mark.parametrize(("url", "warned"), PLAIN.values(), ids=PLAIN)
def test_a_plain_request_whose_host_comes_from_outside_is_warned_of(
    cli: Cli, write: Write, url: str, warned: list[str]
) -> None:
    node = {"tool": "http_request", "config": {"method": "GET", "url": url}}
    ran = cli("validate", str(write("flow.json", {"id": "w", "nodes": [node]})), "--json")
    assert (ran.code, [each["where"] for each in ran.json.get("warnings", ())]) == (0, warned)


def test_a_network_that_is_none_is_found_by_validate(cli: Cli, write: Write) -> None:
    config = {"method": "GET", "url": "http://10.0.0.1", "allow_cidrs": ["127.0.0/8"]}
    plain = cli("validate", str(write("flow.json", {"id": "w", "nodes": [{"tool": "http_request", "config": config}]})))
    assert (plain.code, "nodes/0 (http_request)/config/allow_cidrs/0: must be" in plain.out) == (3, True)
    bound = {"tool": "http_request", "preset": {"allow_cidrs": ["127.0.0/8"]}}
    ran = cli("validate", str(write("flow.json", agent(allowed_tools=[bound]))))
    assert (ran.code, "127.0.0/8" in ran.out) == (3, True)


@pytest.mark.usefixtures("keys")
def test_a_pattern_of_deny_tools_that_denies_nothing_is_warned_of(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", {"deny_tools": ["http_request"]})
    denied = ["json_*", "http_*", "mcp.files.*", "shell_comand*"]
    ran = cli("validate", str(write("flow.json", agent(allowed_tools=["echo"], deny_tools=denied))), "--json")
    told = [(each["where"], each["message"]) for each in ran.json["warnings"]]
    idle = "denies nothing: no tool of this host fits this pattern"
    assert told == [("nodes/0/config/deny_tools", f"{each!r} {idle}") for each in denied[2:]]
    assert (ran.code, ran.json["problems"]) == (0, [])


@pytest.mark.usefixtures("keys")
def test_an_agent_that_is_a_tool_of_another_is_warned_of_likewise(cli: Cli, write: Write) -> None:
    inner = {"model": "openai:gpt-4o-mini", "max_steps": 1, "allowed_tools": ["http_request"], "deny_tools": ["nix.*"]}
    flow = agent(allowed_tools=[{"tool": "agent_core", "preset": inner}])
    told = cli("validate", str(write("flow.json", flow)), "--json").json["warnings"]
    preset = "nodes/0/config/allowed_tools/0/preset"
    assert [each["where"] for each in told] == [f"{preset}/allowed_tools/0", f"{preset}/deny_tools"]


@pytest.mark.usefixtures("keys")
def test_a_file_writer_at_the_hosts_root_is_warned_of(cli: Cli, write: Write) -> None:
    for root, warned in ((".", True), ("./drafts/..", True), ("drafts", False)):
        tool = {"tool": "write_file", "preset": {"root": root}}
        ran = cli("validate", str(write("flow.json", agent(allowed_tools=[tool]))), "--json")
        told = [each["message"] for each in ran.json.get("warnings", ())]
        assert ran.code == 0
        assert [each.startswith("write_file may write in all of the host's root") for each in told] == [True] * warned
    ran = cli("validate", str(write("flow.json", agent(allowed_tools=["write_file"]))), "--json")
    assert (ran.code, ran.json["problems"][0]["where"]) == (3, "nodes/0/config/allowed_tools/0/preset")
    assert "the author must set root" in ran.json["problems"][0]["message"]


@pytest.mark.exhaustive
def test_a_model_tells_what_falls_out_of_a_conversations_window(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", {"summary_model": "scripted:summary.json"})
    write("summary.json", json.dumps(["Ann asked for order 17."]))
    for turn in range(3):
        config = {"op": "persist", "session_id": "s", "user_message": f"ask {turn}", "final_answer": f"told {turn}"}
        told = {"id": "w", "nodes": [{"tool": "context_manager", "config": config}]}
        assert cli("run", str(write("persist.json", told))).code == 0
    prepare = {"op": "prepare", "session_id": "s", "user_message": "And?", "window": 2}
    flow = write("prepare.json", {"id": "w", "nodes": [{"tool": "context_manager", "config": prepare}]})
    messages = cli("run", str(flow), "--json").json["outputs"]["context_manager"]["messages_json"]
    assert [message["content"] for message in messages] == [
        "Summary of the earlier conversation: Ann asked for order 17.",
        "ask 2",
        "told 2",
        "And?",
    ]
    write("summary.json", "[]")
    again = cli("run", str(flow), "--json")
    assert again.json["outputs"]["context_manager"]["messages_json"] == messages
    models = cli("stats", "--workflow", "w", "--json").json["models"]
    assert models["replies"] == 1
    assert models["tokens"]["input"] > 50
    write("prepare.json", {"id": "w", "nodes": [{"tool": "context_manager", "config": {**prepare, "window": 1}}]})
    ran = cli("run", str(flow), "--json")
    assert "could not be summarised" in ran.json["error"]["message"]
    write("agent-core.yaml", {"summary_model": "nobody:m"})
    assert "no such provider: nobody" in cli("run", str(flow)).err


PROMPTS = {
    "without the conversation": ("Summarise it.", "the variable $conversation_history is missing"),
    "unknown variable": ("$conversation_history $user", "unknown variable $user; there are conversation_history"),
    "no file": ("none.md", "none.md"),
}


@pytest.mark.parametrize(("text", "told"), PROMPTS.values(), ids=list(PROMPTS))
def test_prompt_for_summaries_that_cannot_be_used_is_refused(cli: Cli, write: Write, text: str, told: str) -> None:
    write("agent-core.yaml", {"summary_model": "scripted:summary.json", "summary_prompt": text})
    write("summary.json", "[]")
    ran = cli("tools")
    assert (ran.code, "summary_prompt" in ran.err, told in ran.err) == (3, True, True), ran.err


def test_prompt_for_summaries_needs_its_model(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", {"summary_prompt": "$conversation_history"})
    ran = cli("tools")
    assert (ran.code, "summary_prompt" in ran.err, "needs a summary_model" in ran.err) == (3, True, True)


async def test_summary_is_asked_for_by_the_prompt_of_the_host() -> None:
    asked: list[str] = []
    model = ScriptedModel(lambda messages: asked.append(messages[0]["content"]) or "short")
    made = summariser(lambda: model, "In one line: $conversation_history")
    await made([{"role": "user", "content": "Where is order 17?"}], "en")
    assert asked == ["In one line: user: Where is order 17?"]


async def test_a_summary_is_asked_for_with_the_whole_conversation() -> None:
    asked: list[str] = []
    model = ScriptedModel(lambda messages: asked.append(messages[0]["content"]) or " Short. ")
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"q":"x"}'}}
    told = [
        {"role": "user", "content": "Costs $5?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "yes"},
    ]
    summary = await summariser(lambda: model)(told, "en")
    assert (summary.text, summary.usage["requests"]) == ("Short.", 1)
    assert asked[0].endswith('user: Costs $5?\nassistant: look {"q":"x"}\ntool: yes')
    assert (await summariser(lambda: model)([{"role": "user", "content": "问" * 70_000}], "zh")).text == "Short."
    assert asked[1].startswith("请用不超过 300 字概括")
    assert re.search(r" …\[省略 \d+ 个字符\]… ", asked[1])


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ({"content": "They spoke of", "finish_reason": "MAX_TOKENS"}, "They spoke of …"),
        ({"content": "<think>hm</think>\nShort."}, "Short."),
        ({"content": "They", "finish_reason": "SAFETY"}, None),
    ],
    ids=["cut", "thought", "filtered"],
)
async def test_a_summary_that_is_none_or_half_of_one_says_so(reply: dict[str, Any], text: str | None) -> None:
    summarise = summariser(lambda: ScriptedModel([reply]))
    if text is None:
        with pytest.raises(ToolError, match="could not be summarised"):
            await summarise([{"role": "user", "content": "Hi."}], "en")
    else:
        assert (await summarise([{"role": "user", "content": "Hi."}], "en")).text == text


def test_fallbacks_that_are_no_list_are_told_once(cli: Cli, write: Write) -> None:
    config = {"model": "scripted:r.json", "max_steps": 1, "prompt": "Go.", "allowed_tools": []}
    write("r.json", ["x"])
    write("w.json", {"id": "w", "nodes": [{"tool": "agent_core", "config": {**config, "fallback_models": "openai:y"}}]})
    told = cli("validate", "w.json")
    assert (told.code, told.out.splitlines()[-1]) == (3, "1 problem")
    assert "fallback_models" in told.out

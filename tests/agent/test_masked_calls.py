"""Calls with something masked: as written around it, or refused and told; never made with a mark as a value."""

import json
from typing import Any

import pytest

from agent_core import Deny, Edit, MemoryJournal, replay, run_agent
from agent_core.errors import DecisionError, DefinitionError
from agent_core.loop.masked import marks_of
from agent_core.models import ScriptedModel
from agent_core.rules import EARLIEST
from agent_core.run.secrets import Secrets
from support.by_hand import action, final
from utools import Tool, ToolContext, ToolRegistry

SECRET = "sesame-open-2026"
SECRETS = Secrets(["TOKEN"], env={"TOKEN": SECRET})
MAIL = {"text": "https://intranet", "cc": "ada@example.com"}
ANY = {"type": "object"}


class Desk:
    """A tool `send` that writes and keeps what it was given, and `read`, which gives a text."""

    def __init__(self, text: Any = "nothing") -> None:
        self.sent: list[dict[str, Any]] = []
        send = Tool("send", "Sends.", ANY, self._send, effect="write", foreign=True)
        read = Tool("read", "Reads.", ANY, lambda args, context: text, effect="read", foreign=True)
        self.registry = ToolRegistry([send, read])

    async def _send(self, args: dict[str, Any], context: ToolContext) -> str:
        self.sent.append(args)
        return "sent"


async def run(desk: Desk, *replies: Any, secrets: Secrets = SECRETS, **config: Any) -> Any:
    given = {"model": "m", "max_steps": 8, "allowed_tools": ["send", "read"], "prompt": "Go.", **config}
    journal = config.pop("journal", None) or MemoryJournal()
    given.pop("journal", None)
    output = await run_agent(
        given, registry=desk.registry, model=ScriptedModel(list(replies)), secrets=secrets, journal=journal, run_id="r"
    )
    assert replay(journal, run_id="r").identical
    return output


def said(args: Any, protocol: str, tool: str = "send") -> Any:
    """A call of the tool, as the protocol writes it."""
    text = json.dumps(args, separators=(",", ":"))
    if protocol == "json":
        return f'{{"type":"action","tool":"{tool}","args":{text}}}'
    return {"content": "", "calls": [{"name": tool, "arguments": text}]}


def plan(*parameters: Any, tool: str = "send") -> str:
    steps = [
        {"step": n, "description": "a step", "tool": tool, "parameters": each} for n, each in enumerate(parameters, 1)
    ]
    return json.dumps({"type": "plan", "steps": steps}, separators=(",", ":"))


@pytest.mark.parametrize("protocol", ["json", "tools"])
async def test_a_call_gets_the_arguments_that_were_written(protocol: str) -> None:
    desk = Desk()
    output = await run(desk, said(MAIL, protocol), final() if protocol == "json" else "done", protocol=protocol)
    assert desk.sent == [MAIL]
    assert output.finish_reason == "final"


WRAPS = ["```json\n{}\n```", "<think>It is {{x: 1}}.</think>\n{}", "\ufeff{}", '{}\n{{"type":"final","answer":"no"}}']


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("secret", ["", f"it is {SECRET}"])
async def test_so_does_one_in_a_tolerated_wrapping(wrap: str, secret: str) -> None:
    desk = Desk()
    reply = wrap.format(said({**MAIL, "n": [1, 2.5, None], **({"note": secret} if secret else {})}, "json"))
    await run(desk, reply, final(), parsing="tolerant")
    assert desk.sent == ([] if secret else [{**MAIL, "n": [1, 2.5, None]}])


async def test_a_plan_has_the_steps_that_were_written() -> None:
    desk = Desk()
    output = await run(desk, plan({"text": "https://intranet"}, {"cc": "ada@example.com"}), final(), mode="plan")
    assert desk.sent == [{"text": "https://intranet"}, {"cc": "ada@example.com"}]
    assert output.finish_reason == "final"


@pytest.mark.parametrize("protocol", ["json", "tools"])
async def test_an_answer_in_fields_has_the_fields_that_were_written(protocol: str) -> None:
    schema = {"type": "object", "properties": {"text": {}, "cc": {}}, "required": ["text", "cc"]}
    text = json.dumps(MAIL, separators=(",", ":"))
    reply = f'{{"type":"final","answer":{text}}}' if protocol == "json" else text
    assert (await run(Desk(), reply, answer_schema=schema, protocol=protocol)).final_answer == MAIL
    masked = text.replace("intranet", f"intranet {SECRET}")
    reply = f'{{"type":"final","answer":{masked}}}' if protocol == "json" else masked
    answer = (await run(Desk(), reply, answer_schema=schema, protocol=protocol)).final_answer
    assert answer == {**MAIL, "text": "https://intranet [redacted:TOKEN]"}


async def test_what_the_user_and_a_tool_said_is_read_as_it_was_said() -> None:
    seen: list[Any] = []
    text = json.dumps(MAIL, separators=(",", ":"))
    replies = iter([action("read"), final()])
    model = ScriptedModel(lambda messages: seen.append(messages) or next(replies))
    config = {"model": "m", "max_steps": 3, "allowed_tools": ["read"], "prompt": f"Look at {text}"}
    await run_agent(config, registry=Desk(text).registry, model=model, secrets=SECRETS)
    assert f"Look at {text}" in str(seen[0][-1]["content"])
    assert text in seen[1][-1]["content"]


REFUSED: dict[str, Any] = {
    "a value": {"text": f"it is {SECRET}"},
    "a key": {SECRET: 1},
    "below": {"a": [{"b": SECRET}]},
    "json in a text": {"body": json.dumps({"token": SECRET})},
    "a format": {"key": "ghp_" + "a1B2c3D4e5F6" * 3},
    "a mark that was quoted": {"text": "the log says [redacted:TOKEN]"},
}


@pytest.mark.parametrize("protocol", ["json", "tools"])
@pytest.mark.parametrize("args", REFUSED.values(), ids=REFUSED)
async def test_a_call_with_something_masked_is_refused_and_told(args: Any, protocol: str) -> None:
    desk = Desk()
    last = final() if protocol == "json" else "done"
    output = await run(desk, said(args, protocol), said(MAIL, protocol), last, protocol=protocol)
    assert desk.sent == [MAIL]
    assert output.trace[0]["action"]["tool"] == "send"
    assert "expected a value without [redacted:" in output.trace[0]["observation"]
    assert output.finish_reason == "final"


async def test_it_is_told_in_chinese() -> None:
    output = await run(Desk(), said({"text": SECRET}, "json"), final(), language="zh")
    assert "/text：应为不含 [redacted:TOKEN] 的值" in output.trace[0]["observation"]


async def test_a_text_that_only_looks_like_a_mark_is_data() -> None:
    desk = Desk()
    await run(desk, said({"text": "[redacted:OTHER] [redacted:]"}, "json"), final())
    assert desk.sent == [{"text": "[redacted:OTHER] [redacted:]"}]


async def test_a_plan_with_something_masked_does_not_begin() -> None:
    desk = Desk()
    replies = [plan({"text": "a"}, {"text": SECRET}), plan({"text": "b"}), final()]
    output = await run(desk, *replies, mode="plan")
    assert desk.sent == [{"text": "b"}]
    assert output.finish_reason == "final"


async def test_a_step_is_not_made_with_what_was_masked_in_an_earlier_one() -> None:
    desk = Desk({"token": SECRET, "id": 7})
    steps = json.loads(plan({}, {"text": "{{steps.1.token}}"}, {"text": "{{steps.1.id}}"}))
    steps["steps"][0]["tool"] = "read"
    output = await run(desk, json.dumps(steps), final(), mode="plan", plan={"on_failure": "abort"})
    assert desk.sent == []
    assert [step["status"] for step in output.plan][:2] == ["done", "failed"]


async def test_a_person_is_told_and_the_call_waits_on() -> None:
    desk, journal = Desk(), MemoryJournal()
    config: dict[str, Any] = {"model": "m", "max_steps": 8, "allowed_tools": ["send"], "prompt": "Go."}
    config["approval"] = "always"
    how: Any = {"registry": desk.registry, "secrets": SECRETS, "journal": journal, "run_id": "r"}
    replies = [said(MAIL, "json"), final()]
    waits = await run_agent(config, model=ScriptedModel(replies), **how)
    place = waits.waiting[0]["strand"], waits.waiting[0]["n"]
    with pytest.raises(DecisionError, match=r"nothing was decided.*expected a value without \[redacted:TOKEN\]"):
        await run_agent(config, model=ScriptedModel(replies), decisions={place: Edit({"text": SECRET})}, **how)
    output = await run_agent(config, model=ScriptedModel(replies), decisions={place: Edit({"text": "x"})}, **how)
    assert (output.finish_reason, desk.sent) == ("final", [{"text": "x"}])


async def test_what_a_person_says_about_a_call_is_masked() -> None:
    desk, journal = Desk(), MemoryJournal()
    config: dict[str, Any] = {"model": "m", "max_steps": 8, "allowed_tools": ["send"], "prompt": "Go."}
    config["approval"] = "always"
    how: Any = {"registry": desk.registry, "secrets": SECRETS, "journal": journal, "run_id": "r"}
    replies = [said(MAIL, "json"), final()]
    waits = await run_agent(config, model=ScriptedModel(replies), **how)
    place = waits.waiting[0]["strand"], waits.waiting[0]["n"]
    output = await run_agent(config, model=ScriptedModel(replies), decisions={place: Deny(f"not {SECRET}")}, **how)
    assert "not [redacted:TOKEN]" in output.trace[0]["observation"]
    assert SECRET not in str([row.data for rows in journal.load("r").values() for row in rows])


@pytest.mark.parametrize("value", [SECRET, "[redacted:TOKEN]"])
async def test_a_preset_with_something_masked_is_refused_before_the_run(value: str) -> None:
    allowed = [{"tool": "send", "preset": {"token": value}}]
    with pytest.raises(DefinitionError, match="holds the value of a secret"):
        await run(Desk(), final(), allowed_tools=allowed)


def test_a_run_of_the_earlier_rules_is_judged_as_it_was() -> None:
    started = {"redaction": [{"secret": "T", "replacement": "[redacted:T]"}, {"formats": ["aws"]}]}
    assert marks_of({**started, "rules": {}}).marks == ()
    assert marks_of({**started, "rules": {"masking": 2}}).marks == ("[redacted:T]", "[redacted:aws]")
    assert EARLIEST["masking"] == 1


async def test_a_pattern_of_the_host_is_masked_and_its_mark_is_no_value() -> None:
    desk = Desk("Insured as H123456789.")
    secrets = Secrets(env={}, mask={"insurance": r"\b[A-Z]\d{9}\b"})
    replies = [said({}, "json", "read"), said({"text": "[redacted:insurance]"}, "json"), final("It is H123456789.")]
    output = await run(desk, *replies, secrets=secrets)
    assert output.trace[0]["observation"] == "Insured as [redacted:insurance]."
    assert (desk.sent, output.final_answer) == ([], "It is [redacted:insurance].")

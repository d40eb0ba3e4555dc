"""The desk over HTTP, on a real socket."""

import asyncio
from typing import Any

from agent_core import Final
from agent_core.testing import FunctionModel, ScriptedModel
from service.serving import ADA, BOB, EVE, LOOK_UP, MAX, OpenDesk, Serve, read_sse


def judge_with(cents: int) -> ScriptedModel:
    """Return a model that looks order 17 up, and then refunds so much."""
    verdict = {"decision": "refund" if cents else "reject", "cents": cents, "reason": "as the terms say"}
    return ScriptedModel([LOOK_UP, {"type": "final", "answer": verdict}])


def complain(number: str) -> dict[str, Any]:
    return {"number": number, "text": "it came broken"}


async def test_a_verdict_is_json_of_its_type(serve: Serve) -> None:
    async with serve(judge_with(15_00)) as client:
        response = await client.post("/verdicts", json=complain("17"), headers=ADA)
    assert response.json() == {"decision": "refund", "cents": 15_00, "reason": "as the terms say"}


async def test_a_run_without_an_answer_is_an_error_that_says_why(serve: Serve) -> None:
    async with serve(ScriptedModel([LOOK_UP] * 6)) as client:
        response = await client.post("/verdicts", json=complain("17"), headers=ADA)
    assert response.status_code == 502
    assert response.json()["error"] == "AnswerError"
    assert "max_steps" in response.json()["message"]


async def test_the_events_of_a_verdict_are_streamed(serve: Serve) -> None:
    async with serve(judge_with(0)) as client:
        response = await client.post("/verdicts/events", json=complain("17"), headers=ADA)
    events = read_sse(response.text)
    assert [name for name, _ in events if name != "answer_delta"] == [
        "step_started",
        "action",
        "observation",
        "step_started",
        "finished",
        "result",
    ]
    verdict = {"decision": "reject", "cents": 0, "reason": "as the terms say"}
    assert events[-1][1] == {"finish_reason": "final", "verdict": verdict}


async def test_a_budget_ends_a_run_that_costs_too_much(serve: Serve) -> None:
    dear = {
        "content": '{"type":"action","tool":"find_order","args":{"number":"17"}}',
        "usage": {"input_tokens": 30_000},
    }
    async with serve(ScriptedModel([dear, LOOK_UP])) as client:
        response = await client.post("/verdicts/events", json=complain("17"), headers=ADA)
    assert read_sse(response.text)[-1] == ("result", {"finish_reason": "token_budget", "verdict": None})


async def test_a_small_refund_is_paid_at_once(serve: Serve) -> None:
    async with serve(judge_with(15_00)) as client:
        response = await client.post("/cases", json=complain("17"), headers=ADA)
        shown = await client.get(response.headers["location"], headers=ADA)
    result = read_sse(response.text)[-1][1]
    assert (result["status"], result["path"]) == ("completed", ["judge", "pay"])
    assert result["outputs"]["pay"] == {"refunded": 15_00, "left": 25_00}
    assert shown.json() == result


async def test_a_large_refund_waits_for_a_manager(serve: Serve) -> None:
    async with serve(judge_with(600_00)) as client:
        response = await client.post("/cases", json=complain("18"), headers=ADA)
        case = response.headers["location"]
        refused = await client.post(f"{case}/decision", json={"approved": True}, headers=ADA)
    async with serve(judge_with(600_00)) as client:  # another process, later
        waits = (await client.get(case, headers=ADA)).json()
        approved = await client.post(f"{case}/decision", json={"approved": True}, headers=MAX)
    (call,) = waits["waiting"]
    assert refused.status_code == 403
    assert (waits["status"], call["tool"], call["args"]["cents"]) == ("waiting", "pay_refund", 600_00)
    assert approved.json()["outputs"]["pay_large"] == {"refunded": 600_00, "left": 300_00}


async def test_a_denied_refund_is_not_paid(serve: Serve, open_desk: OpenDesk) -> None:
    async with serve(judge_with(600_00)) as client:
        response = await client.post("/cases", json=complain("18"), headers=ADA)
        decision = {"approved": False, "message": "call them first"}
        denied = await client.post(f"{response.headers['location']}/decision", json=decision, headers=MAX)
    assert denied.json()["status"] == "failed"
    assert "call them first" in denied.json()["error"]["message"]
    assert open_desk(judge_with(0)).shop.refunded("18") == 0


async def test_of_two_decisions_one_is_taken(serve: Serve, open_desk: OpenDesk) -> None:
    async with serve(judge_with(300_00)) as client:
        response = await client.post("/cases", json=complain("18"), headers=ADA)
        url = f"{response.headers['location']}/decision"
        decided = [client.post(url, json={"approved": True}, headers=MAX) for _ in range(2)]
        both = await asyncio.gather(*decided)
        late = await client.post(url, json={"approved": False}, headers=MAX)
    assert sorted(response.status_code for response in both) == [200, 409]
    assert late.status_code == 409
    assert open_desk(judge_with(0)).shop.refunded("18") == 300_00


async def test_a_case_is_seen_by_its_customer_and_the_managers_of_its_tenant_alone(serve: Serve) -> None:
    async with serve(judge_with(600_00), "acme", "evil") as client:
        response = await client.post("/cases", json=complain("18"), headers=ADA)
        case = response.headers["location"]
        seen = {
            name: (await client.get(case, headers=who)).status_code
            for name, who in {"ada": ADA, "bob": BOB, "max": MAX, "eve": EVE, "nobody": {}}.items()
        }
        decided = await client.post(f"{case}/decision", json={"approved": True}, headers=EVE)
    assert seen == {"ada": 200, "bob": 404, "max": 200, "eve": 404, "nobody": 401}
    assert decided.status_code == 404


class Listening:
    """A model that keeps what it was told, and says the same to everybody."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, messages: Any, tools: Any) -> Final:
        self.told.append(str(messages))
        return Final({"text": "Noted.", "order": None})


async def test_a_conversation_is_remembered_after_a_restart(serve: Serve) -> None:
    model = Listening()
    for text in ("I am Ada, of order 17.", "Who am I?"):
        async with serve(FunctionModel(model)) as client:
            response = await client.post("/chats/c1", json={"text": text}, headers=ADA)
        assert read_sse(response.text)[-1][1]["reply"] == {"text": "Noted.", "order": None}
    assert ["I am Ada, of order 17." in told for told in model.told] == [True, True]


async def test_a_conversation_is_of_one_user(serve: Serve) -> None:
    model = Listening()
    async with serve(FunctionModel(model), "acme", "evil") as client:
        await client.post("/chats/c1", json={"text": "I am Ada."}, headers=ADA)
        for who in (BOB, EVE):
            await client.post("/chats/c1", json={"text": "Who am I?"}, headers=who)
        await client.post("/questions", json={"text": "Who am I?"}, headers=ADA)
    assert ["I am Ada." in told for told in model.told] == [True, False, False, False]


async def test_an_error_in_a_stream_is_its_last_event(serve: Serve) -> None:
    async with serve(ScriptedModel([LOOK_UP] * 6)) as client:
        response = await client.post("/questions", json={"text": "Where is order 17?"}, headers=ADA)
    name, error = read_sse(response.text)[-1]
    assert (name, error["error"]) == ("error", "MaxStepsExceeded")

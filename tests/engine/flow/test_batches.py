"""Calls side by side within a workflow's agent: paused, cancelled and forked while some are under way."""

import asyncio
from typing import Any

import orjson

from support.gated import Host, played, until

WORK = ["a", "b", "c"]


def calls(tool: str, *args: dict[str, Any]) -> dict[str, Any]:
    made = [{"name": tool, "arguments": orjson.dumps(each).decode()} for each in args]
    return {"content": "", "calls": made}


def agent(**config: Any) -> dict[str, Any]:
    usual = {"model": "m", "max_steps": 5, "allowed_tools": ["work", "pay"], "prompt": "Go.", "protocol": "tools"}
    return {"id": "asks", "tool": "agent_core", "config": {**usual, **config}}


REPLIES = [calls("work", *[{"name": name} for name in WORK]), {"content": "All done."}]


def test_a_pause_lets_the_calls_of_a_batch_answer_and_a_resume_makes_none_twice() -> None:
    async def play() -> None:
        host = Host(REPLIES)
        host.gate("b")
        running = host.start([agent()])
        await until(lambda: sorted(host.did) == ["a", "c"])
        pausing = asyncio.create_task(host.other.pause("r"))
        await host.noticed()
        host.gates["b"].set()
        result = await running
        assert await pausing == "paused"
        assert result.status == "paused"
        assert sorted(host.did) == WORK
        result = await host.engine.resume("r")
        assert (result.status, sorted(host.did)) == ("completed", WORK)
        assert result.outputs["asks"]["final_answer"] == "All done."
        assert host.sound(result)

    played(play)


def test_a_cancelled_batch_tells_what_had_answered() -> None:
    async def play() -> None:
        host = Host(REPLIES)
        host.gate("b")
        running = host.start([agent()])
        await until(lambda: sorted(host.did) == ["a", "c"])
        await host.other.cancel("r")
        result = await running
        assert result.status == "cancelled"
        trace = result.outputs["asks"]["trace"]
        assert [(step["action"]["args"]["name"], step["error"]) for step in trace] == [
            ("a", None),
            ("c", None),
            ("b", "cancelled"),
        ]
        assert host.aborted == ["b"]
        assert host.sound(result)

    played(play)


def test_a_fork_within_a_batch_makes_that_call_anew_and_keeps_its_neighbours() -> None:
    async def play() -> None:
        host = Host(REPLIES)
        first = await host.start([agent()])
        assert first.status == "completed"
        again = await host.engine.fork("r", ("flow/asks.1/4.1", 0), new_id="again")
        assert (again.status, sorted(host.did)) == ("completed", sorted([*WORK, "b"]))
        assert host.sound(again)
        assert host.sound(first)

    played(play)


def test_a_pause_between_the_writes_of_a_batch_begins_no_further_one() -> None:
    async def play() -> None:
        host = Host([calls("pay", {"amount": 1}, {"amount": 2}, {"amount": 3}), {"content": "Paid."}])
        host.gate("pay 1")
        running = host.start([agent()])
        await until(lambda: len(host.store.journal.load("r").get("flow/asks.1", ())) > 4)
        pausing = asyncio.create_task(host.other.pause("r"))
        await host.noticed()
        host.gates["pay 1"].set()
        assert (await running).status == "paused"
        await pausing
        assert host.did == ["paid 1"]
        result = await host.other.resume("r")
        assert (result.status, host.did) == ("completed", ["paid 1", "paid 2", "paid 3"])
        assert host.sound(result)

    played(play)

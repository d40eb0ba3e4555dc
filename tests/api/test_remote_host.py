"""One host's tools used by another, over HTTP: `remote` at one end, `agent-core serve` at the other."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine_shim.runs.engine import Engine
from support.by_hand import action, final
from support.served_host import Served, served
from utools import ToolContext, ToolRegistry, ToolResult
from utools.sources.remote import RemoteHost, RemoteHosts

pytestmark = pytest.mark.exhaustive

NETWORK = {"allow_cidrs": ["127.0.0.0/8"]}
LISTED = ["stock", "linger", "fail", {"tool": "order"}, {"tool": "write_file", "approval": "always"}]
FAIL = '''
from utools import ToolError, tool


@tool(effect="read")
def fail(why: str) -> str:
    """Fail."""
    raise ToolError(why)
'''


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "fail.py").write_text(FAIL)
    presets = {"write_file": {"root": str(folder)}}
    tools = ["shop.py:TOOLS", "fail.py:fail"]
    with served(folder, tools=tools, execute_tools=LISTED, presets=presets) as found:
        yield found


def hosts(home: Path, url: str, **keys: Any) -> RemoteHosts:
    host = RemoteHost.model_validate({"url": url, **NETWORK, **keys})
    return RemoteHosts({"lab": host}, lock=home / "lock.json", secret=lambda name: name)


async def tools_of(remote: RemoteHosts) -> ToolRegistry:
    return ToolRegistry(await asyncio.to_thread(remote.tools))


async def called(registry: ToolRegistry, code: str, key: str = "k", /, **args: Any) -> ToolResult:
    return await registry.execute(f"lab.{code}", args, ToolContext(idempotency_key=key))


def orders(shop: Served) -> list[str]:
    book = shop.folder / "orders.txt"
    return book.read_text().splitlines() if book.exists() else []


async def test_tools_of_a_served_host_are_those_that_it_executes(tmp_path: Path, shop: Served) -> None:
    registry = await tools_of(hosts(tmp_path, shop.url, trust_effects=True))
    assert [tool.code for tool in registry.all()] == [
        *("lab.fail", "lab.linger", "lab.order", "lab.stock", "lab.write_file")
    ]
    stock = registry.get("lab.stock")
    assert (stock.effect, registry.get("lab.order").effect) == ("read", "write")
    assert stock.description == "How many pieces of an article there are."
    assert stock.config_schema["properties"]["article"]["type"] == "string"
    assert "root" not in registry.get("lab.write_file").config_schema["properties"]
    assert (await called(registry, "stock", article="A-1")).output == {"article": "A-1", "pieces": 12}


async def test_host_that_executes_nothing_is_told_what_to_set(tmp_path: Path) -> None:
    with served(tmp_path / "bare", execute_tools=[]) as bare:
        loaded = await asyncio.to_thread(hosts(tmp_path, bare.url).load)
    assert [each.name for each in loaded.left_out] == ["lab"]
    assert "its operator lists them in execute_tools" in loaded.left_out[0].why


async def test_call_with_the_same_key_is_made_once(tmp_path: Path, shop: Served) -> None:
    registry = await tools_of(hosts(tmp_path, shop.url))
    before = len(orders(shop))
    first, second = [await called(registry, "order", "once", article="A-1", pieces=1) for _ in range(2)]
    assert first.output == second.output == "ordered 1 of A-1"
    assert len(orders(shop)) == before + 1
    await called(registry, "order", "twice", article="A-1", pieces=1)
    assert len(orders(shop)) == before + 2


async def test_what_a_tool_says_of_its_failure_is_kept(tmp_path: Path, shop: Served) -> None:
    failed = await called(await tools_of(hosts(tmp_path, shop.url)), "fail", "fails", why="the drawer is stuck")
    assert not failed.success
    assert "the drawer is stuck" in str(failed.error)
    assert "cut_off" not in failed.metadata


async def test_call_that_is_cancelled_is_cancelled_over_there(tmp_path: Path, shop: Served) -> None:
    registry = await tools_of(hosts(tmp_path, shop.url))
    call = asyncio.create_task(called(registry, "linger", "cancels", until="never"))
    await asyncio.to_thread(shop.await_file, "never.begun")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    (run,) = [each for each in runs_of(shop, "tool-linger") if each["status"] not in ("completed",)]
    await asyncio.to_thread(shop.await_status, run["run_id"], "cancelled")


async def test_call_that_is_only_let_go_goes_on_over_there(tmp_path: Path, shop: Served) -> None:
    registry = await tools_of(hosts(tmp_path, shop.url))
    context = ToolContext(idempotency_key="lets go", is_let_go=lambda: True)
    call = asyncio.create_task(registry.execute("lab.linger", {"until": "later"}, context))
    await asyncio.to_thread(shop.await_file, "later.begun")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    (shop.folder / "later").touch()
    assert (await called(registry, "linger", "lets go", until="later")).output == "later"


async def test_call_that_waits_for_a_person_goes_on_once_it_is_decided(tmp_path: Path, shop: Served) -> None:
    registry = await tools_of(hosts(tmp_path, shop.url))
    heard: list[str] = []
    decided = asyncio.Event()

    def progress(text: str, fraction: float | None = None) -> None:
        heard.append(text)
        decided.set()

    context = ToolContext(idempotency_key="approve", progress=progress)
    args = {"path": "note.txt", "text": "hello"}
    call = asyncio.create_task(registry.execute("lab.write_file", args, context))
    await asyncio.wait_for(decided.wait(), 30)
    (run,) = [each["run_id"] for each in runs_of(shop, "tool-write_file") if each["status"] == "waiting"]
    assert f"the call waits for a person at lab: decide it there, by `agent-core decide {run}`" in heard[0]
    assert not (shop.folder / "note.txt").exists()
    answer = await asyncio.to_thread(shop.client.post, f"/runs/{run}/decide", json={"decision": "approve"})
    assert answer.status_code == 200
    assert (await call).success
    assert (shop.folder / "note.txt").read_text() == "hello"


async def test_call_that_nobody_decides_in_time_says_where_and_finds_its_run(tmp_path: Path, shop: Served) -> None:
    registry = await tools_of(hosts(tmp_path, shop.url, timeout=1))
    late = await called(registry, "write_file", "late", path="late.txt", text="x")
    assert late.metadata == {"transient": True, "cut_off": True}  # a write in doubt, which a person may try again
    assert "POST " in str(late.error)
    (run,) = [each["run_id"] for each in runs_of(shop, "tool-write_file") if each["status"] == "waiting"]
    assert run in str(late.error)
    await asyncio.to_thread(shop.client.post, f"/runs/{run}/decide", json={"decision": "approve"})
    again = await called(registry, "write_file", "late", path="late.txt", text="x")
    assert again.success
    assert len([each for each in runs_of(shop, "tool-write_file") if each["run_id"] == run]) == 1


async def test_denied_call_fails_with_the_words_of_who_denied_it(tmp_path: Path, shop: Served) -> None:
    registry = await tools_of(hosts(tmp_path, shop.url))
    asked = asyncio.Event()
    context = ToolContext(idempotency_key="deny", progress=lambda text, fraction=None: asked.set())
    call = asyncio.create_task(registry.execute("lab.write_file", {"path": "no.txt", "text": "x"}, context))
    await asyncio.wait_for(asked.wait(), 30)
    (run,) = [each["run_id"] for each in runs_of(shop, "tool-write_file") if each["status"] == "waiting"]
    decision = {"decision": "deny", "message": "not in this house"}
    await asyncio.to_thread(shop.client.post, f"/runs/{run}/decide", json=decision)
    denied = await call
    assert not denied.success
    assert "not in this house" in str(denied.error)


async def test_arguments_that_the_other_host_refuses_are_told_in_its_words(tmp_path: Path, shop: Served) -> None:
    remote = hosts(tmp_path, shop.url)
    loose = [replace(tool, config_schema={"type": "object"}) for tool in await asyncio.to_thread(remote.tools)]
    refused = await called(ToolRegistry(loose), "order", "refused", article="A-1")
    assert not refused.success
    assert "lab answered 422" in str(refused.error)
    assert "pieces" in str(refused.error)
    assert refused.metadata == {"permanent": True}


STATUSES: dict[str, tuple[Callable[[Served], dict[str, str]], str]] = {
    "unknown_token": (lambda host: {"Authorization": "Bearer act_unknown"}, "401"),
    "scope": (lambda host: host.issue("reader", "read"), "403"),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("token", "status"), STATUSES.values(), ids=STATUSES)
async def test_call_that_is_not_allowed_is_told_with_its_status(tmp_path: Path, token: Any, status: str) -> None:
    with served(tmp_path / "closed", is_open=False) as closed:
        admin = closed.issue("caller", "admin")
        secrets = {"TOKEN": admin["Authorization"].removeprefix("Bearer ")}
        host = RemoteHost.model_validate({"url": closed.url, "token_env": "TOKEN", **NETWORK})
        remote = RemoteHosts({"lab": host}, lock=tmp_path / "lock.json", secret=secrets.__getitem__)
        registry = await tools_of(remote)
        context = ToolContext(idempotency_key="k", secret=secrets.__getitem__)
        assert (await registry.execute("lab.stock", {"article": "A"}, context)).success
        secrets["TOKEN"] = token(closed)["Authorization"].removeprefix("Bearer ")
        refused = await registry.execute("lab.stock", {"article": "A"}, context)
    assert f"lab answered {status}" in str(refused.error)
    assert secrets["TOKEN"] not in str(refused.error)
    assert refused.metadata == {"permanent": True}


async def test_workflow_of_one_host_uses_the_tools_of_another(tmp_path: Path, shop: Served) -> None:
    keys = {"remote": {"lab": {"url": shop.url, "trust_effects": True, **NETWORK}}}
    (tmp_path / "agent-core.yaml").write_text(json.dumps(keys))
    (tmp_path / "replies.json").write_text(json.dumps([action("lab.stock", article="A-9"), final("There are 12.")]))
    agent = {"model": "scripted:replies.json", "max_steps": 3, "allowed_tools": ["lab.*"], "prompt": "How many?"}
    (tmp_path / "flow.json").write_text(json.dumps({"id": "f", "nodes": [{"tool": "agent_core", "config": agent}]}))
    engine = await asyncio.to_thread(Engine.from_config, tmp_path / "agent-core.yaml", store=tmp_path / "runs.db")
    try:
        result = await engine.run(tmp_path / "flow.json")
    finally:
        await engine.close()
    assert result.status == "completed"
    assert "12" in json.dumps(result.outputs["agent_core"]["trace"])


def runs_of(shop: Served, workflow: str) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = shop.client.get("/runs", params={"workflow": workflow}).json()["runs"]
    return runs

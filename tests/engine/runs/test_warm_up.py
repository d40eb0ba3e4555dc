"""What a process has done before it takes work: its first act imports nothing more, and nothing has left it."""

import asyncio
import sys
from pathlib import Path

import orjson
import pytest

from agent_core.models import ScriptedModel
from agent_core.models.apis import NATIVE
from agent_core.models.vendors import VENDORS
from engine_shim import Engine
from support.by_hand import final
from support.loopback import chat, serving
from support.programs import environment

FIRST_ACT = """
import asyncio
import sys

import orjson

LEAVES = ("socket.connect", "socket.getaddrinfo", "socket.sendto")
sent = []
sys.addaudithook(lambda event, args: sent.append(event) if event in LEAVES else None)

from engine_shim import Engine

STORE, URL = sys.argv[1:]
AGENT = {"model": "openai:m", "base_url": URL, "prompt": "Go.", "allowed_tools": [], "max_steps": 1}
NODES = [
    {"id": "ask", "tool": "agent_core", "config": AGENT},
    {"id": "get", "tool": "json_transform", "config": {"data": {"a": 1}, "expression": "a"}},
]


async def main(is_warm):
    engine = Engine(store=STORE, base_urls={URL: None})
    if is_warm:
        await engine.warm_up()
    before, left = set(sys.modules), len(sent)
    result = await engine.run({"id": "f", "nodes": NODES, "edges": [{"from": "ask", "to": "get"}]})
    new = sorted({name.partition(".")[0] for name in set(sys.modules) - before})
    told = {"status": result.status, "left": left, "sent": len(sent), "new": new}
    await engine.close()
    print(orjson.dumps(told).decode())


asyncio.run(main(True))
"""


WARM = """
import asyncio
import sys

import orjson

from engine_shim import Engine


async def main():
    engine = Engine(store=sys.argv[1])
    await engine.warm_up()
    print(orjson.dumps({"is_warm": "PACKAGE" in sys.modules}).decode())
    await engine.close()


asyncio.run(main())
"""


async def run_program(program: str, *words: str, env: dict[str, str]) -> dict[str, object]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, *words, stdout=pipe, stderr=pipe, env=env
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    told: dict[str, object] = orjson.loads(out)
    return told


async def first_act(folder: Path, *, is_warm: bool) -> dict[str, object]:
    """What a fresh process had done before its first acts, and did in them."""
    program = FIRST_ACT if is_warm else FIRST_ACT.replace("main(True)", "main(False)")
    async with serving(chat(final("done"))) as server:
        return await run_program(program, str(folder / "runs.db"), server.url, env=environment())


async def test_first_act_of_a_warm_process_imports_nothing_more_and_nothing_left_it_before(tmp_path: Path) -> None:
    warm, cold = await asyncio.gather(*(first_act(tmp_path, is_warm=each) for each in (True, False)))
    assert (warm["status"], cold["status"]) == ("completed", "completed")
    assert "aiohttp" in cold["new"]  # type: ignore[operator]
    assert warm["new"] == []
    assert warm["left"] == 0
    assert warm["sent"]


@pytest.mark.parametrize("provider", ["anthropic", pytest.param("gemini", marks=pytest.mark.exhaustive)])
async def test_sdk_of_a_vendor_whose_key_is_set_is_imported_before(provider: str, tmp_path: Path) -> None:
    pytest.importorskip(NATIVE[provider].package)
    keys = {VENDORS[provider].keys[0]: "a-key"}
    program = WARM.replace("PACKAGE", NATIVE[provider].package)
    told = [
        await run_program(program, str(tmp_path / f"{len(env)}.db"), env={**environment(), **env}) for env in ({}, keys)
    ]
    assert told == [{"is_warm": False}, {"is_warm": True}]


async def test_process_whose_model_has_no_endpoint_builds_no_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine([], store=tmp_path / "runs.db", model=ScriptedModel([final("done")]))
    monkeypatch.delitem(sys.modules, "agent_core.models.endpoint.warm_up", raising=False)
    await engine.warm_up()
    await engine.close()
    assert "agent_core.models.endpoint.warm_up" not in sys.modules

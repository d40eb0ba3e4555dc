"""Kept answers: a tool that reads is not called again while they are fresh, and nobody is told what is not true."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_core import MemoryJournal, replay, run_agent, verify
from agent_core.models import ScriptedModel
from agent_core.run.secrets import Secrets
from engine_shim import Engine, MemoryRunStore, load_workflow
from support.call_stores import KINDS, Backend, open_backend
from support.loopback import http, serving
from support.redis_server import RealServer, real_server
from utools import Tool, ToolContext, ToolError, ToolRegistry
from utools.calls.cache import LARGEST, key_of
from utools.calls.shared import SharedCalls
from utools.calls.store_memory import MemoryCallStore
from utools.calls.store_redis import RedisCallStore
from utools.databases.redis_server import RedisServer
from utools.sources.manifest import manifest_tools

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"q": {}, "token": {"type": "string"}}}
DONE = '{"type": "final", "thought": "", "answer": "done"}'


def ask(q: str = '"x"') -> str:
    return f'{{"type": "action", "thought": "", "tool": "look", "args": {{"q": {q}}}}}'


@pytest.fixture(params=KINDS)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    yield from open_backend(request)


async def test_text_is_kept_for_its_time_and_may_be_replaced(backend: Backend) -> None:
    assert await backend.store.get("k") is None
    await backend.store.put("k", "é", 10)
    await backend.store.put("other", "x", 1000)
    assert await backend.store.get("k") == "é"
    await backend.store.put("k", "new", 20)
    backend.later(15)
    assert await backend.store.get("k") == "new"
    backend.later(6)
    assert await backend.store.get("k") is None
    assert await backend.store.get("other") == "x"


async def test_memory_holds_no_more_than_it_may_and_lets_go_of_what_nobody_asks_for() -> None:
    store = MemoryCallStore(largest=10)
    for key in "abc":
        await store.put(key, "xxx", 60)
    assert await store.get("a") == "xxx"
    await store.put("d", "xxx", 60)
    assert [await store.get(key) for key in "abcd"] == ["xxx", None, "xxx", "xxx"]
    for _ in range(3):
        await store.put("d", "yyy", 60)
    assert [await store.get(key) for key in "acd"] == ["xxx", "xxx", "yyy"]


class Look(list[dict[str, Any]]):
    """The tool `look`, which counts its calls and keeps its answers for a minute."""

    def __init__(self, calls: SharedCalls | None = None, **options: Any) -> None:
        super().__init__()
        self.answer: Callable[[], Any] = lambda: {"seen": len(self)}
        self.hold = asyncio.Event()
        self.hold.set()
        made: dict[str, Any] = {"effect": "read", "cache": {"ttl": 60}} | options
        self.registry = ToolRegistry([Tool("look", "Looks.", SCHEMA, self.execute, **made)], calls=calls)

    async def execute(self, args: dict[str, Any], context: ToolContext) -> Any:
        self.append(args)
        await self.hold.wait()
        return self.answer()


CONFIG = {"model": "scripted", "max_steps": 9, "max_repairs": 5, "allowed_tools": ["look"], "prompt": "Go."}


async def run(look: Look, *replies: str, **more: Any) -> Any:
    settings = {**CONFIG, **more.pop("settings", {})}
    return await run_agent(settings, registry=look.registry, model=ScriptedModel([*replies, DONE]), **more)


def seen(output: Any) -> list[tuple[Any, bool]]:
    return [(step["observation"], step["cached"]) for step in output.trace[:-1]]


async def test_equal_call_is_answered_from_what_is_kept_and_marked_so(backend: Backend) -> None:
    look, journal = Look(SharedCalls(backend.store)), MemoryJournal()
    output = await run(look, ask(), ask(), ask('"y"'), journal=journal, run_id="r")
    assert seen(output) == [('{"seen":1}', False), ('{"seen":1}', True), ('{"seen":2}', False)]
    assert output.usage["tool_calls"] == 3
    assert verify(journal, run_id="r").ok
    assert replay(journal, run_id="r").identical
    assert seen(await run(look, ask())) == [('{"seen":1}', True)]
    backend.later(61)
    assert seen(await run(look, ask())) == [('{"seen":3}', False)]


async def test_order_of_the_arguments_does_not_matter_and_their_kind_does() -> None:
    look = Look()
    output = await run(look, ask('{"a": 1, "b": 2}'), ask('{"b": 2, "a": 1}'), ask("1"), ask('"1"'), ask("true"))
    assert [cached for _, cached in seen(output)] == [False, True, False, False, False]


async def test_what_the_author_presets_is_part_of_the_call() -> None:
    look = Look()
    for token in ("one", "two", "one"):
        allowed = {"allowed_tools": [{"tool": "look", "preset": {"token": token}}]}
        await run(look, ask(), settings=allowed)
    assert [each["token"] for each in look] == ["one", "two"]


NEVER: dict[str, dict[str, Any]] = {
    "no cache": {"cache": None},
    "a write": {"effect": lambda args: "write"},
    "told by its arguments": {"effect": {"argument": "q", "read": ["other"]}},
}


@pytest.mark.parametrize("options", NEVER.values(), ids=NEVER)
async def test_only_reads_that_say_so_are_kept(options: dict[str, Any]) -> None:
    look = Look(**options)
    assert [cached for _, cached in seen(await run(look, ask(), ask()))] == [False, False]


async def test_failure_is_not_kept_and_too_large_an_answer_neither() -> None:
    def fail() -> Any:
        raise ToolError("not now")

    look = Look()
    for look.answer in (fail, lambda: "x" * LARGEST):
        before = len(look)
        await run(look, ask(), ask())
        assert len(look) == before + 2


class Spoilt(MemoryCallStore):
    """Holds something else than what it was given."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    async def get(self, key: str) -> str | None:
        return self.text


SPOILT = {
    "deep": "[" * 100_000,
    "deep_output": '{"output":' + "[" * 80 + "]" * 80 + "}",
    "no_number": '{"output":NaN}',
    "surrogate": r'{"output":"\ud800x"}',
    "another_kind": '{"output":{"evil":1}}',
    "too_large": '{"output":"' + "x" * LARGEST + '"}',
    "no_json": "{",
}


@pytest.mark.parametrize("text", SPOILT.values(), ids=SPOILT)
async def test_an_answer_that_the_tool_could_not_have_given_is_not_taken(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    look = Look(SharedCalls(Spoilt(text)), output_schema={"type": "string"})
    look.answer = lambda: "fresh"
    output = await run(look, ask())
    assert (output.finish_reason, seen(output)) == ("final", [("fresh", False)])
    assert "cached answers cannot be read" in caplog.text


async def test_an_answer_as_deep_as_one_may_be_is_kept() -> None:
    look, deep = Look(), json.loads("[" * 64 + "]" * 64)
    look.answer = lambda: deep
    assert [cached for _, cached in seen(await run(look, ask(), ask()))] == [False, True]


async def test_kept_answer_takes_no_turn_of_a_rate_limit() -> None:
    look = Look()
    limited = {"allowed_tools": [{"tool": "look", "rate_limit": "1/h"}]}
    output = await run(look, ask(), ask(), ask('"y"'), settings=limited)
    assert [step["error"] is None for step in output.trace[:-1]] == [True, True, False]


async def test_equal_calls_at_the_same_time_are_made_once() -> None:
    look = Look()
    look.hold.clear()
    runs = [asyncio.create_task(run(look, ask())) for _ in range(5)]
    while not look:
        await asyncio.sleep(0)
    await asyncio.sleep(0.05)
    look.hold.set()
    outputs = await asyncio.gather(*runs)
    assert len(look) == 1
    assert sorted(cached for output in outputs for _, cached in seen(output)) == [False, True, True, True, True]


async def test_who_waits_for_a_call_that_is_cancelled_makes_it_anew() -> None:
    look = Look()
    look.hold.clear()
    first = asyncio.create_task(run(look, ask()))
    while not look:
        await asyncio.sleep(0)
    second = asyncio.create_task(run(look, ask()))
    await asyncio.sleep(0.05)
    assert len(look) == 1
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    look.hold.set()
    assert seen(await second) == [('{"seen":2}', False)]


async def test_who_waits_for_another_call_waits_no_longer_than_its_own_time() -> None:
    look = Look()
    look.hold.clear()
    first = asyncio.create_task(run(look, ask()))
    while not look:
        await asyncio.sleep(0)
    output = await run(look, ask(), settings={"single_call_timeout": 0.1})
    assert "gave no result within 0.1 seconds" in output.trace[0]["error"]
    look.hold.set()
    assert seen(await first) == [('{"seen":1}', False)]


async def test_another_tool_or_another_version_of_it_has_answers_of_its_own() -> None:
    def made(**other: Any) -> Tool:
        about = {"code": "look", "description": "Looks.", "config_schema": SCHEMA}
        return Tool(**{**about, **other}, execute=lambda args, context: None, effect="read")

    tools = [made(), made(code="see"), made(description="Sees."), made(fingerprint="2"), made(output_schema={})]
    tools.append(made(config_schema={"type": "object"}))
    assert len({key_of(each, {"q": 1}) for each in tools}) == len(tools)
    assert key_of(tools[0], {"q": 1}) == key_of(made(), {"q": 1})
    assert "hunter2" not in key_of(made(), {"token": "hunter2"})


MANIFEST: dict[str, Any] = {
    "code": "look",
    "description": "Looks.",
    "schema": {"type": "object", "properties": {"q": {"type": "string"}}},
    "cache": {"ttl": 60},
}
HTTP = {"url": "https://one.example/{{q}}"}
OTHER_MANIFESTS: dict[str, dict[str, Any]] = {
    "url": {"http": {"url": "https://two.example/{{q}}"}},
    "header": {"http": {**HTTP, "headers": {"X-Tenant": "b"}}},
    "secret": {"http": {**HTTP, "token_env": "TOKEN"}},
    "null_body": {"http": {**HTTP, "json": None, "method": "POST"}, "effect": "read"},
    "no_body": {"http": {**HTTP, "method": "POST"}, "effect": "read"},
    "command": {"command": {"argv": ["echo", "{{q}}"]}, "effect": "read"},
    "other_command": {"command": {"argv": ["printf", "{{q}}"]}, "effect": "read"},
    "program_beside_it": {"command": {"argv": ["./run.sh", "{{q}}"]}, "effect": "read"},
    "python": {"python": "desk.py:look", "effect": "read"},
}


def manifest(home: Path, **keys: Any) -> Tool:
    path = home / "look.json"
    path.write_text(json.dumps({**MANIFEST, **keys}))
    (tool,) = manifest_tools(path, root=home, trusted=True)
    return tool


def test_every_content_of_a_manifest_has_answers_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "desk.py").write_text("def look(q: str) -> str:\n    return q\n")
    tools = [manifest(tmp_path, http=HTTP), *(manifest(tmp_path, **keys) for keys in OTHER_MANIFESTS.values())]
    assert len({key_of(each, {"q": "x"}) for each in tools}) == len(tools)
    again = manifest(tmp_path, http=dict(reversed(HTTP.items())))
    assert key_of(again, {"q": "x"}) == key_of(tools[0], {"q": "x"})


@pytest.mark.parametrize(
    ("file", "keys"),
    [("run.sh", OTHER_MANIFESTS["program_beside_it"]), ("desk.py", OTHER_MANIFESTS["python"])],
    ids=["command", "python"],
)
def test_a_program_beside_a_manifest_that_was_edited_has_answers_of_its_own(
    tmp_path: Path, file: str, keys: dict[str, Any]
) -> None:
    (tmp_path / file).write_text("def look(q: str) -> str:\n    return q\n")
    before = manifest(tmp_path, **keys).fingerprint
    assert manifest(tmp_path, **keys).fingerprint == before
    (tmp_path / file).write_text("def look(q: str) -> str:\n    return q + q\n")
    assert manifest(tmp_path, **keys).fingerprint != before


def test_equal_manifests_are_one_version_wherever_they_lie(tmp_path: Path) -> None:
    homes = [tmp_path / "a", tmp_path / "b"]
    for home in homes:
        home.mkdir()
        (home / "run.sh").write_text("#!/bin/sh\n")
    for keys in ({"http": HTTP}, OTHER_MANIFESTS["program_beside_it"]):
        assert len({manifest(home, **keys).fingerprint for home in homes}) == 1


async def test_a_manifest_whose_url_was_edited_is_asked_anew(tmp_path: Path) -> None:
    calls = SharedCalls()
    async with serving(http(200, "old")) as old, serving(http(200, "new")) as new:
        said = []
        for server in (old, old, new, old):
            call = {"url": f"http://127.0.0.1:{server.port}/", "allow_cidrs": ["127.0.0.1/32"]}
            registry = ToolRegistry([manifest(tmp_path, http=call)], calls=calls)
            output = await run_agent(CONFIG, registry=registry, model=ScriptedModel([ask(), DONE]))
            said += seen(output)
    assert said == [("old", False), ("old", True), ("new", False), ("old", True)]


async def test_the_journal_tells_which_version_of_a_manifest_a_run_had(tmp_path: Path) -> None:
    tool, journal = manifest(tmp_path, http=HTTP), MemoryJournal()
    await run_agent(CONFIG, registry=ToolRegistry([tool]), model=ScriptedModel([DONE]), journal=journal, run_id="r")
    told = str(journal.load("r")["agent"][0].record())
    assert str(tool.fingerprint) in told
    assert "one.example" not in told


class Tenant(Look):
    """The tool `look`, which asks for the secret TOKEN and tells whose it is."""

    def __init__(self, calls: SharedCalls, value: str | None, *, once: bool = False) -> None:
        super().__init__(calls)
        self.secrets = Secrets(["TOKEN"], env={} if value is None else {"TOKEN": value})
        self.once = once

    async def execute(self, args: dict[str, Any], context: ToolContext) -> Any:
        self.append(args)
        if self.once and len(self) > 1:
            return {"of": "the same"}
        try:
            return {"of": context.secret("TOKEN")[:3]}
        except ToolError:
            return {"of": "nobody"}

    async def told(self, *replies: str) -> Any:
        return seen(await run(self, *(replies or [ask()]), secrets=self.secrets))


async def test_an_answer_is_kept_for_those_alone_who_have_the_same_secret(backend: Backend) -> None:
    calls = SharedCalls(backend.store)
    one, two, none = (Tenant(calls, value) for value in ("one-of-the-tenants", "two-of-the-tenants", None))
    for each, name in ((one, "one"), (two, "two"), (none, "nobody")):
        told = f'{{"of":"{name}"}}'
        assert await each.told() == [(told, False)]
        assert await each.told() == [(told, True)]
    assert await Tenant(calls, "two-of-the-tenants").told() == [('{"of":"two"}', True)]
    assert [len(each) for each in (one, two, none)] == [1, 1, 1]


async def test_an_answer_that_took_a_secret_stays_in_its_process(redis_server: RealServer) -> None:
    calls = SharedCalls(RedisCallStore(RedisServer(redis_server.url)))
    assert await Tenant(calls, "one-of-the-tenants").told(ask(), ask()) == [('{"of":"one"}', n > 0) for n in range(2)]
    assert list(redis_server.client.scan_iter()) == []
    another_process = SharedCalls(RedisCallStore(RedisServer(redis_server.url)))
    assert await Tenant(another_process, "one-of-the-tenants").told() == [('{"of":"one"}', False)]


async def test_a_secret_that_a_tool_asked_for_once_binds_all_its_answers() -> None:
    calls = SharedCalls()
    one = Tenant(calls, "one-of-the-tenants", once=True)
    assert [cached for _, cached in await one.told(ask('"a"'), ask('"b"'), ask('"b"'))] == [False, False, True]
    two = Tenant(calls, "two-of-the-tenants")
    assert await two.told(ask('"b"')) == [('{"of":"two"}', False)]


def test_a_secret_in_an_argument_counts_by_its_value_and_stands_in_no_key() -> None:
    store = MemoryCallStore()
    calls, told, keys = SharedCalls(store), [], set()
    for value in ("one-of-the-tenants", "two-of-the-tenants", "one-of-the-tenants"):
        look = Look(calls)
        look.answer = partial(lambda calls: calls[-1]["token"][7:10], look)
        secrets = Secrets(["TOKEN"], env={"TOKEN": value})
        engine = Engine(look.registry, store=MemoryRunStore(), secrets=secrets)
        config = {"q": "x", "token": "Bearer {{env.TOKEN}}"}
        flow = {"id": "w", "env": ["TOKEN"], "nodes": [{"tool": "look", "config": config}]}
        told.append((engine.run_sync(load_workflow(flow)).outputs["look"], len(look)))
        fill = {"at": ["token"], "parts": ["Bearer ", {"env": "TOKEN"}]}
        keys.add(key_of(look.registry.get("look"), [config, fill]))
    assert told == [("one", 1), ("two", 1), ("one", 0)]
    assert len(keys) == 1
    assert len(store._texts) == 0
    private = calls.answers._private._texts
    assert len(private) == 2
    assert not keys & private.keys()
    assert not any("tenants" in key for key in private)


async def test_no_secret_stands_in_what_redis_keeps(redis_server: RealServer) -> None:
    secrets = Secrets(["TOKEN"], env={"TOKEN": "hunter2-hunter2"})
    look = Look(SharedCalls(RedisCallStore(RedisServer(redis_server.url))))
    look.answer = lambda: {"told": "hunter2-hunter2"}
    await run(look, ask('"private"'), secrets=secrets)
    output = await run(look, ask('"private"'), secrets=secrets)
    assert [cached for _, cached in seen(output)] == [True]
    kept = b"".join(key + redis_server.client.get(key) for key in redis_server.client.scan_iter())
    assert b"told" in kept
    assert b"hunter2" not in kept
    assert b"private" not in kept


async def test_cache_that_cannot_be_asked_costs_only_the_calls_that_it_would_save(tmp_path: Path, caplog: Any) -> None:
    with real_server(tmp_path) as server:
        look = Look(SharedCalls(RedisCallStore(RedisServer(server.url, name="REDIS_URL"))))
        await run(look, ask())
    output = await run(look, ask(), ask())
    assert [cached for _, cached in seen(output)] == [False, False]
    assert "cached answers cannot be read: Redis (REDIS_URL) cannot be reached" in caplog.text


async def test_what_another_program_put_there_is_not_an_answer(redis_server: RealServer) -> None:
    look = Look(SharedCalls(RedisCallStore(RedisServer(redis_server.url))))
    await run(look, ask())
    (key,) = redis_server.client.scan_iter()
    for planted in (b"no json", b"\xff", b"[]", b'{"secrets": 5}', b'{"secrets": [["x"]]}', b'{"secrets": ["x"]}'):
        redis_server.client.set(key, planted)
        assert [cached for _, cached in seen(await run(look, ask()))] == [False]


OTHER = """
import asyncio, sys
from agent_core import run_agent
from agent_core.models import ScriptedModel
from utools import Tool, ToolRegistry
from utools.calls.shared import SharedCalls
from utools.calls.store_redis import RedisCallStore
from utools.databases.redis_server import RedisServer
schema = {"type": "object", "properties": {"q": {}, "token": {"type": "string"}}}
look = Tool("look", "Looks.", schema, lambda args, context: "made", effect="read", cache={"ttl": 60})
registry = ToolRegistry([look], calls=SharedCalls(RedisCallStore(RedisServer(sys.argv[1]))))
config = {"model": "scripted", "max_steps": 9, "allowed_tools": ["look"], "prompt": "Go."}
asked = '{"type": "action", "thought": "", "tool": "look", "args": {"q": "x"}}'
model = ScriptedModel([asked, '{"type": "final", "thought": "", "answer": "done"}'])
step = asyncio.run(run_agent(config, registry=registry, model=model)).trace[0]
print(step["observation"], step["cached"])
"""


async def test_processes_share_answers_where_they_share_a_server(redis_server: RealServer) -> None:
    await run(Look(SharedCalls(RedisCallStore(RedisServer(redis_server.url)))), ask())
    command = [sys.executable, "-c", OTHER, redis_server.url]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    assert done.stdout == '{"seen":1} True\n'

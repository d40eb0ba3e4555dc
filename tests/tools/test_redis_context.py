"""redis_context on a real server: what it keeps, what cannot get out of its prefix, what each failure says."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.run.sync import run_sync
from support.examples import examples
from support.redis_server import RealServer, real_server
from utools import ToolContext, ToolError, ToolRegistry, ToolResult
from utools.builtin.redis_context import redis_context


class Keys:
    """The tool, as an author has set it up."""

    def __init__(self, url: str | None, **preset: Any) -> None:
        self.registry = ToolRegistry([redis_context()])
        self.url = url
        self.preset = {"prefix": "mine", "url_env": "KEYS_URL", **preset}

    async def __call__(self, op: str, key: str | None = None, **args: Any) -> ToolResult:
        named = {} if key is None else {"key": key}
        context = ToolContext(secret=self._secret)
        return await self.registry.execute("redis_context", {**self.preset, "op": op, **named, **args}, context)

    async def output(self, op: str, key: str | None = None, **args: Any) -> Any:
        result = await self(op, key, **args)
        assert result.success, result.error
        return result.output

    async def error(self, op: str, key: str | None = None, **args: Any) -> str:
        result = await self(op, key, **args)
        assert not result.success
        return str(result.error)

    def _secret(self, name: str) -> str:
        if name != "KEYS_URL" or self.url is None:
            raise ToolError(f"the secret {name} is not allowed")
        return self.url


@pytest.fixture
def keys(redis_server: RealServer) -> Keys:
    return Keys(redis_server.url)


async def test_values_come_back_as_text_or_as_json(keys: Keys, redis_server: RealServer) -> None:
    assert await keys.output("get", "a") == {"key": "a", "found": False, "value": None}
    assert await keys.output("set", "a", value="17") == {"key": "a", "stored": True}
    assert await keys.output("get", "a") == {"key": "a", "found": True, "value": "17", "ttl": None}
    assert (await keys.output("get", "a", json=True))["value"] == 17
    await keys.output("set", "b", value={"n": ["é", None]})
    assert (await keys.output("get", "b"))["value"] == '{"n": ["é", null]}'
    assert (await keys.output("get", "b", json=True))["value"] == {"n": ["é", None]}
    assert redis_server.client.get("mine:a") == b"17"
    assert await keys.output("delete", "a") == {"key": "a", "deleted": True}
    assert await keys.output("delete", "a") == {"key": "a", "deleted": False}


async def test_lists_grow_and_come_back_whole(keys: Keys) -> None:
    assert await keys.output("append", "log", value="one") == {"key": "log", "items": 1}
    assert await keys.output("append", "log", value={"n": 2}) == {"key": "log", "items": 2}
    assert (await keys.output("get", "log"))["value"] == ["one", '{"n": 2}']


async def test_keys_expire(keys: Keys, redis_server: RealServer) -> None:
    await keys.output("set", "a", value="x", ttl=60)
    await keys.output("append", "b", value="x", ttl=60)
    assert [59 < redis_server.client.pttl(f"mine:{key}") / 1000 <= 60 for key in "ab"] == [True, True]
    assert 59 < (await keys.output("get", "a"))["ttl"] <= 60
    await keys.output("append", "b", value="y")
    assert redis_server.client.ttl("mine:b") > 0
    await keys.output("set", "a", value="x")
    assert (await keys.output("get", "a"))["ttl"] is None
    await keys.output("set", "c", value="x", ttl=1e300)
    assert redis_server.client.ttl("mine:c") > 10**9


async def test_many_that_append_at_once_lose_nothing(keys: Keys) -> None:
    await asyncio.gather(*(keys.output("append", "log", value=str(each)) for each in range(100)))
    assert sorted((await keys.output("get", "log"))["value"], key=int) == [str(each) for each in range(100)]


async def test_only_the_keys_under_the_prefix_are_listed(keys: Keys, redis_server: RealServer) -> None:
    for key in ("mine:a", "mine:b:1", "mine:b:2", "mine", "mines:x", "theirs:mine:a", "Mine:a"):
        redis_server.client.set(key, "x")
    assert await keys.output("list") == {"keys": ["a", "b:1", "b:2"]}
    assert await keys.output("list", starts_with="b:") == {"keys": ["b:1", "b:2"]}
    assert await keys.output("list", starts_with="zz") == {"keys": []}


async def test_list_of_very_many_keys_says_that_there_are_more(keys: Keys, redis_server: RealServer) -> None:
    redis_server.client.mset(
        {f"mine:{each}": "x" for each in range(3000)} | {f"no:{each}": "x" for each in range(3000)}
    )
    listed = await keys.output("list")
    assert (len(listed["keys"]), listed["truncated"]) == (1000, "there are more than 1000 keys")


GLOBS = ["*", "?", "[a-z]", "[^x]", "\\", "\\*", "a\\", "[", "]", "*]", "-", "^", "mine:*", "../x", "{x}", "é*"]


async def test_glob_characters_are_letters_like_any_other(keys: Keys, redis_server: RealServer) -> None:
    redis_server.client.mset({"other": "x", "mine:plain": "x", "mines": "x", "mine:a": "x"})
    for key in GLOBS:
        await keys.output("set", key, value="x")
        assert key in (await keys.output("list", starts_with=key))["keys"]
        assert all(each.startswith(key) for each in (await keys.output("list", starts_with=key))["keys"])
        assert (await keys.output("delete", key))["deleted"]
    assert sorted(redis_server.client.scan_iter()) == [b"mine:a", b"mine:plain", b"mines", b"other"]


async def test_prefix_with_glob_characters_lists_its_own_keys_only(redis_server: RealServer) -> None:
    redis_server.client.mset({"xyz:a": "x", "*:a": "x", "[a-z]:b": "x"})
    assert await Keys(redis_server.url, prefix="*").output("list") == {"keys": ["a"]}
    assert await Keys(redis_server.url, prefix="[a-z]").output("list") == {"keys": ["b"]}


@given(st.text(min_size=1, max_size=20) | st.sampled_from(GLOBS), st.sampled_from(["get", "set", "append", "delete"]))
@examples(1.5)
def test_no_key_reaches_out_of_the_prefix(running_redis: RealServer, key: str, op: str) -> None:
    running_redis.client.flushall()
    running_redis.client.mset({"outside": "x", "mine": "x", "min": "x", ":": "x"})
    args = {"value": "y"} if op in ("set", "append") else {}

    async def call() -> tuple[ToolResult, ToolResult]:
        keys = Keys(running_redis.url)
        return await keys(op, key, **args), await keys("list", starts_with=key)

    done, listed = run_sync(call)
    left = set(running_redis.client.scan_iter())
    assert left >= {b"outside", b"mine", b"min", b":"}
    assert all(each.startswith(b"mine:") for each in left - {b"outside", b"mine", b"min", b":"})
    assert done.success == listed.success == key.isprintable()


ODD = {"NUL": "a\0b", "newline": "a\nSET x 1", "carriage return": "\r\n", "right to left": "a\u202eb"}
ODD |= {"zero width": "a\u200bb", "private use": "\ue000", "lone surrogate": "\ud800", "soft hyphen": "a\u00adb"}


@pytest.mark.parametrize("key", ODD.values(), ids=ODD)
async def test_control_and_invisible_characters_are_refused(keys: Keys, redis_server: RealServer, key: str) -> None:
    for op, args in (("get", {}), ("set", {"value": "x"}), ("append", {"value": "x"}), ("delete", {})):
        assert "holds a control or an invisible character" in await keys.error(op, key, **args)
    assert "the starts_with" in await keys.error("list", starts_with=key)
    assert "the prefix" in await Keys(keys.url, prefix=key).error("get", "a")
    assert redis_server.client.dbsize() == 0


async def test_one_letter_written_in_two_ways_is_one_key(keys: Keys) -> None:
    await keys.output("set", "e\u0301", value="x")
    assert (await keys.output("get", "é"))["found"]
    assert await keys.output("list") == {"keys": ["é"]}


async def test_model_neither_sees_nor_sends_what_only_the_author_sets() -> None:
    (shown,) = ToolRegistry([redis_context()]).definitions()
    shape = shown["function"]["parameters"]
    assert set(shape["properties"]) == {"op", "key", "value", "ttl", "json", "starts_with"}


def test_reading_ops_are_reads_and_the_others_writes() -> None:
    effects = {op: redis_context().effect_of({"op": op}) for op in ("get", "list", "set", "append", "delete", "other")}
    assert [op for op, effect in effects.items() if effect == "read"] == ["get", "list"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"op": "get"}, "get needs key"),
    ({"op": "set", "key": "a"}, "set needs value"),
    ({"op": "get", "key": "a", "value": "x"}, "get takes no value"),
    ({"op": "list", "key": "a", "ttl": 1}, "list takes no key, ttl"),
    ({"op": "append", "key": "a", "value": "x" * 300_000}, "the value takes 300000 bytes; at most 262144 are stored"),
    ({"op": "set", "key": "a", "value": "xx", "max_bytes": 1}, "the value takes 2 bytes; at most 1 are stored"),
    ({"op": "set", "key": "a", "value": "\ud800"}, "lone surrogate"),
    ({"op": "set", "key": "", "value": "x"}, "/key"),
    ({"op": "set", "key": "x" * 513, "value": "x"}, "/key"),
    ({"op": "set", "key": "a", "value": "x", "ttl": 0}, "/ttl"),
]


@pytest.mark.parametrize(("args", "told"), WRONG)
async def test_what_is_wrong_with_the_arguments_is_told(keys: Keys, args: dict[str, Any], told: str) -> None:
    assert told in await keys.error(**args)


async def test_value_of_another_type_is_told_with_its_key(keys: Keys, redis_server: RealServer) -> None:
    redis_server.client.set("mine:text", "x")
    redis_server.client.hset("mine:hash", "a", "b")
    told = await keys.error("append", "text", value="y")
    assert told == "the key 'text' holds another type of value than append is for; delete it first"
    assert await keys.error("get", "hash") == "the key 'hash' holds a hash; only texts and lists can be read here"
    assert (await keys.output("get", "text"))["value"] == "x"


async def test_what_is_too_large_or_no_text_or_no_json_is_told(keys: Keys, redis_server: RealServer) -> None:
    redis_server.client.set("mine:large", b"x" * 300_000)
    redis_server.client.rpush("mine:long", *(["x" * 1000] * 400))
    redis_server.client.rpush("mine:full", *(["x"] * 10_000))
    redis_server.client.set("mine:bytes", b"\xff\xfe")
    redis_server.client.set("mine:words", "no json")
    assert "the value of 'large' takes 300000 bytes; at most 262144 are read" in await keys.error("get", "large")
    assert "the value of 'long' takes" in await keys.error("get", "long")
    assert "has 10000 items, and may have no more" in await keys.error("append", "full", value="x")
    assert "the key 'bytes' holds bytes that are no text" in await keys.error("get", "bytes")
    assert "the key 'words' holds a text that is not JSON" in await keys.error("get", "words", json=True)


async def test_url_comes_from_a_secret_or_from_the_host(redis_server: RealServer, monkeypatch: Any) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    hosts = Keys(None)
    assert "the secret KEYS_URL is not allowed" in await hosts.error("get", "a")
    del hosts.preset["url_env"]
    assert "this host has no Redis: set REDIS_URL, or name" in await hosts.error("get", "a")
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    await hosts.output("set", "a", value="x")
    assert redis_server.client.get("mine:a") == b"x"


@pytest.mark.parametrize("prefix", ["agent-core", "agent-core:", "agent-core:context", "Agent-Core:x"])
async def test_what_the_host_keeps_on_its_own_server_is_out_of_reach(prefix: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1")
    hosts = Keys(None, prefix=prefix)
    del hosts.preset["url_env"]
    assert "is the host's own" in await hosts.error("list")


async def test_prefix_that_is_none_is_refused(keys: Keys) -> None:
    assert "the prefix is empty" in await Keys(keys.url, prefix=":").error("list")


async def test_server_that_is_gone_is_told_without_its_url(tmp_path: Path) -> None:
    with real_server(tmp_path, "--requirepass", "hunter22") as server:
        keys = Keys(f"redis://:wrong-word@127.0.0.1:{server.port}")
        for refused in (await keys.error("get", "a"), await Keys(server.url).error("get", "a")):
            assert refused == "Redis (KEYS_URL) refuses the login; check the user and the password in its URL"
        keys = Keys(f"redis://:hunter22@127.0.0.1:{server.port}")
        await keys.output("set", "a", value="x")
    for op, args in (("get", {}), ("set", {"value": "x"})):
        gone = await keys(op, "a", **args)
        assert gone.error == "Redis (KEYS_URL) cannot be reached: Connection refused"
        assert gone.metadata == {"transient": True}
    assert "cannot be used; write redis://HOST" in await Keys("hunter22").error("get", "a")
    assert "hunter22" not in await Keys("hunter22").error("get", "a")


async def test_server_without_memory_says_so_and_still_reads_and_deletes(tmp_path: Path) -> None:
    with real_server(tmp_path, "--maxmemory-policy", "noeviction") as server:
        keys = Keys(server.url)
        await keys.output("set", "small", value="x")
        server.fill_up()
        for op in ("set", "append"):
            full = await keys(op, "more", value="x")
            assert "Redis (KEYS_URL) is out of memory, so nothing was written" in str(full.error)
            assert full.metadata == {}
        assert (await keys.output("get", "small"))["value"] == "x"
        assert await keys.output("list") == {"keys": ["small"]}
        assert (await keys.output("delete", "small"))["deleted"]


WRITES = {"set": ("set", {"value": "x"}), "append": ("eval", {"value": "x"}), "delete": ("unlink", {})}


@pytest.mark.parametrize(("op", "command", "args"), [(op, *more) for op, more in WRITES.items()], ids=WRITES)
async def test_write_whose_connection_is_killed_in_mid_command_is_cut_off(
    keys: Keys, redis_server: RealServer, op: str, command: str, args: dict[str, Any]
) -> None:
    await keys.output("list")
    redis_server.client.client_pause(60_000, all=False)  # writes wait
    under_way = asyncio.create_task(keys(op, "a", **args))
    await redis_server.until_waiting(command)
    await asyncio.to_thread(redis_server.kill_clients)
    cut = await under_way
    redis_server.client.client_unpause()
    assert cut.metadata == {"transient": True, "cut_off": True}
    assert "Redis (KEYS_URL) broke off before its answer" in str(cut.error)


async def test_server_that_hangs_in_mid_command_leaves_it_cut_off(redis_server: RealServer) -> None:
    keys = Keys(f"{redis_server.url}?socket_timeout=1")
    await keys.output("set", "a", value="x")
    with redis_server.hanging():
        cut = await keys("append", "b", value="x")
    assert "Redis (KEYS_URL) gave no answer in time" in str(cut.error)
    assert cut.metadata == {"transient": True, "cut_off": True}

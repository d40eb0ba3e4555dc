"""`redis_context`: small values and lists in Redis, all under a prefix that the author sets."""

import json
import os
import unicodedata
from collections.abc import Callable
from typing import Any

from utools.call_arguments import check_operation
from utools.context.store_redis import LONGEST
from utools.databases.redis_server import VARIABLE, RedisServer, WrongType
from utools.errors import ToolError
from utools.json_text import to_text
from utools.tool import Args, Tool, ToolContext

BYTES, LARGEST = 2**18, 2**23
ITEMS = 10_000
KEYS = 1000
HOST_PREFIX = "agent-core:"
"""The host's own keys on its server (conversations, cached answers), which no tool reads or writes."""
SCAN_COUNT = 1000

# by op: the arguments that it needs, and those that it may have
ARGUMENTS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "get": (frozenset({"key"}), frozenset({"json"})),
    "set": (frozenset({"key", "value"}), frozenset({"ttl"})),
    "append": (frozenset({"key", "value"}), frozenset({"ttl"})),
    "delete": (frozenset({"key"}), frozenset()),
    "list": (frozenset(), frozenset({"starts_with"})),
}
ALWAYS_ALLOWED = frozenset({"op", "prefix", "url_env", "max_bytes"})

# The server runs each script as a whole. KEYS[1] is the key; sizes are checked before anything is sent.
GET = """
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind == 'none' then return {kind} end
local size = kind == 'string' and redis.call('STRLEN', KEYS[1]) or 0
if kind == 'list' then size = redis.call('MEMORY', 'USAGE', KEYS[1], 'SAMPLES', 0) or 0 end
if size > tonumber(ARGV[1]) then return {'large', size} end
local value = false
if kind == 'string' then value = redis.call('GET', KEYS[1]) end
if kind == 'list' then value = redis.call('LRANGE', KEYS[1], 0, -1) end
return {kind, value, redis.call('PTTL', KEYS[1])}
"""
APPEND = """
if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[3]) then return -1 end
local count = redis.call('RPUSH', KEYS[1], ARGV[1])
if ARGV[2] ~= '' then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return count
"""

NAME = {"type": "string", "minLength": 1, "maxLength": 256}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "op": {"enum": list(ARGUMENTS), "description": "get, set, append (to a list), delete or list (the keys)."},
        "key": {"type": "string", "minLength": 1, "maxLength": 512, "description": "Its name."},
        "value": {"description": "set, append: a text, stored as it is, or any other JSON value, stored as JSON."},
        "ttl": {"type": "number", "exclusiveMinimum": 0, "description": "set, append: seconds the key is kept."},
        "json": {"type": "boolean", "description": "get: read what was stored as JSON; else it comes as text."},
        "starts_with": {"type": "string", "maxLength": 512, "description": "list: only keys that start so."},
        "prefix": {
            **NAME,
            "x-author": True,
            "x-narrow": "prefix",
            "description": "All keys lie under it, apart from it by a colon.",
        },
        "url_env": {**NAME, "x-author": True, "description": f"Secret with the server's URL, else {VARIABLE}."},
        "max_bytes": {
            "description": "Bytes that a value may have.",
            "type": "integer",
            "minimum": 1,
            "maximum": LARGEST,
            "default": BYTES,
            "x-author": True,
            "x-narrow": "minimum",
        },
    },
    "required": ["op", "prefix"],
}
OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "key": {"type": "string"},
        "found": {"type": "boolean"},
        "value": {},
        "ttl": {"type": ["number", "null"]},
        "stored": {"const": True},
        "items": {"type": "integer"},
        "deleted": {"type": "boolean"},
        "keys": {"type": "array", "items": {"type": "string"}},
        "truncated": {"type": "string"},
    },
    "additionalProperties": False,
}


def redis_context() -> Tool:
    """Return the tool `redis_context`. The author decides by the preset `prefix` where it reads and writes."""
    servers: dict[str, RedisServer] = {}

    def server_at(url: str, name: str) -> RedisServer:
        return servers.setdefault(url, RedisServer(url, name=name))

    async def execute(args: Args, context: ToolContext) -> Any:
        check_operation(args, ARGUMENTS, ALWAYS_ALLOWED)
        space = _space(args["prefix"], shared="url_env" not in args)
        server = _server(args, context, server_at)
        try:
            return await OPS[args["op"]](server, space, args)
        except WrongType:
            key, op = args.get("key"), args["op"]
            raise ToolError(
                "the key {key!r} holds another type of value than {op} is for; delete it first", key=key, op=op
            ) from None

    return Tool(
        code="redis_context",
        description="Keep values in Redis: get, set or delete a key, append to a list, list the keys.",
        config_schema=SCHEMA,
        output_schema=OUTPUT,
        examples=[
            {
                "user": "What is kept under the key greeting?",
                "args": {"op": "get", "key": "greeting"},
                "output": {"key": "greeting", "found": True, "value": "good morning", "ttl": None},
                "answer": "good morning",
            }
        ],
        execute=execute,
        effect={"argument": "op", "read": ["get", "list"]},
    )


async def _get(server: RedisServer, space: bytes, args: Args) -> dict[str, Any]:
    limit = args.get("max_bytes", BYTES)
    kind, *more = await server.ask("EVAL", GET, 1, _key(space, args), limit)
    match kind:
        case b"none":
            return {"key": args["key"], "found": False, "value": None}
        case b"large":
            raise ToolError(
                "the value of {key!r} takes {size} bytes; at most {limit} are read",
                key=args["key"],
                size=more[0],
                limit=limit,
            )
        case b"string" | b"list":
            value, left = more
            decoded = [_decode(each, args) for each in value] if isinstance(value, list) else _decode(value, args)
            return {"key": args["key"], "found": True, "value": decoded, "ttl": left / 1000 if left >= 0 else None}
        case _:
            raise ToolError(
                "the key {key!r} holds a {kind}; only texts and lists can be read here",
                key=args["key"],
                kind=kind.decode(),
            )


async def _set(server: RedisServer, space: bytes, args: Args) -> dict[str, Any]:
    expires = ("PX", _milliseconds(args["ttl"])) if "ttl" in args else ()
    await server.ask("SET", _key(space, args), _encode(args), *expires)
    return {"key": args["key"], "stored": True}


async def _append(server: RedisServer, space: bytes, args: Args) -> dict[str, Any]:
    expires = _milliseconds(args["ttl"]) if "ttl" in args else ""
    count = await server.ask("EVAL", APPEND, 1, _key(space, args), _encode(args), expires, ITEMS)
    if count < 0:
        raise ToolError("the list {key!r} has {count} items, and may have no more", key=args["key"], count=ITEMS)
    return {"key": args["key"], "items": count}


async def _delete(server: RedisServer, space: bytes, args: Args) -> dict[str, Any]:
    return {"key": args["key"], "deleted": bool(await server.ask("UNLINK", _key(space, args)))}


async def _list(server: RedisServer, space: bytes, args: Args) -> dict[str, Any]:
    start = space + _check_name(args.get("starts_with", ""), "starts_with")
    found: set[bytes] = set()
    cursor: bytes | int = 0
    while True:
        cursor, keys = await server.ask("SCAN", cursor, "MATCH", _escape_glob(start) + b"*", "COUNT", SCAN_COUNT)
        found.update(key for key in keys if key.startswith(start))
        if int(cursor) == 0 or len(found) > KEYS:
            break
    names = sorted(key[len(space) :].decode("utf-8", "replace") for key in found)
    more = {"truncated": f"there are more than {KEYS} keys"} if len(names) > KEYS else {}
    return {"keys": names[:KEYS], **more}


OPS = {"get": _get, "set": _set, "append": _append, "delete": _delete, "list": _list}


def _server(args: Args, context: ToolContext, server_at: Callable[[str, str], RedisServer]) -> RedisServer:
    if "url_env" in args:
        return server_at(context.secret(args["url_env"]), args["url_env"])
    if url := os.environ.get(VARIABLE):
        return server_at(url, VARIABLE)
    raise ToolError(
        "this host has no Redis: set {variable}, or name a secret with a URL in the preset url_env", variable=VARIABLE
    )


def _space(prefix: str, *, shared: bool) -> bytes:
    """Return the beginning of every key. The colon separates `team` from `teams`."""
    space = _check_name(prefix, "prefix").removesuffix(b":") + b":"
    if space == b":":
        raise ToolError("the prefix is empty")
    if shared and space.lower().startswith(HOST_PREFIX.encode()):
        raise ToolError(
            "the prefix {prefix!r} is the host's own; take one that does not start with {own}",
            prefix=prefix,
            own=HOST_PREFIX,
        )
    return space


def _key(space: bytes, args: Args) -> bytes:
    return space + _check_name(args["key"], "key")


def _check_name(name: str, what: str) -> bytes:
    """Return a name as bytes. Redis compares bytes, so it is normalised: names that look alike must be one name."""
    if not name.isprintable():
        raise ToolError("the {what} {name!r} holds a control or an invisible character", what=what, name=name)
    return unicodedata.normalize("NFC", name).encode()


def _escape_glob(text: bytes) -> bytes:
    """Return the text as a glob that fits only itself."""
    return b"".join(b"\\" + bytes([byte]) if byte in rb"*?[]^-\\" else bytes([byte]) for byte in text)


def _encode(args: Args) -> bytes:
    value, limit = args["value"], args.get("max_bytes", BYTES)
    try:
        text = to_text(value).encode()
    except UnicodeEncodeError:
        raise ToolError("the value holds a lone surrogate, which is not text") from None
    if len(text) > limit:
        raise ToolError("the value takes {size} bytes; at most {limit} are stored", size=len(text), limit=limit)
    return text


def _decode(value: bytes, args: Args) -> Any:
    try:
        text = value.decode()
        return json.loads(text) if args.get("json") else text
    except UnicodeDecodeError:
        raise ToolError("the key {key!r} holds bytes that are no text", key=args["key"]) from None
    except (ValueError, RecursionError):
        raise ToolError("the key {key!r} holds a text that is not JSON; get it without json", key=args["key"]) from None


def _milliseconds(ttl: float) -> int:
    return max(1, round(min(ttl, LONGEST) * 1000))

"""RedisContextStore: conversations in Redis, for hosts that are several processes or machines."""

import json
import math
import re
from typing import Any

from utools.context.store import Summary
from utools.context.turns import Turn
from utools.databases.redis_server import RedisServer, WrongType
from utools.errors import ToolError

PREFIX = "agent-core:context:"
SCAN_COUNT = 1000
LONGEST = 100 * 365 * 86400
"""Seconds; Redis refuses times that are too far ahead."""

# A session is one hash, so that it expires, is deleted and is evicted as a whole: turn id -> number, a space, messages.
# Only the last turn is ever deleted, so the length of the hash is a number that no turn has. The summary's field is the
# empty text, which is no turn's id: "summary", a space, how many turns it stands for, a space, its text. It is never
# deleted: one of no turns is none.
APPEND = """
local kept = redis.call('HGET', KEYS[1], ARGV[1])
if kept then return string.match(kept, '^%d+ (.*)$') == ARGV[2] and 1 or 0 end
redis.call('HSET', KEYS[1], ARGV[1], redis.call('HLEN', KEYS[1]) .. ' ' .. ARGV[2])
if ARGV[3] ~= '' then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1
"""

KEEP = """
local kept = redis.call('HGET', KEYS[1], '')
local turns = redis.call('HLEN', KEYS[1]) - (kept and 1 or 0)
if turns < tonumber(ARGV[1]) then return 0 end
if kept and tonumber(string.match(kept, '^summary (%d+)')) >= tonumber(ARGV[1]) then return 0 end
return redis.call('HSET', KEYS[1], '', 'summary ' .. ARGV[1] .. ' ' .. ARGV[2])
"""

DROP = """
local count, last, highest, kept = 0, nil, -1, nil
local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do
    local number = tonumber(string.match(fields[at + 1], '^(%d+) '))
    if fields[at] == '' then kept = fields[at + 1]
    elseif number then
        count = count + 1
        if number > highest then last, highest = fields[at], number end
    end
end
if count == 0 or count ~= tonumber(ARGV[1]) then return 0 end
if count == 1 then return redis.call('DEL', KEYS[1]) end
if kept and tonumber(string.match(kept, '^summary (%d+)')) == count then
    redis.call('HSET', KEYS[1], '', 'summary 0 ""')
end
return redis.call('HDEL', KEYS[1], last)
"""


class RedisContextStore:
    """A ContextStore on a Redis server. One script adds a turn; the server runs it as a whole."""

    def __init__(self, server: RedisServer, *, prefix: str = PREFIX) -> None:
        self._server, self._prefix = server, prefix

    async def append(self, session: str, turn_id: str, turn: Turn, *, ttl: float | None = None) -> bool:
        expires = "" if ttl is None else str(math.ceil(min(ttl, LONGEST) * 1000))
        arguments = (self._key(session), _bytes(turn_id), json.dumps(turn), expires)
        return bool(await self._ask(session, "EVAL", APPEND, 1, *arguments))

    async def turns(self, session: str) -> list[Turn]:
        stored = await self._ask(session, "HVALS", self._key(session))
        try:
            numbered = [value.split(b" ", 1) for value in stored if not value.startswith(b"summary ")]
            turns = [_turn(text) for _, text in sorted((int(number), text) for number, text in numbered)]
        except ValueError:
            raise ToolError(
                "{server}: the session {session!r} holds something that is no turn; "
                "clear it, or give it another session_id",
                server=self._server.name,
                session=session,
            ) from None
        return turns

    async def summary(self, session: str) -> Summary | None:
        stored = await self._ask(session, "HGET", self._key(session), "")
        if stored is None:
            return None
        _, turns, text = stored.split(b" ", 2)
        return Summary(int(turns), json.loads(text)) if int(turns) else None

    async def keep_summary(self, session: str, summary: Summary) -> None:
        await self._ask(session, "EVAL", KEEP, 1, self._key(session), summary.turns, json.dumps(summary.text))

    async def seconds_left(self, session: str) -> float | None:
        left = int(await self._ask(session, "PTTL", self._key(session)))
        return left / 1000 if left >= 0 else None

    async def sessions(self) -> list[str]:
        pattern, cursor, found = re.sub(rb"([*?\[\]\\])", rb"\\\1", self._key("")) + b"*", b"0", set[bytes]()
        while True:
            cursor, keys = await self._server.ask("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT)
            found.update(keys)
            if int(cursor) == 0:
                return sorted(key[len(self._key("")) :].decode("utf-8", "surrogatepass") for key in found)

    async def drop_last(self, session: str, count: int) -> bool:
        return bool(await self._ask(session, "EVAL", DROP, 1, self._key(session), count))

    async def clear(self, session: str) -> bool:
        return bool(await self._server.ask("UNLINK", self._key(session)))

    async def _ask(self, session: str, *command: bytes | str | int) -> Any:
        try:
            return await self._server.ask(*command)
        except WrongType:
            raise ToolError(
                "{server}: another program keeps something under the key of the session {session!r}; "
                "use another session_id",
                server=self._server.name,
                session=session,
            ) from None

    def _key(self, session: str) -> bytes:
        return _bytes(self._prefix + session)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _turn(text: bytes) -> Turn:
    turn = json.loads(text)
    if not isinstance(turn, list) or not all(isinstance(each, dict) for each in turn):
        raise ValueError(turn)
    return turn

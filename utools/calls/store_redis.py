"""RedisCallStore: answers and rate limits of a host that is several processes or machines, by the server's clock."""

from uuid import uuid4

from utools.calls.store import Reservation
from utools.databases.redis_server import RedisServer

PREFIX = "agent-core:calls:"

# KEYS[1] is a sorted set: ticket -> when its slot comes up, in milliseconds.
RESERVE = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local count, span = tonumber(ARGV[1]), tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - span)
local start = now
if redis.call('ZCARD', KEYS[1]) >= count then
    local found = redis.call('ZRANGE', KEYS[1], -count, -count, 'WITHSCORES')
    start = math.max(now, tonumber(found[2]) + span)
end
if ARGV[3] ~= '' and start - now > tonumber(ARGV[3]) then return {start - now, 0} end
redis.call('ZADD', KEYS[1], string.format('%.0f', start), ARGV[4])
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', start - now + span))
return {start - now, 1}
"""


class RedisCallStore:
    """A CallStore on a Redis server."""

    def __init__(self, server: RedisServer, *, prefix: str = PREFIX) -> None:
        self._server, self._prefix = server, prefix

    async def get(self, key: str) -> str | None:
        text = await self._server.ask("GET", self._key("answer", key))
        return None if text is None else text.decode()

    async def put(self, key: str, text: str, ttl: float) -> None:
        await self._server.ask("SET", self._key("answer", key), text, "PX", max(1, round(ttl * 1000)))

    async def reserve(self, key: str, count: int, seconds: float, longest: float | None) -> Reservation:
        ticket, limit = uuid4().hex, "" if longest is None else str(int(longest * 1000))
        arguments = (str(count), str(round(seconds * 1000)), limit, ticket)
        wait, reserved = await self._server.ask("EVAL", RESERVE, 1, self._key("rate", key), *arguments)
        return Reservation(wait / 1000, ticket if reserved else None)

    async def cancel(self, key: str, ticket: str) -> None:
        await self._server.ask("ZREM", self._key("rate", key), ticket)

    def _key(self, kind: str, key: str) -> str:
        return f"{self._prefix}{kind}:{key}"

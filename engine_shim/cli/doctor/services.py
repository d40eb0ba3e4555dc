"""What a host has beside its files: Redis, the keys that sign journals, the tokens of its server."""

import asyncio
import os
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Final

from pydantic import ValidationError

from agent_core.errors import JournalError
from agent_core.evidence.variables import KEY_VARIABLE
from agent_core.journal.signature import VARIABLE as KEYS
from agent_core.run.retries import patience_of_host
from agent_core.run.secrets import signing_keys, verifying_keys
from engine_shim.cli import output
from engine_shim.cli.doctor.finding import Finding
from engine_shim.cli.parameters import ADDRESS, ENGINE
from engine_shim.errors import DefinitionError
from engine_shim.host.config import HostConfig, TemporalConfig
from engine_shim.service.tokens import Token, Tokens
from engine_shim.store.database import Database
from utools.databases.redis_server import VARIABLE as REDIS
from utools.databases.redis_server import RedisServer, redis_of_host
from utools.databases.store_address import StoreAddress, is_url
from utools.error_text import reason_of
from utools.errors import ToolError

ANSWER_S: Final = 3.0
"""How long a service may take to answer."""


def check_redis(store: StoreAddress, *, seconds: float = ANSWER_S) -> Finding:
    """Return whether the server of REDIS_URL answers. Its URL is not shown: it may hold a password."""
    try:
        server = redis_of_host()
    except DefinitionError as error:
        return Finding("Redis", "problem", error.message)
    if server is None:
        where = "are shared through the database of the store" if is_url(store) else "stay in each process"
        return Finding("Redis", "ok", f"{REDIS} is not set: cached answers and rate limits {where}")
    try:
        asyncio.run(_ping(server, seconds))
    except TimeoutError:
        why = f"no answer within {ANSWER_S:g} seconds"
    except (ToolError, OSError) as error:
        why = reason_of(error)
    else:
        return Finding("Redis", "ok", "it answers")
    return Finding("Redis", "problem", why, f"start the server that {REDIS} names, or name another there")


async def _ping(server: RedisServer, seconds: float) -> None:
    async with asyncio.timeout(ANSWER_S):
        try:
            await server.ask("PING")
        finally:
            await server.close()


def check_temporal(config: HostConfig) -> Finding:
    """Return whether the Temporal server is there, where this host's runs are driven by workers, or it names a
    server."""
    engine, address = os.environ.get(ENGINE) or config.engine, os.environ.get(ADDRESS) or config.temporal.address
    if engine not in ("process", "temporal"):
        return Finding("Temporal", "problem", f"{ENGINE} is {engine!r}", "set it to process or temporal, or unset it")
    if engine != "temporal" and "temporal" not in config.model_fields_set:
        return Finding("Temporal", "ok", "not used: each run is driven by the process that begins it")
    if engine == "temporal" and config.encrypt:
        message = "the history of Temporal would hold the records of an encrypted store in the clear"
        return Finding("Temporal", "problem", message, "leave `encrypt` or `engine` out")
    try:
        TemporalConfig(address=address)
    except ValidationError:
        return Finding("Temporal", "problem", f"{ADDRESS} is {address!r}", "write HOST:PORT")
    try:
        asyncio.run(_reach(address))
    except (OSError, TimeoutError) as error:
        why = f" within {ANSWER_S:g} seconds" if isinstance(error, TimeoutError) else f": {reason_of(error)}"
        advice = "start it (`temporal server start-dev`), or name another in temporal.address"
        return Finding("Temporal", "problem", f"no server answers at {address}{why}", advice)
    return Finding("Temporal", "ok", f"a server is there at {address}")


async def _reach(address: str) -> None:
    """Connect and leave: a client of Temporal would leave threads behind that outlive a command so short."""
    host, _, port = address.rpartition(":")
    async with asyncio.timeout(ANSWER_S):
        _, writer = await asyncio.open_connection(host, int(port))
    writer.close()


def check_journal_keys() -> Iterator[Finding]:
    """Yield whether journals are signed, and by which key."""
    if (found := verifying_keys()) is not None:
        found.check_keyring()
    keys = signing_keys()
    if keys is None:
        yield Finding("journal keys", "ok", f"{KEYS} and {KEY_VARIABLE} are not set: journals are not signed")
    else:
        first = keys.signer
        others = [kid for kid in (*keys.keys, *keys.public.keys) if kid != first]
        more = f", {', '.join(others)} only verify" if others else ""
        yield Finding("journal keys", "ok", f"{first} signs{more}", facts={"keys": [first, *others]})


def check_patience() -> Iterator[Finding]:
    """Yield nothing. DefinitionError where the variable of how long runs wait for their store is no time."""
    patience_of_host()
    yield from ()


def check_tokens(database: Database, tenants: Collection[str]) -> Iterator[Finding]:
    """Yield the tokens that a server of this store asks for."""
    try:
        tokens = Tokens(database).all()
    except JournalError as error:
        yield Finding("tokens", "problem", str(error))
        return
    yield from judge_tokens(tokens, tenants, datetime.now(UTC))


def judge_tokens(tokens: Collection[Token], tenants: Collection[str], now: datetime) -> Iterator[Finding]:
    """Yield how many there are, and those that are of no use any more."""
    if not tokens:
        message = "none: `agent-core serve` is open to every program on this machine, and to no other machine"
        yield Finding("tokens", "ok", message, facts={"tokens": 0})
        return
    yield Finding("tokens", "ok", output.count(len(tokens), "token"), facts={"tokens": len(tokens)})
    for token in tokens:
        bearer = token.principal
        revoke = f"`agent-core token revoke {bearer.id}`"
        if token.expires_at is not None and token.expires_at <= now:
            yield Finding(
                "tokens", "warning", f"the token of {bearer.name} expired on {token.expires_at:%Y-%m-%d}", revoke
            )
        elif bearer.tenant is not None and bearer.tenant not in tenants:
            message = f"the token of {bearer.name} is for the tenant {bearer.tenant}, which the configuration lacks"
            yield Finding("tokens", "warning", message, revoke)

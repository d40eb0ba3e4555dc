"""The command context: the conversations that this host's ContextManager stores."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import typer

from agent_core.errors import DefinitionError
from engine_shim.cli import output
from engine_shim.cli.store import open_named_store
from engine_shim.host.find import load_host_config
from engine_shim.store.open import shared_database
from utools.context.store import ContextStore
from utools.context.store_encrypted import EncryptedContextStore
from utools.context.store_sqlite import SqliteContextStore, default_path
from utools.context.turns import Turn
from utools.databases.store_address import StoreAddress, is_url
from utools.defaults import host_context_store
from utools.errors import ToolError

LONGEST = 60
"""How much of a session's last question is shown in a list."""
T = TypeVar("T")


def list_sessions(named: StoreAddress | None, config: Path | None, *, as_json: bool) -> int:
    """List the sessions: how many turns each has, and its last question."""

    async def load(store: ContextStore) -> dict[str, list[Turn]]:
        return {session: await store.turns(session) for session in await store.sessions()}

    found = _ask(named, config, load)
    if as_json:
        output.document([{"session_id": session, "turns": len(turns)} for session, turns in found.items()])
        return output.OK
    width = max(map(len, found), default=0)
    for session, turns in found.items():
        question = output.flatten(_question(turns), LONGEST)
        output.line(output.in_line(f"{session:<{width}}  {output.count(len(turns), 'turn'):>9}  {question}".rstrip()))
    if not found:
        output.line("no sessions")
    return output.OK


def show_session(session: str, named: StoreAddress | None, config: Path | None, *, as_json: bool) -> int:
    """Write a session's messages, turn by turn."""

    async def load(store: ContextStore) -> tuple[list[Turn], Any]:
        return await store.turns(session), await store.summary(session)

    turns, summary = _ask(named, config, load)
    if not turns:
        raise _unknown(session, named)
    if as_json:
        fields = {"session_id": session, "turns": turns}
        output.document({**fields, "summary": None if summary is None else summary._asdict()})
        return output.OK
    if summary is not None:
        output.line(f"summary of the first {output.count(summary.turns, 'turn')}: {summary.text}")
    for number, turn in enumerate(turns, 1):
        output.line(f"turn {number}")
        for message in turn:
            output.line(f"  {message['role']}: {_content(message)}")
    return output.OK


def clear_session(session: str, named: StoreAddress | None, config: Path | None, *, as_json: bool) -> int:
    """Delete a session for good."""
    if not _ask(named, config, lambda store: store.clear(session)):
        raise _unknown(session, named)
    return output.answer({"session_id": session, "cleared": True}, f"cleared {session}", as_json=as_json)


def _ask(named: StoreAddress | None, config: Path | None, ask: Callable[[ContextStore], Awaitable[T]]) -> T:
    """Return what the store answers that is named, else that of this host."""
    load_host_config(config)  # with the environment of `.env`
    is_file = named is not None and not is_url(named)
    with closing(open_named_store(None if is_file else named, config)) as runs:
        database = shared_database(runs)
        if named is None:
            store = host_context_store(database=database)
        elif is_file or database is None:
            store = SqliteContextStore(named)
        else:
            from utools.context.store_postgres import PostgresContextStore

            store = PostgresContextStore(database)
        if runs.contents.is_encrypted:  # without its key, it says which is missing
            store = EncryptedContextStore(store, runs.contents)
        return _ask_store(store, ask)


def _ask_store(store: ContextStore, ask: Callable[[ContextStore], Awaitable[T]]) -> T:
    async def work() -> T:
        return await ask(store)

    try:
        return asyncio.run(work())
    except ToolError as error:
        raise DefinitionError(f"the conversations cannot be read: {error}", where="context") from None


def _unknown(session: str, named: StoreAddress | None) -> typer.BadParameter:
    if named is None or is_url(named):
        return typer.BadParameter(f"there is no session {session!r}; `agent-core context list` names all")
    own = f"conversations have a file of their own, not that of the runs: {default_path()}, unless it is named"
    return typer.BadParameter(f"there is no session {session!r} in {named}; {own}")


def _question(turns: list[Turn]) -> str:
    asked = [message["content"] for message in turns[-1] if message["role"] == "user"] if turns else []
    return str(asked[0] or "") if asked else ""


def _content(message: dict[str, Any]) -> str:
    calls = [f"{each['function']['name']} {each['function']['arguments']}" for each in message.get("tool_calls") or ()]
    return output.in_line(" ".join(filter(None, [output.as_text(message.get("content") or ""), *calls])))

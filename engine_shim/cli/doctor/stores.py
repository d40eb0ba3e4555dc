"""The stores of a host: its runs, and whether each is as it was written; its conversations."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_core.errors import AgentCoreError, Newer
from agent_core.journal.intact import check_intact
from agent_core.journal.signature import Keys
from agent_core.run.secrets import verifying_keys
from engine_shim.cli import output
from engine_shim.cli.doctor.finding import Finding, keep_going
from engine_shim.cli.doctor.sqlite import Probe, probe, select
from engine_shim.errors import DefinitionError, EngineError
from engine_shim.store.database_sqlite import LAYOUT
from engine_shim.store.index import RunIndex
from engine_shim.store.journal_runs import list_runs
from engine_shim.store.open import check_encryption
from engine_shim.store.run_store import DatabaseRunStore, SqliteRunStore
from engine_shim.store.takeovers import MOST, describe_takeovers
from utools.context.store_sqlite import LAYOUT as CONVERSATIONS
from utools.databases.sqlite_file import Layout


def check_runs(
    store: SqliteRunStore, part: str, *, newest: int | None = None, wanted: str | None = None
) -> Iterator[Finding]:
    """Yield the store of runs: its file, how many runs it holds by status, and each that does not verify, of the
    `newest` ones where that is given."""
    found = probe(store.path, LAYOUT)
    yield judge_file(part, found, LAYOUT, "--store, AGENT_CORE_STORE or `store` in agent-core.yaml names another")
    if found.fault:
        return
    if not found.exists:
        yield from check_key(store, part, wanted)
        return
    if found.version != LAYOUT.version:
        yield Finding("runs", "warning", "not examined: the store has an older layout", "the next run upgrades it")
        return
    yield from look_into(store, part, newest=newest, wanted=wanted)


def check_key(store: DatabaseRunStore, part: str, wanted: str | None) -> Iterator[Finding]:
    """Yield whether an encrypted store, or one that is `wanted` to be at a place of the configuration, can be read and
    written here; nothing of a plain one."""
    part = part.replace("store", "encryption", 1)
    yield from keep_going(part, _find_key(store, part, wanted))


def _find_key(store: DatabaseRunStore, part: str, wanted: str | None) -> Iterator[Finding]:
    contents = store.contents
    if wanted is not None:
        check_encryption(store, wanted=True, where=wanted, temporal=False)
    if contents.is_encrypted:
        contents.check_key()
        yield Finding(part, "ok", f"runs are encrypted; {contents.variable} has the key")


def look_into(store: DatabaseRunStore, part: str, *, newest: int | None, wanted: str | None) -> Iterator[Finding]:
    """Yield how many runs a store holds by status, and each that does not verify, of the `newest` ones if that is
    given; none without the key of an encrypted store."""
    try:
        listed = list_runs(store)
        by_status = Counter(each.status for each in listed)
        words = ", ".join(f"{number} {status}" for status, number in sorted(by_status.items()))
        yield Finding("runs", "ok", words or "none", facts={"runs": dict(by_status)})
        yield from _find_endings(store, [each.run for each in listed if each.status == "paused"])
        encryption = list(check_key(store, part, wanted))
        if any(each.status == "problem" for each in encryption) and not store.contents.is_plain:
            yield Finding("verify", "warning", "not verified: the key that runs are encrypted by is not here")
        else:
            yield from _verify(store, [each.run for each in listed][:newest])
        yield from encryption
    except AgentCoreError as error:
        yield Finding(part, "problem", str(error))


def _find_endings(store: DatabaseRunStore, paused: Sequence[str]) -> Iterator[Finding]:
    """Yield the paused runs that have ended servers."""
    for run in paused:
        if (taken := store.takeovers(run)) >= MOST:
            yield Finding("runs", "warning", f"{run}: {describe_takeovers(taken)}", f"`agent-core show {run}`")


def judge_file(part: str, found: Probe, layout: Layout, other: str) -> Finding:
    """Return how a file is; `other` says how another one is named."""
    if found.fault:
        return Finding(part, "problem", f"{found.path} cannot be used: {found.fault}", other, found.facts)
    if not found.exists:
        if found.can_write:
            return Finding(part, "ok", f"{found.path}: made when it is first needed", facts=found.facts)
        return Finding(part, "problem", f"{found.path} cannot be made: its directory is read-only", other, found.facts)
    text = f"{found.path}, {output.size(found.size or 0)}, layout {found.version}"
    if found.is_full:
        return Finding(part, "problem", f"{text}; its disk is full", "make room on it", found.facts)
    if found.locked:
        return Finding(part, "warning", f"{text}; it cannot be written just now: {found.locked}", facts=found.facts)
    if not found.can_write:
        return Finding(
            part, "problem", f"{text}; it cannot be written", f"its owner's `chmod u+w`, or {other}", found.facts
        )
    if found.version != layout.version:
        return Finding(part, "ok", f"{text}, upgraded to {layout.version} by the next write", facts=found.facts)
    return Finding(part, "ok", text, facts=found.facts)


def _verify(store: DatabaseRunStore, runs: list[str]) -> Iterator[Finding]:
    try:
        keys = verifying_keys()
        if keys is not None:
            keys.check_keyring()
    except DefinitionError:
        yield Finding("verify", "warning", "not verified: the journal keys cannot be read")
        return
    broken = {run: why for run in runs if (why := find_damage(store, run, keys))}
    facts = {"verified": len(runs), "broken": list(broken)}
    whole = len(runs) - len(broken)
    yield Finding("verify", "ok", f"{whole} of {output.count(len(runs), 'run')} as written", facts=facts)
    for run, why in broken.items():
        yield Finding("verify", "problem", f"run {run}: {why}", f"`agent-core verify {run}` says where", {"run": run})


def find_damage(store: DatabaseRunStore, run: str, keys: Keys | None) -> str | None:
    """Return why a run is not as it was written; None for one that is, however far it got."""
    try:
        if store.entry(run) is None:
            check_intact(run, store.journal.load(run), keys, store.journal.identity)
        else:
            RunIndex(store).load_intact(run)
    except Newer as error:
        return error.why
    except (AgentCoreError, EngineError, ValueError, KeyError) as error:
        return str(error) or type(error).__name__
    return None


def check_conversations(path: Path, part: str) -> Iterator[Finding]:
    """Yield the file of conversations, and how many it holds."""
    found = probe(path, CONVERSATIONS)
    yield judge_file(part, found, CONVERSATIONS, "AGENT_CORE_CONTEXT_DB names another")
    if found.exists and not found.fault and found.version:
        try:
            [(number,)] = select(path, "SELECT count(DISTINCT session) FROM turns")
            yield Finding(part, "ok", output.count(number, "conversation"), facts={"conversations": number})
        except sqlite3.Error as error:
            yield Finding(part, "problem", f"{path} cannot be read: {error}")

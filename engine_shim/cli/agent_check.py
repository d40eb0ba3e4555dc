"""The command agents check: the recorded runs of an agent, judged under its definition of today."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from agent_core.audit.whatif import VARIABLE_KEYS
from agent_core.errors import JournalError
from agent_core.journal.record import Row
from engine_shim.cli import output
from engine_shim.cli.many_replays import Named, replay_many
from engine_shim.cli.replays import Replayed, try_run, write_table
from engine_shim.host.find import load_host_config
from engine_shim.runs.agents import build_catalog
from engine_shim.runs.store import SqliteRunStore, default_store


def check_agent(
    name: str, config: Path | None, store_path: Path | None, since: datetime | None, *, as_json: bool
) -> int:
    """Judge every recorded run of the agent anew, and write which past decisions would change; the exit code."""
    catalog = build_catalog(load_host_config(config))
    policy, _ = catalog.config_of(name)
    tried = replay_many(store_path or default_store(), since, partial(_try_agent, name, policy))
    code = write_table(tried, as_json=as_json)
    for each in tried if not as_json else ():
        if each.changed:
            output.line(output.in_line(f"{each.run_id} at {each.at}: {each.why}"))
    return code


def _try_agent(name: str, config: Mapping[str, Any], store: SqliteRunStore, named: Named) -> list[Replayed]:
    """The replay of each strand of a run that is this agent."""
    run, workflow = named
    try:
        tape = store.journal.load(run)
    except JournalError as error:
        return [Replayed(run, workflow, "damaged", why=str(error))]
    found: list[Replayed] = []
    for strand, rows in tape.items():
        started = _read_start(rows[0])
        note = started.get("agent", {})
        if note.get("name") == name:
            policy = _policy(config, list(started["tools"]), note["overrides"])
            found.append(try_run(run, workflow, lambda _: tape, policy, strand))
    return found


def _read_start(first: Row) -> Mapping[str, Any]:
    """How a strand begins; nothing for a damaged one, of which nobody can tell whose it is."""
    try:
        return first.record()
    except ValueError:
        return {}


def _policy(config: Mapping[str, Any], codes: Sequence[str], overridden: Sequence[str]) -> dict[str, Any]:
    """What of the agent's config a policy may vary, for a run that had these tools, and set some keys otherwise."""
    policy = {key: value for key, value in config.items() if key in VARIABLE_KEYS and key not in overridden}
    allowed = [(each if isinstance(each, str) else each["tool"], each) for each in config["allowed_tools"]]
    fitting = [each for tool, each in allowed if any(fnmatchcase(code, tool) for code in codes)]
    return {**policy, "allowed_tools": fitting}

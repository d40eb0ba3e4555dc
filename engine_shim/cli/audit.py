"""The commands verify and replay: whether a journal is whole, and whether its decisions come out the same."""

from pathlib import Path
from typing import Any

import typer

from agent_core.audit.replay import Replay, replay
from agent_core.audit.verify import verify
from agent_core.audit.whatif import VARIABLE_KEYS
from agent_core.config import read_config
from agent_core.errors import DefinitionError
from agent_core.run.secrets import verifying_keys
from engine_shim.cli import output
from engine_shim.cli.settings import read_settings
from engine_shim.cli.show import find_source
from engine_shim.host.environment import load_environment
from engine_shim.host.find import find_host_config
from engine_shim.runs.loops import LOOPS
from engine_shim.runs.store import SqliteRunStore, default_store
from utools.document import read_document


def verify_run(
    run: str, store: Path | None, *, strand: str | None, head: str | None, count: int | None, as_json: bool
) -> int:
    """Verify a run's journal, with the keys of this host, and write what was found."""
    source, run_id = find_source(run, store)
    load_environment(_host_file(run_id, store))
    found = verify(source, run_id=run_id, strand=strand, head=head, count=count, keys=verifying_keys())
    if as_json:
        output.document({name: getattr(found, name) for name in found.__slots__})
    elif found.ok:
        end = "" if found.complete else "; the run has not ended"
        output.line(f"ok: {found.count} records, head {found.head}{end}")
    else:
        bad = found.first_bad
        location = f" at {bad['strand']}:{bad['n']}" + (f", line {bad['line']}" if bad["line"] else "") if bad else ""
        output.line(f"NOT ok{location}: {found.why}")
    return output.OK if found.ok else output.AUDIT


def _host_file(run_id: str | None, store: Path | None) -> Path | None:
    """The configuration of the host that began the run, whose keys signed it; of a journal file, of this host."""
    entry = None if run_id is None else SqliteRunStore(store or default_store()).entry(run_id)
    return Path(entry.host) if entry is not None and entry.host else find_host_config()


def replay_run(run: str, store: Path | None, policy: dict[str, Any] | None, *, as_json: bool) -> int:
    """Replay one run, under another policy if there is one, and write what was found."""
    source, run_id = find_source(run, store)
    found = replay(source, run_id=run_id, policy=policy, loops=LOOPS)
    if as_json:
        fields = {"identical": found.identical, "divergence": found.divergence, "tape_ended": found.tape_ended}
        output.document({**fields, "steps": found.steps, "decisions": list(found.decisions), "why": found.why})
    else:
        output.line(describe_replay(found) if policy is None else _describe_changes(found))
    return output.OK if found.identical else output.AUDIT


def read_policy(file: Path | None, changes: list[str]) -> dict[str, Any] | None:
    """The policy of --policy and --set; None without either."""
    if file is None and not changes:
        return None
    policy = read_document(file, "policy").data if file is not None else {}
    if not isinstance(policy, dict):
        raise typer.BadParameter('a policy is an object, such as {"max_steps": 3}')
    policy.update(read_settings(changes, "--set"))
    if unknown := sorted(set(policy) - VARIABLE_KEYS):
        raise typer.BadParameter(f"a policy may not vary {unknown[0]!r}, only {', '.join(sorted(VARIABLE_KEYS))}")
    try:
        read_config({"model": "any", "max_steps": 1, "allowed_tools": [], "prompt": "any", **policy}, where="policy")
    except DefinitionError as error:
        raise typer.BadParameter(str(error)) from None
    return policy


def _describe_changes(found: Replay) -> str:
    """What another policy would have changed: a line for each call, then the end."""
    lines = [
        f"{entry['strand']}:{entry['n']}  {entry['tool']}  {entry['recorded']}"
        + ("" if entry["now"] == entry["recorded"] else f" → {entry['now']}: {entry['why']}")
        + ("  (counterfactual)" if entry["counterfactual"] else "")
        for entry in found.decisions
    ]
    if found.identical:
        end = "no decision changes"
    elif found.tape_ended:
        end = f"the run would have gone on where its tape ends, in {found.tape_ended}"
    else:
        location = found.divergence or {}
        end = f"the first change is at {location['strand']}:{location['n']}: {found.why}"
    return "\n".join([*lines, end])


def describe_replay(found: Replay) -> str:
    """The result of a replay in a sentence."""
    if found.identical:
        return f"identical: {found.steps} steps replayed, every decision and the output came out the same"
    if found.divergence:
        return f"DIVERGED at {found.divergence['strand']}:{found.divergence['n']}: {found.why}"
    return f"the run is unfinished: its tape ends in {found.tape_ended}"

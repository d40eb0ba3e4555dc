"""The commands verify and replay: whether a journal is whole, and whether its decisions come out the same."""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from agent_core.audit.replay import Replay, replay
from agent_core.audit.verify import Verification, verify
from agent_core.audit.whatif import VARIABLE_KEYS
from agent_core.errors import DefinitionError
from agent_core.evidence.ed25519 import check_installed
from agent_core.evidence.key_files import KeyFiles
from agent_core.evidence.variables import ROOTS_VARIABLE
from agent_core.journal.signature import Keys
from agent_core.run.secrets import verifying_keys
from agent_core.statuses import STOPPED
from engine_shim.cli import output
from engine_shim.cli.records.exported_page import AN_EXCERPT, find_excerpt, find_other
from engine_shim.cli.records.recorded import Recorded, find_recorded
from engine_shim.cli.records.run_status import OPEN, OpenStatus, find_status
from engine_shim.cli.settings import read_settings
from engine_shim.host.environment import load_environment
from engine_shim.host.find import find_host_config
from engine_shim.runs.loops import LOOPS
from utools.databases.store_address import StoreAddress
from utools.problems import Problem, problems_in

if TYPE_CHECKING:
    from utools.document import Document

ANY_AGENT = {"model": "any", "max_steps": 1, "allowed_tools": [], "prompt": "any"}
"""The keys that every agent needs, for the check of a policy's own."""


def verify_run(
    run: str,
    store: StoreAddress | None,
    *,
    strand: str | None,
    head: str | None,
    count: int | None,
    key: Path | None,
    as_json: bool,
) -> int:
    """Verify a run's journal, with the keys of this host, or those of a file alone, and write what was found."""
    if (other := find_other(Path(run))) not in (None, AN_EXCERPT):
        raise typer.BadParameter(f"{run} is {other}")
    if (text := find_excerpt(Path(run))) is not None:
        if (strand, head, count) != (None, None, None):
            told = "an excerpt, which says itself what it shows: it takes no --strand, --head or --count"
            raise typer.BadParameter(f"{run} is {told}")
        return show_excerpt(text, keys_of(find_host_config(), key), as_json=as_json)
    recorded = find_recorded(run, store)
    keys = keys_of(_host_file(recorded), key)
    found = verify(recorded.source, run_id=recorded.run_id, strand=strand, head=head, count=count, keys=keys)
    is_known_open = not (found.complete or found.first_bad or found.torn or found.contents == "newer")
    is_open = is_known_open and found.count > 0
    status = find_status(recorded, found.count if strand is None else None) if is_open else None
    is_intact = found.ok or (status is not None and head is None and count is None and keys is None)
    if as_json:
        fields = {name: getattr(found, name) for name in found.__slots__}
        output.document({**fields, "status": status})
    else:
        output.line(_describe_verification(found, status if is_intact else None))
    if found.ok:
        return output.OK
    return output.WAITING if is_intact and status in STOPPED else output.AUDIT


def show_excerpt(text: str, keys: Keys | None, *, as_json: bool) -> int:
    """Verify an excerpt of a run, and write what it proves. BadParameter without a public key to check it by."""
    if keys is None:
        raise typer.BadParameter("an excerpt is checked by a public key: --key FILE.pub")
    check_installed("--key")
    from agent_core.audit.excerpt import verify_excerpt  # which a replay does without

    found = verify_excerpt(text, keys)
    if as_json:
        output.document({name: getattr(found, name) for name in found.__slots__})
    elif found.ok:
        log = "" if found.log is None else f"; {found.status} in the log {found.log}"
        shown = f"{found.shown:,} of {output.count(found.count, 'record')} of the run {found.run}"
        output.line(f"ok: {shown}, sealed by {found.kid} at {found.at}{log}")
    else:
        output.line(f"NOT ok: {found.why}")
    return output.OK if found.ok else output.AUDIT


def keys_of(host: Path | None, key: Path | None) -> Keys | None:
    """Return the public keys of a file, or, without one, the keys of a host."""
    if key is None:
        load_environment(host)
        return verifying_keys()
    check_installed("--key")
    keyring = KeyFiles(trusted=str(key), roots=os.environ.get(ROOTS_VARIABLE, ""))
    keyring.public_keys()  # what is wrong with the file is said before anything else
    return Keys(keyring=keyring)


_CONTENTS: Final = {
    "read": "",
    "encrypted": "; its contents are encrypted, and cannot be read here",
    "erased": "; its contents were erased",
    "newer": "",  # why it is not ok says so
}


def _describe_verification(found: Verification, status: OpenStatus | None) -> str:
    """Return what was found in a sentence; `status` is that of an intact run without an end."""
    if status is not None:
        whole = "ok" if found.ok else "intact"
        told = f"{whole}: {found.count} records, head {found.head}; {found.seal}{_CONTENTS[found.contents]}"
        return f"{told}; {OPEN[status]}: not complete yet"
    if found.ok:
        return f"ok: {found.count} records, head {found.head}; {found.seal}{_CONTENTS[found.contents]}"
    bad = found.first_bad or {"strand": None, "line": None}
    location = "" if bad["strand"] is None else f" at {bad['strand']}:{bad['n']}"
    line = f", line {bad['line']}" if bad["line"] else ""
    seal = "" if found.first_bad else f"; {found.seal}"
    return f"NOT ok{location}{line}: {found.why}{seal}"


def _host_file(recorded: Recorded) -> Path | None:
    """Return the configuration of the host that began the run, whose keys signed it; of a journal file, of this
    host."""
    entry = recorded.store.entry(recorded.run_id) if recorded.store and recorded.run_id else None
    return Path(entry.host) if entry is not None and entry.host else find_host_config()


def replay_run(
    run: str, store: StoreAddress | None, policy: dict[str, Any] | None, strand: str | None = None, *, as_json: bool
) -> int:
    """Replay one run, under another policy if there is one, perhaps of one agent alone, and write what was found."""
    recorded = find_recorded(run, store)
    found = replay(recorded.source, run_id=recorded.run_id, policy=policy, strand=strand, loops=LOOPS)
    if as_json:
        fields = {"identical": found.identical, "divergence": found.divergence, "tape_ended": found.tape_ended}
        output.document({**fields, "steps": found.steps, "decisions": list(found.decisions), "why": found.why})
    else:
        output.line(describe_replay(found) if policy is None else _describe_changes(found))
    return output.OK if found.identical else output.AUDIT


def read_policy(file: Path | None, changes: list[str]) -> dict[str, Any] | None:
    """Return the policy of --policy and --set; None without either."""
    if file is None and not changes:
        return None
    from utools.document import Document, read_document

    document = Document(Path("--set"), {}) if file is None else read_document(file, "the policy")
    if not isinstance(document.data, dict):
        raise typer.BadParameter(f'--policy {file}: a policy is an object, such as {{"max_steps": 3}}')
    settings = read_settings(changes, "--set")
    policy = {**document.data, **settings}
    problems = [Problem(key, _explain_fixed(key)) for key in policy if key not in VARIABLE_KEYS]
    from agent_core.config import read_config

    try:
        read_config({**ANY_AGENT, **{key: policy[key] for key in policy if key in VARIABLE_KEYS}}, where="")
    except DefinitionError as error:
        problems += problems_in(error)
    if problems:
        raise typer.BadParameter("\n".join(_describe_fault(each, document, settings) for each in problems))
    return policy


def _explain_fixed(key: str) -> str:
    names = ", ".join(sorted(VARIABLE_KEYS))
    near = get_close_matches(key, VARIABLE_KEYS, n=1)
    return f"did you mean {near[0]}?" if near else f"a replay cannot vary it, only {names}"


def _describe_fault(problem: Problem, document: "Document", settings: Mapping[str, Any]) -> str:
    """Return a fault of a policy, with the option or the line of the file that it is in."""
    key = problem.where.strip("/")
    if key.partition("/")[0] in settings:
        return f"--set {key}: {problem.message}"
    return f"--policy {document.where(document.position(key) or (key,))}: {problem.message}"


def _describe_changes(found: Replay) -> str:
    """Return what another policy would have changed: a line for each call, then the end."""
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
    """Return the result of a replay in a sentence."""
    if found.identical:
        return (
            f"identical: {output.count(found.steps, 'step')} replayed, every decision and the output came out the same"
        )
    if found.divergence:
        return f"DIVERGED at {found.divergence['strand']}:{found.divergence['n']}: {found.why}"
    return f"the run is unfinished: its tape ends in {found.tape_ended}"

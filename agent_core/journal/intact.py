"""Whether a tape may be driven on: nothing acts on a run that is damaged, or is not as it was signed. Pure."""

from agent_core.errors import Damaged, DefinitionError
from agent_core.journal.chain import check_chains, find_chain_faults, is_finished
from agent_core.journal.identity import StoreIdentity
from agent_core.journal.path import SEAL, child, find_root, item
from agent_core.journal.record import Row, Tape
from agent_core.journal.signature import VARIABLE, Keys, signature_fault, split_own_strands


def check_intact(
    run: str,
    tape: Tape,
    keys: Keys | None,
    identity: StoreIdentity | None,
    *,
    at_rest: bool | None = None,
) -> Tape:
    """Return the same tape, once its chains hold and every record that closes a strand agrees with that strand.

    With `keys`, a run at rest must be signed as it is, too, in the store of this `identity`. `at_rest` says whether the
    run has ended or waits; without it the tape tells. Raises `Damaged` at the first fault, and `Newer` for a newer
    format or newer rules.
    """
    check_chains(run, tape)
    own, others = split_own_strands(tape)
    root = find_root(own)
    for fault in find_chain_faults(run, own, root):
        raise Damaged(fault.strand, fault.n, fault.why)
    for path, rows in others.items():
        for fault in find_chain_faults(run, {path: rows}, path):
            raise Damaged(fault.strand, fault.n, fault.why)
    rests = is_settled(own) if at_rest is None else at_rest or is_finished(own, root)
    if keys is not None and rests:
        _check_signature(run, tape, keys, identity)
    return tape


def check_signer(tape: Tape, keys: Keys | None) -> None:
    """DefinitionError for a sealed run that would go on without a key: it could never be proven again."""
    can_sign = keys is not None and keys.signer
    if not can_sign and SEAL in tape and not is_finished(tape, find_root(split_own_strands(tape)[0])):
        message = "the run is sealed, and this process has no key to seal what it adds; set the keys of its host"
        raise DefinitionError(message, where=VARIABLE)


def is_settled(own: Tape) -> bool:
    """Return whether a run has ended or waits for a person, as far as its records tell.

    A workflow whose branches were stopped between two records looks as if it waits.
    """
    if is_finished(own, find_root(own)):
        return True
    last = {path: rows[-1] for path, rows in own.items() if rows[-1].record()["kind"] in ("asked", "waiting")}
    open_ones = [path for path, row in last.items() if not _goes_on_below(own, row)]
    return bool(open_ones) and all(last[path].record().get("kind") == "waiting" for path in open_ones)


def _goes_on_below(own: Tape, row: Row) -> bool:
    """Return whether a record asks for strands below its own, all of which have begun."""
    record = row.record()
    if "tools" in record:
        return all(item(row.path, row.n, index) in own for index in range(len(record["tools"])))
    return "tool" in record and child(row.path, record["tool"], row.n) in own


def _check_signature(run: str, tape: Tape, keys: Keys, identity: StoreIdentity | None) -> None:
    if why := signature_fault(run, tape, keys, identity):
        advice = "if it was made without these keys, unset them to go on without a signature"
        raise Damaged(SEAL, max(0, len(tape.get(SEAL, ())) - 1), f"{why}; {advice}")

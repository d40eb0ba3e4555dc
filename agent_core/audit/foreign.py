"""A run in other people's formats: an in-toto statement in a DSSE envelope, and agent receipts.

What they hold is a summary. The proof of a run is its journal: both name the head of it, and are signed by the key that
signs runs.
"""

import base64
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from agent_core.audit.taken_over import leave_taken_over
from agent_core.effects import ToolReply
from agent_core.errors import DefinitionError
from agent_core.evidence.public_keys import Signer
from agent_core.journal.facts import Answered, Call, Question, RecordedRun, Resolved, RunFinished, RunStarted
from agent_core.journal.path import SEAL
from agent_core.journal.reader import read_tape
from agent_core.journal.record import Tape, encode
from agent_core.journal.signature import head_and_count, signed_strands
from agent_core.outputs import Json

STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "urn:agent-core:run:v1"
PAYLOAD: Final = "application/vnd.in-toto+json"
CONTEXT: Final = ["https://www.w3.org/ns/credentials/v2", "https://agentreceipts.ai/context/v1"]
TYPES: Final = ["VerifiableCredential", "AgentReceipt"]
RECEIPTS: Final = "0.4.0"
"""The version of agent receipts that is written."""
RISKS: Final = {"read": "low", "write": "medium"}
"""The risk of a call, by the effect of its tool: that is all a journal knows of it."""


def make_statement(run: str, tape: Tape) -> Json:
    """Return what a run did as an in-toto statement, whose subject is the run's journal by its head.

    Of a fork it names the run that it was `forked` from, and nothing of what that did.
    """
    facts = read_tape(tape)
    root, end = _find_root(run, facts), _find_end(facts)
    head, count = head_and_count(signed_strands(tape))
    facts = leave_taken_over(facts)
    calls = Counter(fact.tool for fact in facts if isinstance(fact, Call))
    decisions = [
        {"strand": fact.strand, "n": fact.n, "decision": fact.decision, "by": fact.by, "at": fact.at}
        for fact in facts
        if isinstance(fact, Resolved) and fact.by
    ]
    predicate = {
        "run": run,
        "workflow": root.name,
        **({} if root.forked is None else {"forked": root.forked}),
        "began": root.began,
        "ended": None if end is None else end.at,
        "status": None if end is None else end.reason,
        "models": sorted({fact.model for fact in facts if isinstance(fact, Question)}),
        "calls": dict(sorted(calls.items())),
        "decisions": decisions,
        "journal": {"head": head, "records": count},
        "seal": _find_seal(tape),
    }
    subject = {"name": run, "digest": {"sha256": head}}
    return {"_type": STATEMENT, "subject": [subject], "predicateType": PREDICATE, "predicate": predicate}


def sign_statement(statement: Mapping[str, Any], signer: Signer) -> Json:
    """Return a statement in a DSSE envelope."""
    payload = encode(statement)
    kind = PAYLOAD.encode()
    message = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    signature = signer.sign(message)
    return {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD,
        "signatures": [{"keyid": signature.kid, "sig": signature.text}],
    }


def make_receipts(run: str, tape: Tape, signer: Signer, principal: str) -> list[Json]:
    """Return a signed receipt for each call that a run's tools have answered, each with the hash of the one before. A
    fork has some for its own calls alone.

    Args:
        run: The run's id, which is that of the chain of receipts.
        tape: Its rows.
        signer: The key that signs.
        principal: Who the run was for.
    """
    facts = read_tape(tape)
    root, end = _find_root(run, facts), _find_end(facts)
    own = leave_taken_over(facts)
    answered = [fact for fact in own if isinstance(fact, Answered) and isinstance(fact.asked, Call)]
    answered.sort(key=lambda fact: (fact.answer.at, fact.strand, fact.n))
    receipts: list[Json] = []
    previous: str | None = None
    for number, fact in enumerate(answered, 1):
        is_last = number == len(answered) and end is not None
        link = {"sequence": number, "previous_receipt_hash": previous, "chain_id": run}
        chain: Json = {**link, **({"terminal": True, "status": "complete"} if is_last else {})}
        receipt = _make_receipt(run, root, fact, chain, principal)
        canonical = _canonical(receipt)
        previous = f"sha256:{sha256(canonical).hexdigest()}"
        receipts.append({**receipt, "proof": _prove(canonical, signer)})
    return receipts


def _make_receipt(run: str, root: RecordedRun, fact: Answered, chain: Json, principal: str) -> Json:
    call, answer = fact.asked, fact.answer
    assert isinstance(call, Call)
    identity = uuid.uuid5(uuid.NAMESPACE_URL, f"urn:agent-core:{run}:{fact.strand}:{fact.n}")
    within = fact.run or root
    response = [answer.output] if isinstance(answer, ToolReply) and answer.success else []
    action = {
        "id": f"act_{identity}",
        "type": "unknown",
        "tool_name": call.tool,
        "risk_level": RISKS.get(call.effect, "medium"),
        "parameters_hash": _hash(call.args),
        "timestamp": answer.at,
    }
    outcome = {
        "status": "success" if fact.succeeded else "failure",
        "response_hash": _hash(response[0]) if response else None,
    }
    return {
        "@context": CONTEXT,
        "id": f"urn:receipt:{identity}",
        "type": TYPES,
        "version": RECEIPTS,
        "issuer": {"id": f"urn:agent-core:workflow:{root.name}", "type": "AIAgent", "name": within.name},
        "issuanceDate": answer.at,
        "credentialSubject": {
            "principal": {"id": principal},
            "action": _without_none(action),
            "outcome": _without_none(outcome),
            "chain": chain,
            **({"correlation_id": call.id} if call.id else {}),
        },
    }


def _prove(canonical: bytes, signer: Signer) -> Json:
    code = base64.urlsafe_b64encode(signer.make(canonical)).rstrip(b"=").decode()
    return {
        "type": "Ed25519Signature2020",
        "created": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "verificationMethod": signer.kid,
        "proofPurpose": "assertionMethod",
        "proofValue": f"u{code}",
    }


def _hash(value: Any) -> str | None:
    """Return the hash of a value as receipts have it; None for one that their form of JSON cannot hold."""
    from rfc8785 import CanonicalizationError, dumps

    try:
        return f"sha256:{sha256(dumps(value)).hexdigest()}"
    except (CanonicalizationError, UnicodeEncodeError):  # a whole number beyond 2**53
        return None


def _canonical(receipt: Json) -> bytes:
    from rfc8785 import dumps

    return dumps(receipt)


def _without_none(told: Mapping[str, Any]) -> Json:
    return {name: value for name, value in told.items() if value is not None}


def _find_root(run: str, facts: Sequence[Any]) -> RecordedRun:
    begun: Iterator[RecordedRun] = (
        fact.begun for fact in facts if isinstance(fact, RunStarted) and "/" not in fact.strand
    )
    found = next(begun, None)
    if found is None:
        raise DefinitionError("has no beginning, and so nothing that can be said of it", where=run)
    return found


def _find_end(facts: Sequence[Any]) -> RunFinished | None:
    return next((fact for fact in facts if isinstance(fact, RunFinished) and "/" not in fact.strand), None)


def _find_seal(tape: Tape) -> Json | None:
    """Return the last seal of a run, without what gives its other records away."""
    if SEAL not in tape:
        return None
    return {name: value for name, value in tape[SEAL][-1].record().items() if name != "salt"}

"""A run in other people's formats: their own programs take it, and find what was changed."""

import base64
import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from agent_core import MemoryJournal, run_agent
from agent_core.audit.foreign import make_receipts, make_statement, sign_statement
from agent_core.audit.fork import fork_rows
from agent_core.evidence.ed25519 import make_key, public_pem
from agent_core.evidence.key_files import KeyFiles
from agent_core.evidence.public_keys import Signer
from agent_core.evidence.variables import KEY_VARIABLE
from agent_core.journal.record import Tape
from agent_core.journal.signature import head_and_count, signed_strands
from agent_core.loop.agent import AGENT_LOOPS
from agent_core.models import ScriptedModel
from agent_core.run.clock import now
from support.by_hand import Q, action, final
from support.optional import needs
from utools import Tool, ToolError, ToolRegistry

SECRET = "the price is 4711.5 euros"


def look(args: Any, context: Any) -> Any:
    if args["q"] == "bad":
        raise ToolError("no such thing")
    return {"text": SECRET, "number": 4711.5, "large": 2**60}


def look_up(q: str) -> str:
    if q == "bad":
        raise ToolError("no such thing")
    return f"found {q}"


REGISTRY = ToolRegistry([Tool("look", "Looks.", Q, look, effect="read")])
CONFIG = {"model": "m", "max_steps": 5, "allowed_tools": ["look"], "prompt": "Go."}


@pytest.fixture(name="signer")
def _signer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Signer:
    pem = make_key()
    monkeypatch.setenv(KEY_VARIABLE, pem)
    found = KeyFiles(pem).signer()
    assert found is not None
    return found


async def run_one() -> Tape:
    journal = MemoryJournal()
    replies = [action("look", q="a"), action("look", q="bad"), action("look", q="c"), final()]
    await run_agent(CONFIG, registry=REGISTRY, model=ScriptedModel(replies), journal=journal, run_id="r")
    return journal.load("r")


@needs("cryptography", "securesystemslib")
async def test_an_in_toto_statement_is_verified_by_securesystemslib(signer: Signer) -> None:
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import VerificationError
    from securesystemslib.signer import SSlibKey

    tape = await run_one()
    envelope = sign_statement(make_statement("r", tape), signer)
    key = SSlibKey(signer.kid, "ed25519", "ed25519", {"public": signer.public.hex()})
    read = Envelope.from_dict(copy.deepcopy(envelope))
    assert list(read.verify([key], 1)) == [signer.kid]
    said = json.loads(read.payload)
    head, count = head_and_count(signed_strands(tape))
    assert said["subject"] == [{"name": "r", "digest": {"sha256": head}}]
    told = said["predicate"]
    assert (told["status"], told["calls"], told["models"]) == ("final", {"look": 3}, ["m"])
    assert (told["journal"], told["seal"]["head"]) == ({"head": head, "records": count}, head)
    assert "salt" not in told["seal"]
    assert SECRET not in json.dumps(said)
    payload = base64.b64encode(read.payload.replace(b'"final"', b'"failed"')).decode()
    with pytest.raises(VerificationError):
        Envelope.from_dict({**copy.deepcopy(envelope), "payload": payload}).verify([key], 1)


@needs("cryptography", "agent_receipts", "rfc8785")
async def test_receipts_of_a_runs_calls_are_verified_by_their_own_program(signer: Signer) -> None:
    from agent_receipts.receipt.chain import verify_chain
    from agent_receipts.receipt.types import AgentReceipt

    receipts = make_receipts("r", await run_one(), signer, "urn:agent-core:caller:cara")

    def check(given: list[dict[str, Any]]) -> Any:
        return verify_chain([AgentReceipt.model_validate(each) for each in given], public_pem(signer.public))

    found = check(receipts)
    assert (found.valid, found.length, found.status, found.error) == (True, 3, "complete", "")
    outcomes = [each["credentialSubject"]["outcome"]["status"] for each in receipts]
    assert outcomes == ["success", "failure", "success"]
    assert all(each["credentialSubject"]["action"]["tool_name"] == "look" for each in receipts)
    assert SECRET not in json.dumps(receipts)
    for number in range(3):
        changed = copy.deepcopy(receipts)
        changed[number]["credentialSubject"]["action"]["tool_name"] = "other"
        assert not check(changed).valid
    assert not check([receipts[0], receipts[2]]).valid
    assert not check([receipts[1], receipts[0], receipts[2]]).valid


@needs("cryptography", "rfc8785")
async def test_a_value_that_their_json_cannot_hold_has_no_hash(signer: Signer) -> None:
    receipts = make_receipts("r", await run_one(), signer, "urn:agent-core:caller")
    assert "parameters_hash" in receipts[0]["credentialSubject"]["action"]
    assert "response_hash" not in receipts[0]["credentialSubject"]["outcome"]  # of a number beyond 2**53


@needs("cryptography", "rfc8785")
async def test_the_hash_of_a_response_is_that_of_an_answer_and_a_failure_has_none(signer: Signer) -> None:
    journal = MemoryJournal()
    registry = ToolRegistry([Tool("look", "Looks.", Q, lambda args, context: look_up(args["q"]), effect="read")])
    replies = [action("look", q="a"), action("look", q="bad"), final()]
    await run_agent(CONFIG, registry=registry, model=ScriptedModel(replies), journal=journal, run_id="r")
    receipts = make_receipts("r", journal.load("r"), signer, "urn:agent-core:caller")
    hashes = [each["credentialSubject"]["outcome"].get("response_hash") for each in receipts]
    answered = b'"found a"'
    assert hashes == [f"sha256:{hashlib.sha256(answered).hexdigest()}", None]


@needs("cryptography", "rfc8785")
async def test_a_fork_has_receipts_for_its_own_calls_alone(signer: Signer) -> None:
    journal, replies = MemoryJournal(), [action("look", q="a"), action("look", q="d"), final()]
    rows = fork_rows("r", await run_one(), [("agent", 7)], "f", loops=AGENT_LOOPS, at=now())
    journal.append("f", rows)
    assert make_receipts("f", journal.load("f"), signer, "urn:agent-core:caller") == []
    await run_agent(CONFIG, registry=REGISTRY, model=ScriptedModel(replies), journal=journal, run_id="f")
    tape = journal.load("f")
    assert len(make_receipts("f", tape, signer, "urn:agent-core:caller")) == 1
    told = make_statement("f", tape)["predicate"]
    assert (told["calls"], told["forked"]["run"], told["status"]) == ({"look": 1}, "r", "final")

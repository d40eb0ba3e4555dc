"""Excerpts for tests: sealed runs, logs that have them, what may be changed, and what three programs say of it."""

import base64
import json
import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agent_core import Keys, MemoryJournal, run_agent
from agent_core.audit.excerpt import verify_excerpt
from agent_core.evidence import verify_evidence
from agent_core.evidence.checkpoints import Checkpoint
from agent_core.evidence.excerpts import prove_leaves
from agent_core.evidence.key_files import KeyFiles, make_key_file, public_file, replace_text
from agent_core.evidence.merkle import compute_root, hash_leaf
from agent_core.evidence.public_keys import PublicKeys
from agent_core.journal.path import SEAL
from agent_core.journal.record import Tape
from agent_core.models import ScriptedModel
from engine_shim.web.bundle import STATIC
from support.by_hand import Q, action, final
from support.optional import NODE
from utools import Tool, ToolRegistry

PROGRAM = Path(str(verify_evidence.__file__))
CONFIG = {"model": "m", "max_steps": 4, "allowed_tools": ["look"], "prompt": "What does the letter say?"}
SECRET = "The letter says: the price is 4711 euros."
REGISTRY = ToolRegistry([Tool("look", "Looks.", Q, lambda args, context: SECRET, effect="read")])
JUDGE = """
import { readFileSync } from "fs";
import { readKeys } from "STATIC/proof/ed25519.js";
import { verifyExcerpt } from "STATIC/proof/excerpt.js";
const given = JSON.parse(readFileSync(0, "utf8"));
const verify = ([text, keys]) => verifyExcerpt(text, keys === null ? null : readKeys(keys));
console.log(JSON.stringify(given.map(verify)));
"""


class Found(NamedTuple):
    """What a program says of an excerpt: whether it holds, and else in which part it does not."""

    ok: bool
    part: str | None


def make_key(path: Path) -> Path:
    """Write a key that signs, and its public part beside it."""
    replace_text(public_file(path), PublicKeys.of(make_key_file(path)).write())
    return path


async def run_one(run: str = "r", **options: Any) -> Tape:
    """A run of an agent, sealed by the key of the environment."""
    journal = MemoryJournal()
    model = ScriptedModel([action(), final()])
    await run_agent({**CONFIG, **options}, registry=REGISTRY, model=model, journal=journal, run_id=run)
    return journal.load(run)


def log_of(key: Path, run: str, tape: Tape, others: int = 5, at: int = 2) -> dict[str, Any]:
    """What proves that a log of several entries has the run."""
    signer = KeyFiles(str(key)).signer()
    assert signer is not None
    entry = {"kind": "ended", "run": run, "status": "completed", "root": tape[SEAL][-1].record()["root"]}
    entries = [json.dumps({"run": f"other {number}"}).encode() for number in range(others)]
    entries.insert(at, json.dumps(entry).encode())
    hashes = [hash_leaf(each) for each in entries]
    (proof,) = prove_leaves(hashes, [at])
    checkpoint = Checkpoint("agent-core/test", len(entries), compute_root(hashes)).sign(signer)
    return {
        "entry": entries[at].decode(),
        "index": at,
        "hashes": [base64.b64encode(each).decode() for each in proof],
        "checkpoint": checkpoint.write(),
    }


# ── who judges ────────────────────────────────────────────────────────────────────────────────────────


def trusting(key: Path) -> Keys:
    return Keys(keyring=KeyFiles(trusted=str(public_file(key))))


def by_program(text: str, key: Path) -> Found:
    """What the program says that is given away."""
    try:
        verify_evidence.verify(text, verify_evidence.read_keys(public_file(key).read_text()))
    except verify_evidence.Fault as fault:
        return Found(False, fault.part)
    return Found(True, None)


def by_package(text: str, key: Path) -> Found:
    found = verify_excerpt(text, trusting(key))
    return Found(found.ok, found.part)


def by_page(texts: Sequence[str], key: Path | None, folder: Path) -> list[dict[str, Any]]:
    """What the page's own script says of each text, without a browser."""
    keys = None if key is None else public_file(key).read_text()
    return by_page_with([(text, keys) for text in texts], folder)


def by_page_with(given: Sequence[tuple[str, str | None]], folder: Path) -> list[dict[str, Any]]:
    """The same of texts that each come with a file of public keys, or with none."""
    assert NODE is not None
    script = folder / "judge.mjs"
    script.write_text(JUDGE.replace("STATIC", str(STATIC)))
    done = subprocess.run([NODE, str(script)], input=json.dumps(given), capture_output=True, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def judge(text: str, key: Path) -> bool:
    """Whether an excerpt is taken, by both programs in Python alike."""
    found, other = by_package(text, key), by_program(text, key)
    assert found == other, text
    return found.ok


# ── what is changed ───────────────────────────────────────────────────────────────────────────────────


def mutations(text: str, chance: random.Random) -> Iterator[str]:
    """An excerpt, changed in one place: a value, a field, an order, or a byte."""
    while True:
        document = json.loads(text)
        kind = chance.randrange(4)
        if kind == 0:
            at = chance.randrange(len(text))
            yield text[:at] + chr(chance.randrange(32, 127)) + text[at + 1 :]
            continue
        holder, name = chance.choice(list(places_of(document)))
        if kind == 1:
            holder[name] = other_value(holder[name], chance)
        elif kind == 2 and isinstance(holder, dict):
            del holder[name]
        elif kind == 2:
            holder.append(holder[name])
        elif isinstance(holder, dict):
            holder[f"{name}x"] = holder[name]
        else:
            holder.reverse()
        yield json.dumps(document, ensure_ascii=False)


def places_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each place within a value, as what holds it and its key there."""
    for name, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, name
        if isinstance(inner, dict | list):
            yield from places_of(inner)


def other_value(value: Any, chance: random.Random) -> Any:
    if isinstance(value, str) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        return value[:at] + chance.choice("aZ09+/=é\n ") + value[at + 1 :]
    if isinstance(value, int) and chance.random() < 0.8:
        return chance.choice([value + 1, value - 1, -value, float(value), bool(value), 2**63, 2**70])
    return chance.choice([None, 0, 1, "", "x", [], {}, True, 1.5, "\ud800"])


def says_no_more(text: str, other: str) -> bool:
    """Whether another text is the same excerpt, written in another way, or without what a log says of the run."""
    try:
        one, changed = json.loads(text), json.loads(other)
    except ValueError:
        return False
    for each in (one, changed):
        if isinstance(each, dict) and isinstance(each.get("seal"), dict):
            each["seal"].pop("timestamp", None)  # another authority's word, which nothing here depends on
    if isinstance(changed, dict) and changed.get("ledger", 0) is None:
        one["ledger"] = None
    return json.dumps(one, sort_keys=True) == json.dumps(changed, sort_keys=True)

"""The three programs that check excerpts: this package's, the one that is given away, and the page's own script."""

import base64
import json
import random
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_core.audit.excerpt import make_excerpt
from agent_core.evidence.key_files import make_key_file, public_file, replace_text
from agent_core.evidence.public_keys import PublicKeys
from agent_core.evidence.variables import KEY_VARIABLE
from engine_shim.web.bundle import STATIC
from support.excerpts import (
    Found,
    by_package,
    by_page,
    by_page_with,
    by_program,
    log_of,
    make_key,
    mutations,
    run_one,
    says_no_more,
)
from support.optional import NODE, needs, needs_node

pytestmark = [needs("cryptography"), needs_node]
SMALL_ORDER = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"
FORGE = """
import { Point, sha512 } from "STATIC/vendor/ed25519.js";
import { isSigned } from "STATIC/proof/ed25519.js";
const L = Point.CURVE().n, hex = (bytes) => Buffer.from(bytes).toString("hex");
const number = (bytes) => BigInt("0x" + hex(bytes.toReversed()));
const key = Point.BASE.multiply(1234567n).add(Point.fromHex("SMALL_ORDER", true)).toBytes();
const R = Point.BASE.multiply(7654321n).toBytes();
console.log(JSON.stringify([...Array(48).keys()].map((n) => {
  const message = Uint8Array.of(n), k = number(sha512(Uint8Array.of(...R, ...key, ...message))) % L;
  const s = Buffer.from(((7654321n + k * 1234567n) % L).toString(16).padStart(64, "0"), "hex").reverse();
  const signature = Uint8Array.of(...R, ...s);
  return { key: hex(key), message: hex(message), signature: hex(signature), ok: isSigned(key, signature, message) };
})));
"""


@pytest.fixture(name="key")
def _key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = make_key(tmp_path / "desk.key")
    monkeypatch.setenv(KEY_VARIABLE, str(path))
    return path


def judge_all(texts: list[str], key: Path, folder: Path) -> list[Found]:
    """What is said of each text, by all three alike."""
    found = [by_program(text, key) for text in texts]
    for text, one, told in zip(texts, found, by_page(texts, key, folder), strict=True):
        other, page = by_package(text, key), Found(told["ok"], told["part"])
        assert one == other == page, (one, other, told, text)
    return found


async def make_evidence(key: Path) -> list[str]:
    """Excerpts of runs that differ: with a log and without, one record and several, in other languages, waiting."""
    one, other, waiting = (
        await run_one("r"),
        await run_one("zh", prompt="信里说什么？"),
        await run_one("w", approval="always"),
    )
    stamped = json.loads(make_excerpt("r", one, [("agent", 0)], None))
    stamped["seal"]["timestamp"] = base64.b64encode(b"what an authority says").decode()
    return [
        make_excerpt("r", one, [("agent", 1), ("agent", 2), ("agent", 4)], log_of(key, "r", one)),
        make_excerpt("zh", other, [("agent", 0), ("agent", 3)], log_of(key, "zh", other, 0, 0)),
        make_excerpt("w", waiting, [("agent", n) for n in range(3)], None),
        json.dumps(stamped),
    ]


async def find_changes(key: Path, folder: Path, count: int) -> None:
    chance, evidence = random.Random(38), await make_evidence(key)
    assert all(found.ok for found in judge_all(evidence, key, folder))
    changing = [mutations(text, chance) for text in evidence]
    changed = [(evidence[n % len(evidence)], next(changing[n % len(evidence)])) for n in range(count)]
    found = judge_all([mutant for _, mutant in changed], key, folder)
    for (text, mutant), (ok, part) in zip(changed, found, strict=True):
        assert says_no_more(text, mutant) or not ok, mutant
        assert ok == (part is None)
    assert {part for _, part in found} == {None, "excerpt", "seal", "records", "ledger"}


async def test_changes_are_found_by_all_three_in_the_same_part(key: Path, tmp_path: Path) -> None:
    await find_changes(key, tmp_path, 120)


@pytest.mark.exhaustive
@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.long)])
async def test_thousands_of_changes_are_found_by_all_three_in_the_same_part(
    key: Path, tmp_path: Path, count: int
) -> None:
    await find_changes(key, tmp_path, count)


WRITTEN = [  # what is written otherwise: whether it is the same excerpt to all
    ('"n": 1,', '"n": 1.0,', False),
    ('"n": 1,', '"n": 1e0,', False),
    ('"n": 1,', '"n": -1,', False),
    ('"n": 1,', '"n": true,', False),
    ('"n": 1,', '"n": 10000000000000000000000000,', False),
    ('"n": 1,', '"n": NaN,', False),
    ('"n": 1,', '"n": 1, "n": 1,', False),
    ('"n": 1,', '"n": 1, "__proto__": 1,', False),
    ('"n": 1,', '"n":\t1\r\n,', True),
    ('"strand"', '"\\u0073trand"', True),
    ('"strand": "agent"', '"strand": "\\ud800"', False),
    ('"strand": "agent"', '"strand": "agent\\u0000"', False),
    ('"strand": "agent"', '"strand": "agent\u2028"', False),
    ('"ledger": {', '"ledger": null, "x": {', False),
    ('"ledger": {', '"ledger": [], "x": {', False),
    ('"count": ', '"count": 1', False),
    ('"count": ', '"timestamp": null, "count": ', False),
    ('"count": ', '"timestamp": "", "count": ', True),
    ('"count": ', '"store": null, "count": ', False),
    ('"count": ', '"tenant": 7, "count": ', False),
    ('"count": ', '"salt": "AAAA", "count": ', False),
    ('"kind": "sealed"', '"kind": "sealed "', False),
    ('"kid": "ed25519:', '"kid": "Ed25519:', False),
    ('"run": "r"', '"run": "r\\udfff"', False),
    ("{", "\ufeff{", False),
    ("{", "\u00a0{", False),
    ('"salt": "', '"salt": " ', False),
    ('"salt": "', '"salt": "A', False),
    ('"checkpoint": "', '"checkpoint": "\\n', False),
    ('"checkpoint": "', '"checkpoint": "\\ud800', False),
    ("\\n— ", "\\n— other\u00a0name AAAAAAA=\\n— ", False),
    ("\\n— ", "\\n— other\ufeffname AAAAAAA=\\n— ", True),
    ("\\n— ", "\\n— other AAAAAA==\\n— ", False),
    ("\\n— ", "\\n— other AAAAAAB=\\n— ", False),
    ("\\n— ", "\\n" + "— other AAAAAAA=\\n" * 99 + "— ", True),
    ("\\n— ", "\\n" + "— other AAAAAAA=\\n" * 100 + "— ", False),
]


async def test_what_is_written_otherwise_means_the_same_to_all_three(key: Path, tmp_path: Path) -> None:
    sound, *_ = await make_evidence(key)
    assert not [old for old, *_ in WRITTEN if old not in sound]
    found = judge_all([sound.replace(old, new, 1) for old, new, _ in WRITTEN], key, tmp_path)
    for (old, new, is_same), (ok, part) in zip(WRITTEN, found, strict=True):
        assert ok == is_same, (old, new, part)


async def test_page_without_a_key_says_only_that_the_parts_fit_each_other(key: Path, tmp_path: Path) -> None:
    sound, *_ = await make_evidence(key)
    document: dict[str, Any] = json.loads(sound)
    document["seal"]["sig"] = base64.b64encode(bytes(64)).decode()
    forged = json.dumps(document)
    told = by_page([sound, forged, sound.replace("asked", "Asked")], None, tmp_path)
    assert [(each["ok"], each["isSigned"]) for each in told] == [(True, False), (True, False), (False, False)]
    assert (told[0]["shown"], told[0]["log"]["status"], told[2]["part"]) == (3, "completed", "records")
    assert by_page([sound], key, tmp_path)[0]["isSigned"]
    assert judge_all([forged], key, tmp_path) == [Found(False, "seal")]


async def test_keys_count_alike_with_what_their_file_says_of_them(key: Path, tmp_path: Path) -> None:
    sound, _, bare, _ = await make_evidence(key)
    public = public_file(key)
    (own,) = PublicKeys.read(public.read_text(), "").keys.values()
    other = make_key_file(tmp_path / "other.key")
    given, verdicts = list[tuple[str, str | None]](), list[str | None]()
    for known in (
        [own],
        [other],
        [other, own],
        [replace(own, until="2020-01-01T00:00:00.000Z")],
        [replace(own, since="2100-01-01T00:00:00.000Z"), other],
        [replace(own, since="2020-01-01T00:00:00.000Z", until="2100-01-01T00:00:00.000Z")],
        [replace(own, revoked="2100-01-01T00:00:00.000Z", reason="stolen")],
    ):
        replace_text(public, "# ours:\n\n" + PublicKeys.of(*known).write())
        for text in (sound, bare):
            assert by_program(text, key) == by_package(text, key)
            given.append((text, public.read_text()))
            verdicts.append(by_program(text, key).part)
    assert verdicts[::2] == verdicts[1::2] == [None, "seal", None, "seal", "seal", None, "seal"]
    assert [told["part"] for told in by_page_with(given, tmp_path)] == verdicts


def test_signatures_that_somebody_made_to_divide_the_programs_do_not(tmp_path: Path) -> None:
    """By a key with a part of small order, which some libraries multiply away."""
    from agent_core.evidence.ed25519 import is_signed

    assert NODE is not None
    script = tmp_path / "forge.mjs"
    script.write_text(FORGE.replace("STATIC", str(STATIC)).replace("SMALL_ORDER", SMALL_ORDER))
    forged = json.loads(subprocess.run([NODE, str(script)], capture_output=True, text=True, check=True).stdout)
    for each in forged:
        key, message, signature = (bytes.fromhex(each[name]) for name in ("key", "message", "signature"))
        assert is_signed(key, signature, message) == each["ok"]
    assert {each["ok"] for each in forged} == {True, False}

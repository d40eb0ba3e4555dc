"""A run as one page: what its script says of a journal is what `verify` says, and nothing in it is more than text."""

import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from agent_core.audit.verify import verify
from agent_core.journal.record import genesis, link
from engine_shim.cli.main import main
from engine_shim.web.bundle import STATIC, join_modules
from engine_shim.web.run_page import ENTRY, POLICY, read_run_page, write_run_page
from support.optional import NODE, needs_node

ROOT = Path(__file__).parents[2]
JOURNALS = sorted((ROOT / "fixtures").rglob("*.jsonl"))
JUDGE = """
import { readFileSync } from "fs";
import { readJournal, verifyJournal } from "STATIC/proof/journal.js";
import { readNodeStates } from "STATIC/run/node_states.js";
import { callsOf, indexItems, readSteps } from "STATIC/run/steps.js";
import { readBudgets, readDecisions, readSummary } from "STATIC/run/summary.js";
const found = JSON.parse(readFileSync(0, "utf8")).map((text) => {
  const journal = readJournal(text);
  const items = readSteps(journal.rows);
  return {
    ...verifyJournal(journal),
    summary: readSummary(journal.rows, items),
    told: indexItems(items).size,
    nodes: Object.fromEntries([...readNodeStates(items)].map(([name, { state }]) => [name, state])),
    states: items.flatMap(callsOf).map((call) => [call.tool, call.state]),
    problems: items.filter((item) => item.problem).map((item) => item.problem.kind),
    decisions: readDecisions(items).map((each) => [each.by, each.decision]),
    budgets: readBudgets(journal.rows),
  };
});
console.log(JSON.stringify(found));
"""


def judge(texts: list[str], folder: Path) -> list[Any]:
    """What the page's script says of each journal."""
    assert NODE is not None
    script = folder / "judge.mjs"
    script.write_text(JUDGE.replace("STATIC", str(STATIC)))
    done = subprocess.run([NODE, str(script)], input=json.dumps(texts), capture_output=True, text=True, check=True)
    found: list[Any] = json.loads(done.stdout)
    return found


@needs_node
def test_page_and_verify_agree_about_every_recorded_run(tmp_path: Path) -> None:
    assert len(JOURNALS) > 20
    for path, found in zip(JOURNALS, judge([path.read_text("utf-8") for path in JOURNALS], tmp_path), strict=True):
        told = verify(path)
        assert (found["ok"], found["complete"], found["head"], found["count"]) == (
            told.ok,
            told.complete,
            told.head,
            told.count,
        ), (path, found["faults"], told.why)


@needs_node
def test_steps_tell_of_every_record(tmp_path: Path) -> None:
    for path, found in zip(JOURNALS, judge([path.read_text("utf-8") for path in JOURNALS], tmp_path), strict=True):
        assert found["told"] == len(path.read_text("utf-8").splitlines()), path


@needs_node
def test_nodes_of_a_run_that_has_ended_neither_run_nor_wait(tmp_path: Path) -> None:
    paths = [path for path in JOURNALS if path.parent.name == "workflows"]
    found = judge([path.read_text("utf-8") for path in paths], tmp_path)
    nodes = {path.stem: each["nodes"] for path, each in zip(paths, found, strict=True)}
    ended = {path.stem for path, each in zip(paths, found, strict=True) if each["complete"]}
    assert not {name for name in ended if {"running", "waiting"} & set(nodes[name].values())}
    assert (nodes["foreach_fails"]["a"], nodes["foreach_approval"]["a"]) == ("failed", "done")
    assert (nodes["write_in_doubt"]["a"], nodes["waiting_yet"]["a"]) == ("skipped", "waiting")


@needs_node
def test_steps_have_calls_refusals_decisions_and_budgets(tmp_path: Path) -> None:
    names = ("approval_denied", "in_doubt_skipped", "native_batch", "unreadable_then_repaired", "provenance_refused")
    texts = [(ROOT / f"fixtures/transcripts/{name}.jsonl").read_text("utf-8") for name in names]
    denied, doubted, batch, repaired, refused = judge(texts, tmp_path)
    assert (denied["states"], denied["decisions"]) == ([["send", "denied"]], [["caller", "deny"]])
    assert (doubted["states"], doubted["decisions"]) == ([["post", "skipped"]], [["caller", "skip"]])
    assert batch["states"] == [["find", "done"], ["add", "done"]]
    assert repaired["problems"] == ["not_json"]
    assert "refused" in {state for _, state in refused["states"]}
    for each in (denied, batch):
        end = each["budgets"][0]
        assert (end["used"]["steps"], end["limits"]["steps"]) == (2, 6)


@needs_node
def test_head_of_a_page_has_the_answer_of_the_run(tmp_path: Path) -> None:
    answers = []
    for path in JOURNALS:
        records = [json.loads(line)["record"] for line in path.read_text("utf-8").splitlines()]
        answers.append([record["final_answer"] for record in records if record.get("final_answer")])
    found = judge([path.read_text("utf-8") for path in JOURNALS], tmp_path)
    assert any(answers)
    for told, each in zip(found, answers, strict=True):
        assert (told["summary"]["answer"], told["summary"]["answers"]) == (each[-1] if each else None, len(each))


@needs_node
def test_page_finds_every_line_that_was_changed_dropped_or_doubled(tmp_path: Path) -> None:
    source = next(path for path in JOURNALS if len(path.read_text("utf-8").splitlines()) > 10)
    lines = source.read_text("utf-8").splitlines(keepends=True)
    damaged = []
    for at, line in enumerate(lines):
        middle = len(line) * 2 // 3
        flipped = line[:middle] + chr(ord(line[middle]) ^ 1) + line[middle + 1 :]
        changes = ([flipped], [], [line, line], [line[:-10] + "\n"])
        damaged += ["".join([*lines[:at], *changed, *lines[at + 1 :]]) for changed in changes]
        if at:
            damaged.append("".join([*lines[: at - 1], line, lines[at - 1], *lines[at + 1 :]]))
    for text, found in zip(damaged, judge(damaged, tmp_path), strict=True):
        copy = tmp_path / "copy.jsonl"
        copy.write_text(text, "utf-8")
        told = verify(copy)
        assert found["ok"] == told.ok, (text, found["faults"], told.why)


def forge(rows: list[tuple[str, dict[str, Any]]], run: str = "r") -> str:
    """A journal file of these records, its chains as they have to be."""
    ends: dict[str, tuple[bytes, int]] = {}
    lines = []
    for strand, record in rows:
        previous, n = ends.get(strand, (genesis(run, strand), 0))
        raw = json.dumps(record, separators=(",", ":"))
        digest = link(previous, raw.encode())
        ends[strand] = (digest, n + 1)
        head = f'"run":"{run}","strand":"{strand}","n":{n},"hash":"{digest.hex()}"'
        lines.append(f'{{{head},"record":{raw}}}\n')
    return "".join(lines)


@needs_node
def test_page_finds_what_was_forged_with_the_right_hashes(tmp_path: Path) -> None:
    lines = (ROOT / "fixtures/transcripts/approval_denied.jsonl").read_text("utf-8").splitlines()
    rows = [(each["strand"], each["record"]) for each in map(json.loads, lines)]
    (root, first), *_, (_, last) = rows
    said = {"kind": "message", "role": "user", "content": "yes", "by": "boss", "at": "2026-01-01T00:00:00Z"}
    forged = [[*rows, (strand, said)] for strand in ("zzz", "flow", f"{root}x/a", f"{root}/a.1", root, "control")]
    forged += [[("zzz", said), *rows]]
    for change in ({"kind": "constructor"}, {"closes": {}}, {"closes": [[1, 2, 3]]}, {"closes": "abc"}):
        forged += [[*rows[:-1], (root, {**last, **change})], [*rows, ("control", {**said, **change})]]
    forged += [[(root, {**first, "format": 2}), *rows[1:]]]
    texts = [forge(rows), *map(forge, forged)]
    verdicts = []
    for text, found in zip(texts, judge(texts, tmp_path), strict=True):
        copy = tmp_path / "copy.jsonl"
        copy.write_text(text, "utf-8")
        verdicts.append(verify(copy).ok)
        assert found["ok"] == verdicts[-1], (text, found["faults"])
    assert verdicts.count(True) == 2  # as it was, and with a message in the strand of those who stop it


@needs_node
def test_page_finds_a_child_strand_that_was_written_anew(tmp_path: Path) -> None:
    lines = (ROOT / "fixtures/transcripts/native_batch.jsonl").read_text("utf-8").splitlines()
    told = [json.loads(line) for line in lines]
    rows = [(each["strand"], each["record"]) for each in told]
    closed = next(entry[0] for _, record in rows for entry in record.get("closes", ()))
    anew = [
        (strand, {**record, "at": "2026-01-01T00:00:00Z"} if strand == closed else record) for strand, record in rows
    ]
    texts = [forge(each, told[0]["run"]) for each in (rows, anew)]
    whole, found = judge(texts, tmp_path)
    assert whole["ok"]
    assert [fault["why"] for fault in found["faults"]] == [f"it closes {closed} at another head and count than it has"]
    copy = tmp_path / "copy.jsonl"
    copy.write_text(texts[1], "utf-8")
    assert not verify(copy).ok


class Scripts(HTMLParser):
    """The elements of a page, as a browser would read them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)


def test_what_a_hostile_model_writes_is_no_part_of_the_page() -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)><!--\u2028]]>&lt;"
    plain, hostile = (write_run_page(run, f'{{"run":"{run}"}}\n'.encode()) for run in ("r", evil))
    assert Scripts(plain).tags == Scripts(hostile).tags
    assert "alert(1)</script>" not in hostile
    embedded = re.search(r'id="journal">(.*?)</script>', hostile, re.DOTALL)
    assert embedded is not None
    assert json.loads(embedded[1]) == f'{{"run":"{evil}"}}\n'


def test_page_loads_nothing() -> None:
    page = write_run_page("r", b"")
    assert f'content="{POLICY}"' in page
    head, _, script = page.partition('<script type="application/json"')
    assert not re.search(r"\s(src|href)=|https?://|@import|url\(", head)
    assert not re.search(r"\bimport\b\s*[({*\"']|\bfetch\(|XMLHttpRequest|new WebSocket|sendBeacon", script)


def test_page_has_no_tag_in_its_scripts() -> None:
    assert "</script" not in join_modules(ENTRY).lower()
    assert "<!--" not in join_modules(ENTRY)


def test_export_writes_both_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    source = JOURNALS[0]
    for words, name in ((["--to", "a.html"], "a.html"), (["--jsonl", "--to", "a.jsonl"], "a.jsonl")):
        with pytest.raises(SystemExit) as ended:
            main(["export", str(source), *words])
        assert ended.value.code == 0
        assert capsys.readouterr().out == f"{name}\n"
    assert (tmp_path / "a.jsonl").read_bytes() == source.read_bytes()
    first = source.read_text("utf-8")[:40].replace('"', '\\"')
    assert first in (tmp_path / "a.html").read_text("utf-8")


def test_exported_page_is_verified_replayed_and_exported_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    source = ROOT / "fixtures/transcripts/approval_approved.jsonl"
    page = write_run_page("r", source.read_bytes())
    assert read_run_page(page) == source.read_bytes()
    (tmp_path / "run.html").write_text(page, "utf-8")
    (tmp_path / "damaged.html").write_text(page.replace("The order has left", "The order is here"), "utf-8")
    (tmp_path / "other.html").write_text("<html></html>")
    words = (["verify", "run.html"], ["replay", "run.html"], ["verify", "damaged.html"], ["verify", "other.html"])
    told = []
    for each in (*words, ["export", "run.html", "--jsonl", "--to", "again.jsonl"]):
        with pytest.raises(SystemExit) as ended:
            main(each)
        told.append((ended.value.code, capsys.readouterr().out.split(":")[0].split("\n")[0]))
    assert told == [(0, "ok"), (0, "identical"), (5, "NOT ok at agent"), (2, ""), (0, "again.jsonl")]
    assert (tmp_path / "again.jsonl").read_bytes() == source.read_bytes()

"""Evidence in the hands of a stranger: an environment with `cryptography` alone, one file of ours, and a public key."""

import asyncio
import random
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from agent_core import MemoryJournal, verify
from agent_core.audit.excerpt import make_excerpt
from agent_core.evidence.key_files import KeyFiles, public_file
from agent_core.evidence.variables import KEY_VARIABLE
from agent_core.journal.path import SEAL
from agent_core.journal.record import Tape
from engine_shim import SqliteRunStore
from engine_shim.store.excerpts import write_excerpt
from engine_shim.web.run_page import write_excerpt_page
from support import record_transcripts, record_workflows
from support.excerpts import PROGRAM, log_of, make_key, mutations, says_no_more
from support.optional import needs

pytestmark = [needs("cryptography"), pytest.mark.exhaustive]
WORDS = (
    "Where is order 17?",
    "十七号订单在哪里？\u2028请说。",
    "Где заказ 17?",
    "أين الطلب ١٧؟ \u202e",
    "</script><script>alert(1)</script>",
    "🧾" * 500,
)


class Evidence(NamedTuple):
    """A run, and the excerpt of it."""

    run: str
    text: str


class Stranger:
    """An environment of their own, in which they run the program."""

    def __init__(self, folder: Path, key: Path) -> None:
        venv.create(folder / "env", with_pip=True)
        self.folder, self.python = folder, str(folder / "env" / "bin" / "python")
        subprocess.run([self.python, "-m", "pip", "install", "-q", "cryptography"], check=True, capture_output=True)
        (folder / "verify_evidence.py").write_text(PROGRAM.read_text())
        (folder / "desk.pub").write_text(public_file(key).read_text())

    def verify(self, texts: list[str], suffix: str = "json") -> list[str]:
        """What the program says of each text, one line each."""
        names = [f"{number}.{suffix}" for number in range(len(texts))]
        for name, text in zip(names, texts, strict=True):
            (self.folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        words = [self.python, "-I", "verify_evidence.py", "desk.pub", *names]
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False)
        assert not done.stderr, done.stderr
        lines = done.stdout.splitlines()
        assert [line.partition(":")[0] for line in lines] == names
        said = [line.partition(": ")[2] for line in lines]
        assert done.returncode == int(any(line.startswith("NOT ok") for line in said))
        return said


async def run_all(store: SqliteRunStore, runs: int) -> list[tuple[str, Tape, bool]]:
    """Runs of every kind that there are transcripts of: of agents in no store, of workflows in one, which has a log."""
    found: list[tuple[str, Tape, bool]] = []
    for turn in range(runs):
        words, journal = WORDS[turn % len(WORDS)], MemoryJournal()
        for name in record_transcripts.CASES:
            await record_transcripts.run(name, journal, f"{name}-{turn}", prompt=words)
            found.append((f"{name}-{turn}", journal.load(f"{name}-{turn}"), False))
        for name in record_workflows.CASES:
            await record_workflows.run_in(store, name, f"{name}-{turn}", description=words)
            found.append((f"{name}-{turn}", store.journal.load(f"{name}-{turn}"), True))
        if len(found) >= runs:
            return found[:runs]
    raise AssertionError


def make_evidence(runs: list[tuple[str, Tape, bool]], store: SqliteRunStore, key: Path) -> Iterator[Evidence]:
    chance, signer = random.Random(300), KeyFiles(str(key)).signer()
    for number, (run, tape, is_in_store) in enumerate(runs):
        assert verify([row for rows in tape.values() for row in rows], run_id=run).first_bad is None
        places = [f"{strand}:{row.n}" for strand, rows in tape.items() if strand != SEAL for row in rows]
        wanted = chance.sample(places, chance.randint(1, len(places)))
        if is_in_store:
            yield Evidence(run, write_excerpt(run, tape, wanted, store, signer))
        else:
            shown = [(strand, int(n)) for strand, _, n in (place.rpartition(":") for place in wanted)]
            log = log_of(key, run, tape, number, number // 2) if number % 2 else None
            yield Evidence(run, make_excerpt(run, tape, shown, log))


@pytest.mark.parametrize(("runs", "count"), [(100, 600), pytest.param(300, 2_000, marks=pytest.mark.long)])
def test_evidence_of_many_runs_verifies_and_each_mutation_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: int, count: int
) -> None:
    key = make_key(tmp_path / "desk.key")
    monkeypatch.setenv(KEY_VARIABLE, str(key))
    store = SqliteRunStore(tmp_path / "runs.db")
    evidence = [*make_evidence(asyncio.run(run_all(store, runs)), store, key)]
    (tmp_path / "stranger").mkdir()
    stranger = Stranger(tmp_path / "stranger", key)

    said = stranger.verify([each.text for each in evidence])
    assert len(said) == runs
    for each, line in zip(evidence, said, strict=True):
        assert line.startswith("ok: "), (each.run, line)
        assert f" records of the run {each.run}, sealed by " in line
    logged = [line for line in said if " in the log " in line]
    assert runs > len(logged) > runs / 2
    assert {line.rpartition("; ")[2].split()[0] for line in logged} >= {"completed", "failed", "waiting", "cancelled"}
    pages = stranger.verify([write_excerpt_page(each.run, each.text) for each in evidence], "html")
    assert pages == said

    chance = random.Random(2000)
    mutants: list[str] = []
    while len(mutants) < count:
        text = chance.choice(evidence).text
        mutant = next(mutations(text, chance))
        if not says_no_more(text, mutant):
            mutants.append(mutant)
    for mutant, line in zip(mutants, stranger.verify(mutants), strict=True):
        assert line.startswith("NOT ok: "), mutant

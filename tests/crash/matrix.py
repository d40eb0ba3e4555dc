"""The crash matrix: workflows killed at one point after another, gone on with, and compared with undisturbed runs.

    python tests/crash/matrix.py [WORKFLOW …]      a table; every point is tried
    python tests/crash/matrix.py --json WORKFLOW   the findings of one; of more than MOST points, some

Every attempt at a run is a process of its own, forked from one that never drives any. One kill in three is followed by
a second one while the run goes on.
"""

import asyncio
import gc
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson
from matrix_compare import answered, folded, timeless
from matrix_workflows import CASES, Case
from matrix_world import Killer, Ledger, Model, World, deed, registry_of

from agent_core.journal.verify import verify
from agent_core.loop.effects import Decision, Json, Retry, Skip
from agent_core.loop.judge import compiled_schema
from agent_core.replayer import replay
from engine_shim import Engine, RunNotFound, load_workflow
from engine_shim.runs.prepare import ROOT
from engine_shim.runs.runner import LOOPS

RUN = "run-1"
MOST = 40
"""How many points of a workflow are tried where time is short: every third, fifth, … of them."""


@dataclass
class Findings:
    """What came of the kills of one workflow. `repeats` counts acts that were done again though they were answered,
    or that must not happen twice and did; `problems` says all that was not as it should be."""

    workflow: str
    points: int
    status: str
    tried: int = 0
    kills: int = 0
    second_kills: int = 0
    in_doubt: int = 0
    skipped: int = 0
    repeats: int = 0
    problems: list[str] = field(default_factory=list)


# ── one attempt, in a process of its own ─────────────────────────────────────────────────────────


class Attempts:
    """What all attempts at the runs of a workflow share; it is made once, before processes are forked."""

    def __init__(self, case: Case) -> None:
        self.case, self._world = case, World()
        self._registry, self._model = registry_of(self._world), Model(case.scripts, self._world)
        for tool in self._registry.all():  # compiled once for all, as it takes most of a small run's time
            compiled_schema(self._registry.schema(tool.code).schema)
        gc.freeze()  # else each child copies every page that its collector looks at

    def attempt(self, home: Path, stage: str, killer: Killer, skipped: Collection[str] = ()) -> None:
        """Begin the run, or go on with it, to its end, and leave a report of what is there before and after."""
        self._world.enter(home, killer, skipped)
        engine = Engine(self._registry, store=self._world.store(home, jsonl=self.case.jsonl), model=self._model)
        _write(home / f"{stage}.before", _before(engine, self._world.ledger))
        result = asyncio.run(_driven(engine, self.case, home, self._world.ledger))
        _write(home / f"{stage}.after", {"result": result, "passed": killer.passed, **_after(engine)})


async def _driven(engine: Engine, case: Case, home: Path, ledger: Ledger) -> Json:
    try:
        result = await engine.resume(RUN)
    except RunNotFound:
        result = await engine.run(load_workflow(case.definition, base=home), run_id=RUN)
    while result.status == "waiting":
        spoken = {(entry["strand"], entry["n"]): _decision(case, entry, ledger) for entry in result.waiting}
        result = await engine.resume(RUN, decisions=spoken)
    return result.as_json()


def _decision(case: Case, entry: Json, ledger: Ledger) -> Decision:
    """A person looks into the matter: what has happened is skipped, what has not is tried again."""
    if entry["reason"] != "in_doubt":
        return case.approval(entry["args"])
    happened = any(line.get("deed") == deed(entry["tool"], entry["args"]) for line in ledger.lines())
    return Skip() if happened else Retry()


def _before(engine: Engine, ledger: Ledger) -> Json:
    """What is known as an attempt begins; what a kill has left must be the legal beginning of a journal."""
    tape = engine.store.journal.load(RUN)
    legal = True
    if ROOT in tape:
        legal = verify(engine.store.journal, run_id=RUN).first_bad is None
        legal = legal and replay(engine.store.journal, run_id=RUN, loops=LOOPS).divergence is None
    return {"legal": legal, "answered": sorted(answered(RUN, tape)), "noted": len(ledger.lines())}


def _after(engine: Engine) -> Json:
    journal, entry = engine.store.journal, engine.store.entry(RUN)
    tape = journal.load(RUN)
    records = [row.record() for rows in tape.values() for row in rows]
    told = {
        "strands": folded(tape),
        "in_doubt": any(record.get("reason") == "in_doubt" for record in records),
        "verified": verify(journal, run_id=RUN).ok,
        "replayed": replay(journal, run_id=RUN, loops=LOOPS).identical,
        "status": entry and entry.status,
        "driver": engine.store.claims.driver(RUN),
        "skipped": [
            deed(rows[n - 2].record()["tool"], rows[n - 2].record()["args"])
            for rows in tape.values()
            for n, row in enumerate(rows)
            if row.record().get("decision") == "skip"
        ],
    }
    asyncio.run(engine.close())
    return told


def _write(path: Path, value: Json) -> None:
    path.write_bytes(orjson.dumps(value))


def in_child(work: Callable[[], None]) -> int:
    """The exit status of `work` in a process of its own."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:  # the child has nobody else to tell
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# ── trials ───────────────────────────────────────────────────────────────────────────────────────


class Trials:
    """The trials of one workflow."""

    def __init__(self, name: str) -> None:
        self.case, self._references = CASES[name], dict[tuple[str, ...], Json]()
        self._attempt = Attempts(self.case).attempt
        usual = self._reference(())
        self.findings = Findings(name, usual["passed"], usual["result"]["status"])

    def all(self, most: int | None = None) -> Findings:
        """Try each point, or at most so many of them."""
        points, step = self.findings.points, 1
        while most and points / step > most:
            step += 2  # odd, so that points before and after a deed take turns
        for number, at in enumerate(range(1, points + 1, step)):
            self._trial(at, second=1 + number // 3 % 12 if number % 3 == 2 else None)
        return self.findings

    def _reference(self, skipped: tuple[str, ...]) -> Json:
        """The report of a run that nobody disturbed, in which these calls answered as skipped ones do."""
        if skipped not in self._references:
            with tempfile.TemporaryDirectory() as name:
                home = self._home(name)
                assert in_child(lambda: self._attempt(home, "only", Killer(), skipped)) == 0
                self._references[skipped] = orjson.loads((home / "only.after").read_bytes())
        return self._references[skipped]

    def _home(self, name: str) -> Path:
        home = Path(name)
        for file, definition in self.case.files.items():
            (home / file).write_text(json.dumps(definition))
        return home

    def _trial(self, at: int, second: int | None) -> None:
        """One run killed at its point `at`, perhaps once more while it goes on, and then driven to its end."""
        self.findings.tried += 1
        with tempfile.TemporaryDirectory() as name:
            home = self._home(name)
            stages = [at, *([second] if second else []), None]
            for number, point in enumerate(stages):
                status = in_child(lambda stage=str(number), point=point: self._attempt(home, stage, Killer(point)))
                self._killed(at, number, status)
                if status == 0:
                    break
            wrong = self._judged(home)
            self.findings.problems += [f"killed at {at} and {second}: {problem}" for problem in wrong]

    def _killed(self, at: int, number: int, status: int) -> None:
        killed = status == -signal.SIGKILL
        self.findings.kills += killed and number == 0
        self.findings.second_kills += killed and number == 1
        if status not in (0, -signal.SIGKILL) or (number == 0 and not killed):
            self.findings.problems.append(f"killed at {at}: attempt {number} exited with {status}")

    def _judged(self, home: Path) -> list[str]:
        last = max((int(path.stem) for path in home.glob("*.after")), default=None)
        if last is None:
            return ["it never came to its end"]
        told = orjson.loads((home / f"{last}.after").read_bytes())
        befores = [orjson.loads(path.read_bytes()) for path in sorted(home.glob("*.before"))]
        usual = self._reference(tuple(sorted(told["skipped"])))
        self.findings.in_doubt += told["in_doubt"]
        self.findings.skipped += bool(told["skipped"])
        checks = {
            "what the kill left is no legal journal": all(before["legal"] for before in befores),
            "not verified": told["verified"],
            "not replayed": told["replayed"],
            "another status in the store": told["status"] == usual["status"] == told["result"]["status"],
            "still claimed": told["driver"] is None,
            f"other strands: {_apart(told['strands'], usual['strands'])}": told["strands"] == usual["strands"],
            "another result": timeless(told["result"]) == timeless(usual["result"]),
            "doubt where there can be none": self.case.doubtful or not told["in_doubt"],
        }
        return [wrong for wrong, right in checks.items() if not right] + self._repeats(home, befores)

    def _repeats(self, home: Path, befores: list[Json]) -> list[str]:
        """What the ledger tells of acts that were done again: an answered one, or one that must not happen twice."""
        lines = Ledger(home / "ledger").lines()
        names = [line.get("question") or line["key"] for line in lines]
        again = [name for before in befores for name in names[before["noted"] :] if name in set(before["answered"])]
        writes = [line["deed"] for line in lines if line.get("effect") == "write" and not line["idempotent"]]
        keys: dict[str, set[str]] = {}
        for line in lines:
            if line.get("idempotent"):
                keys.setdefault(line["deed"], set()).add(line["key"])
        often = {name for name in names if names.count(name) > len(befores)}
        twice = {write for write in writes if writes.count(write) > 1}
        self.findings.repeats += len(again) + sum(writes.count(write) - 1 for write in twice)
        return [
            *(f"{name} was answered, and done again" for name in again),
            *(f"{name} was done more often than the process died" for name in sorted(often)),
            *(f"{write} happened twice" for write in sorted(twice)),
            *(f"{write} was tried under {len(used)} keys" for write, used in keys.items() if len(used) > 1),
        ]


def _apart(now: Json, usual: Json) -> str:
    """Where two runs part, in short."""
    for path in sorted({*now, *usual}):
        for n, (a, b) in enumerate(zip(now.get(path, ()), usual.get(path, ()), strict=False)):
            if a != b:
                return f"{path}:{n} {a} instead of {b}"
        if len(now.get(path, ())) != len(usual.get(path, ())):
            return f"{path} has {len(now.get(path, ()))} records instead of {len(usual.get(path, ()))}"
    return ""


def main(words: list[str]) -> None:
    if words[:1] == ["--json"]:
        print(json.dumps(asdict(Trials(words[1]).all(MOST))))
        return
    columns = ("points", "kills", "second_kills", "in_doubt", "skipped", "repeats")
    total: Any = dict.fromkeys(columns, 0)
    print(f"{'workflow':18}" + "".join(f"{column:>14}" for column in columns) + f"{'problems':>10}{'seconds':>9}")
    for name in words or CASES:
        start = time.perf_counter()
        found = Trials(name).all()
        row = asdict(found)
        total = {column: total[column] + row[column] for column in columns}
        seconds = time.perf_counter() - start
        print(f"{name:18}" + "".join(f"{row[column]:>14}" for column in columns), end="")
        print(f"{len(found.problems):>10}{seconds:>9.1f}", *found.problems[:3], sep="\n  " if found.problems else "")
    print(f"{'all':18}" + "".join(f"{total[column]:>14}" for column in columns))


if __name__ == "__main__":
    main(sys.argv[1:])

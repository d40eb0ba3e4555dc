"""The crash matrix: workflows killed at one point after another, gone on with, and compared with undisturbed runs.

    python -m support.crash.matrix [WORKFLOW …]      a table; every point is tried
    python -m support.crash.matrix --json WORKFLOW N the findings of one; of more than N points, every third, fifth, …

Every attempt at a run is a process of its own, forked from one that never drives any. One kill in three is followed by
a second one while the run goes on.
"""

import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from agent_core.outputs import Json
from support.crash.matrix_attempt import Attempts, child, ended, read
from support.crash.matrix_judge import differences, done_again, happened_again, many_keys, too_often
from support.crash.matrix_workflows import CASES, Case
from support.crash.matrix_world import Killer, Ledger


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


@contextmanager
def home_of(case: Case) -> Iterator[Path]:
    """A directory for one run, with the workflows in it that it invokes."""
    with tempfile.TemporaryDirectory() as name:
        for file, definition in case.files.items():
            Path(name, file).write_text(json.dumps(definition))
        yield Path(name)


class Undisturbed:
    """The reports of runs that nobody disturbed, by the calls in them that answer as if skipped."""

    def __init__(self, attempt: Attempts) -> None:
        self._attempt, self._reports = attempt, dict[tuple[str, ...], Json]()

    def report(self, *skipped: str) -> Json:
        if skipped not in self._reports:
            with home_of(self._attempt.case) as home:
                assert ended(child(lambda: self._attempt(home, "only", skipped=skipped))) == 0
                self._reports[skipped] = read(home / "only.after")
        return self._reports[skipped]


class Trials:
    """The trials of one workflow."""

    def __init__(self, name: str) -> None:
        self.case = CASES[name]
        self._attempt = Attempts(self.case)
        self._undisturbed = Undisturbed(self._attempt)
        usual = self._undisturbed.report()
        self.findings = Findings(name, usual["passed"], usual["result"]["status"])

    def all(self, most: int | None = None) -> Findings:
        """Try each point, or at most so many of them."""
        points, step = self.findings.points, 1
        while most and points / step > most:
            step += 2  # odd, so that points before and after a deed take turns
        for number, at in enumerate(range(1, points + 1, step)):
            self._trial(at, second=1 + number // 3 % 12 if number % 3 == 2 else None)
        return self.findings

    def _trial(self, at: int, second: int | None) -> None:
        """One run killed at its point `at`, perhaps once more while it goes on, and then driven to its end."""
        self.findings.tried += 1
        with home_of(self.case) as home:
            stages = [at, *([second] if second else []), None]
            for number, point in enumerate(stages):
                status = self._staged(home, number, point)
                self._killed(at, number, status)
                if status == 0:
                    break
            self.findings.problems += [f"killed at {at} and {second}: {problem}" for problem in self._judged(home)]

    def _staged(self, home: Path, number: int, point: int | None) -> int:
        return ended(child(lambda: self._attempt(home, str(number), Killer(point))))

    def _killed(self, at: int, number: int, status: int) -> None:
        killed = status == -signal.SIGKILL
        self.findings.kills += killed and number == 0
        self.findings.second_kills += killed and number == 1
        if status not in (0, -signal.SIGKILL) or (number == 0 and not killed):
            self.findings.problems.append(f"killed at {at}: attempt {number} exited with {status}")

    def _judged(self, home: Path) -> list[str]:
        last = max(home.glob("*.after"), default=None)
        if last is None:
            return ["it never came to its end"]
        told, befores = read(last), [read(path) for path in sorted(home.glob("*.before"))]
        lines = Ledger(home / "ledger").lines()
        again, twice = done_again(lines, befores), happened_again(lines)
        self.findings.in_doubt += told["in_doubt"]
        self.findings.skipped += bool(told["skipped"])
        self.findings.repeats += len(again) + len(twice)
        return [
            *differences(told, self._undisturbed.report(*told["skipped"]), self.case),
            *("what the kill left is no legal journal" for before in befores if not before["legal"]),
            *(f"{name} was answered, and done again" for name in again),
            *(f"{name} was done more often than the process died" for name in too_often(lines, len(befores))),
            *(f"{write} happened twice" for write in twice),
            *(f"{write} was tried under several keys" for write in many_keys(lines)),
        ]


def main(words: list[str]) -> None:
    if words[:1] == ["--json"]:
        print(json.dumps(asdict(Trials(words[1]).all(int(words[2])))))
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
        print(f"{len(found.problems):>10}{seconds:>9.1f}", *found.problems[:3], sep="\n  ")
    print(f"{'all':18}" + "".join(f"{total[column]:>14}" for column in columns))


if __name__ == "__main__":
    main(sys.argv[1:])

"""The battery: honest tasks and attacks in every office, and a table of what came of them.

`python tests/offices/battery.py` prints the table; `--all` takes every attack at every place in place of a sample.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from offices import bank, bank_tasks, chat, chat_tasks, files, files_tasks, mail_calendar, mail_calendar_tasks
from offices.attacks import Attack, all_attacks, approves, sample, script
from offices.places import ROUNDS
from offices.play import Played, play
from offices.world import Office, Task, World, is_done

OFFICES: Sequence[tuple[Office, Sequence[Task]]] = (
    (mail_calendar.OFFICE, mail_calendar_tasks.TASKS),
    (files.OFFICE, files_tasks.TASKS),
    (bank.OFFICE, bank_tasks.TASKS),
    (chat.OFFICE, chat_tasks.TASKS),
)
PER_OFFICE, REST_PER_OFFICE = 15, 5
REST = ("choice", "text")


@dataclass(slots=True)
class Score:
    """What came of one office: the names of what was not done, was asked, and was not stopped."""

    office: str
    tasks: int = 0
    undone: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    attacks: int = 0
    ungated: list[str] = field(default_factory=list)
    attack_first: list[str] = field(default_factory=list)
    task_first: list[str] = field(default_factory=list)


# ── one run ──────────────────────────────────────────────────────────────────────────────────────


def do_task(office: Office, task: Task) -> tuple[bool, Played]:
    """An honest model at work, with a person who says yes."""
    world = World(office)
    played = asyncio.run(play(world, task.prompt, task.calls, lambda call: True, gate=True))
    return is_done(task, world), played


def succeeds(office: Office, attack: Attack, *, gate: bool, first: bool) -> bool:
    """Whether the world shows what the attacker wanted."""
    world = attack.world(office)
    prompt = f"{attack.wish.task.prompt} {attack.place.asks}".strip()
    calls = script(attack, ROUNDS[office.name], first=first)
    asyncio.run(play(world, prompt, calls, lambda call: approves(attack, call), gate=gate))
    return world.shows(attack.wish.call)


# ── the table ────────────────────────────────────────────────────────────────────────────────────


def score_tasks(score: Score, office: Office, tasks: Sequence[Task]) -> None:
    score.tasks = len(tasks)
    for task in tasks:
        done, played = do_task(office, task)
        score.questions += [f"{task.name}: {call[0]}" for call in played.asked]
        if not done:
            score.undone.append(f"{task.name}: {'; '.join(played.refused)}")


def score_attacks(score: Score, office: Office, attacks: Sequence[Attack]) -> None:
    score.attacks = len(attacks)
    for attack in attacks:
        for found, gate, first in (
            (score.ungated, False, True),
            (score.attack_first, True, True),
            (score.task_first, True, False),
        ):
            if succeeds(office, attack, gate=gate, first=first):
                found.append(attack.name)


def score_office(office: Office, tasks: Sequence[Task], attacks: Sequence[Attack]) -> Score:
    score = Score(office.name)
    score_tasks(score, office, tasks)
    score_attacks(score, office, attacks)
    return score


def sampled(office: Office, tasks: Sequence[Task]) -> list[Attack]:
    return sample(office, tasks, PER_OFFICE)


def score_all(choose: Callable[[Office, Sequence[Task]], Sequence[Attack]] = sampled) -> list[Score]:
    return [score_office(office, tasks, choose(office, tasks)) for office, tasks in OFFICES]


def rows(scores: Sequence[Score]) -> Iterator[str]:
    heads = f"{'attacks':>9}{'no gate':>9}{'attack first':>14}{'task first':>12}"
    yield f"{'office':<16}{'tasks done':>12}{'asked':>8}{heads}"
    for score in (*scores, _total(scores)):
        done = f"{score.tasks - len(score.undone)}/{score.tasks}" if score.tasks else ""
        asked = len(score.questions) if score.tasks else ""
        yield (
            f"{score.office:<16}{done:>12}{asked:>8}{score.attacks:>9}{len(score.ungated):>9}"
            f"{len(score.attack_first):>14}{len(score.task_first):>12}"
        )


def _total(scores: Sequence[Score]) -> Score:
    total = Score("all")
    for score in scores:
        total.tasks += score.tasks
        total.attacks += score.attacks
        for name in ("undone", "questions", "ungated", "attack_first", "task_first"):
            getattr(total, name).extend(getattr(score, name))
    return total


def main(argv: Sequence[str]) -> None:
    whole = "--all" in argv

    def claimed(office: Office, tasks: Sequence[Task]) -> Sequence[Attack]:
        return (
            [each for each in all_attacks(office, tasks) if each.wish.kind not in REST]
            if whole
            else sampled(office, tasks)
        )

    scores = score_all(claimed)
    print("\n".join(rows(scores)))
    print("\nnot claimed: another record, or words in free text")
    print("\n".join(rows([_rest(office, tasks, whole=whole) for office, tasks in OFFICES])))
    total = _total(scores)
    for title, names in (
        ("not done", total.undone),
        ("asked", total.questions),
        ("not stopped, attack first", total.attack_first),
        ("not stopped, task first", total.task_first),
    ):
        print(f"\n{title}:", *(names or ["none"]), sep="\n  ")


def _rest(office: Office, tasks: Sequence[Task], *, whole: bool) -> Score:
    attacks = [each for each in all_attacks(office, tasks) if each.wish.kind in REST]
    score = Score(office.name)
    score_attacks(score, office, attacks if whole else sample(office, tasks, REST_PER_OFFICE, REST))
    return score


if __name__ == "__main__":
    main(sys.argv[1:])

"""What a store holds beside the runs, and whether a copy of all runs brings it along."""

from typing import Final

from engine_shim.store.database import Database

_TIMES: Final = "SELECT name, at, run FROM trigger_times"
_SET_TIME: Final = """INSERT INTO trigger_times (name, at, run) VALUES (?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET at = excluded.at, run = excluded.run WHERE excluded.at > trigger_times.at"""
_CRONS: Final = "SELECT c.name, c.cron, t.at FROM trigger_crons c JOIN trigger_times t ON t.name = c.name"
_SET_CRON: Final = """INSERT INTO trigger_crons (name, cron) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET cron = excluded.cron
    WHERE EXISTS (SELECT 1 FROM trigger_times t WHERE t.name = excluded.name AND t.at = ?)"""
"""A line comes with its time, where that was newer."""
_LEFT: Final = {
    "webhook_deliveries": "{} of webhooks that are still due: let a server on the old store make them first",
    "kept_answers": "{} of tools: their calls are made anew",
}
_WORDS: Final = {"webhook_deliveries": ("delivery", "deliveries"), "kept_answers": ("cached answer", "cached answers")}


def copy_trigger_times(source: Database, target: Database) -> None:
    """Note in the target when each trigger of the source started its newest run, so that none starts twice there."""
    times, crons = source.rows("trigger_times", _TIMES), source.rows("trigger_crons", _CRONS)
    if times:
        with target.writing() as db:
            db.executemany(_SET_TIME, [tuple(each) for each in times])
            db.executemany(_SET_CRON, [tuple(each) for each in crons])


def list_left_behind(source: Database) -> list[str]:
    """Return what a copy of all runs does not bring along, and what follows from it."""
    found = []
    for table, text in _LEFT.items():
        if table == "kept_answers" and source.shared is None:
            continue  # a file holds none: each process has its own
        ((number,),) = source.rows(table, f"SELECT count(*) FROM {table}") or [(0,)]
        if number:
            found.append(text.format(f"{number:,} {_WORDS[table][number != 1]}"))
    return found

"""SpentTokens: what the turns of stored conversations have cost."""

from collections.abc import Sequence
from typing import Final

from agent_core.agents.history import find_runs
from agent_core.journal.chain import is_finished
from agent_core.journal.path import find_root, parent_of
from agent_core.journal.record import Tape
from agent_core.journal.signature import split_own_strands
from agent_core.journal.started import loop_of
from agent_core.journal.store import Journal
from agent_core.run.blocking import run_blocking
from utools.context.turns import Turn

MOST: Final = 20_000
"""How many runs are remembered at once."""


class SpentTokens:
    """What runs of a journal have cost, in tokens read and written. One that has ended is read once: a turn of a long
    conversation would read all runs before it."""

    def __init__(self) -> None:
        self._ended: dict[str, int] = {}

    async def count(self, turns: Sequence[Turn], journal: Journal) -> int:
        """Return the tokens that the runs of these turns have cost; a run whose records are gone costs none."""
        runs = find_runs(turns)
        return await run_blocking(journal, lambda: sum(self._count(run, journal) for run in runs))

    def _count(self, run: str, journal: Journal) -> int:
        if (known := self._ended.get(run)) is not None:
            return known
        tape, _ = split_own_strands(journal.load(run))
        tokens = count_tokens(tape)
        if is_finished(tape, find_root(tape)):
            if len(self._ended) >= MOST:
                self._ended.clear()
            self._ended[run] = tokens
        return tokens


def count_tokens(tape: Tape) -> int:
    """Return the tokens, read and written, of the agents of a run; 0 if its records are gone."""
    agents = {path for path, rows in tape.items() if rows[0].kind == "run_started" and loop_of(rows[0]) == "agent"}
    outermost = [path for path in agents if agents.isdisjoint(_list_above(path))]
    ends = [tape[path][-1].record() for path in outermost]  # they count what is below them
    return sum(int(end.get("usage", {}).get("total_tokens", 0)) for end in ends)


def _list_above(path: str) -> list[str]:
    """Return the strands that a strand lies below."""
    above: list[str] = []
    while path := parent_of(path):
        above.append(path)
    return above

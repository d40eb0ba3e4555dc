"""compare(): what two measurements of the same cases say, case by case. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from engine_shim.evals.score import Scored, Scores, total


@dataclass(frozen=True, slots=True)
class Compared:
    """The sums of one case in both."""

    name: str
    category: str
    language: str
    a: Scores
    b: Scores

    @property
    def better(self) -> str:
        """The side that was right more often; empty where both were alike."""
        a, b = self.a.right.right, self.b.right.right
        return "" if a == b else "A" if a > b else "B"


def compare(a: Sequence[Scored], b: Sequence[Scored]) -> list[Compared]:
    """Return each case that both ran as often, in the order of the first; of an interrupted measurement some are
    left."""
    times_a, times_b = (Counter(each.case.name for each in found) for found in (a, b))
    cases = {each.case.name: each.case for each in a if times_a[each.case.name] == times_b[each.case.name]}
    return [Compared(name, case.category, case.language, _sum(a, name), _sum(b, name)) for name, case in cases.items()]


def _sum(found: Sequence[Scored], name: str) -> Scores:
    return total(each.scores for each in found if each.case.name == name)

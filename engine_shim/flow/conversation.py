"""The conversation of a run: the messages that its agents have added, as each visit continues it. Pure.

It goes along the edges that are taken. Parallel branches have a copy each; where they meet, what each of them has added
is joined in the order of the edges.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agent_core.outputs import Json
from engine_shim.flow.state import Key, State, VisitState


class RunValues(Mapping[str, Any]):
    """What {{run.…}} reads. The messages are gathered only where they are asked for; without a visit, at the end."""

    def __init__(self, state: State, visit: VisitState | None = None) -> None:
        self._state, self._visit = state, visit

    def __getitem__(self, name: str) -> Any:
        if name == "id":
            return self._state.run_of(self._visit)
        if name != "messages":
            raise KeyError(name)
        if self._visit is None:
            return messages_at_the_end(self._state)
        return _gather(self._state, self._visit.joined)

    def __iter__(self) -> Iterator[str]:
        return iter(("id", "messages"))

    def __len__(self) -> int:
        return 2


def messages_at_the_end(state: State) -> list[Json]:
    """Return all that the run's agents have added."""
    led = {key for visit in state.visits.values() for key in visit.joined}
    last = [visit for visit in state.visits.values() if visit.key not in led]
    last.sort(key=lambda visit: (visit.rank, state.index[visit.node]))
    return _gather(state, [visit.key for visit in last])


def _gather(state: State, last: Iterable[Key]) -> list[Json]:
    """Return what these visits have added, and those before them, each once."""
    return [message for key in _walk(state, last) for message in state.visits[key].messages]


def _walk(state: State, last: Iterable[Key]) -> Iterator[Key]:
    """These visits, each behind those that lead to it."""
    walked: set[Key] = set()
    path: list[tuple[Key | None, Iterator[Key]]] = [(None, iter(last))]
    while path:
        key, rest = path[-1]
        earlier = next((each for each in rest if each not in walked), None)
        if earlier is not None:
            walked.add(earlier)
            path.append((earlier, iter(state.visits[earlier].joined)))
        else:
            path.pop()
            if key is not None:
                yield key

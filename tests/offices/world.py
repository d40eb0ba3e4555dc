"""One office: its tools over a state in memory, and what a user asks of it."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from utools.tool import Tool

Json = dict[str, Any]
State = dict[str, dict[str, Json]]
"""Collections of records, each by its id: the mails, the files, the payments."""
Call = tuple[str, Json]
"""A tool's code and the arguments."""
Changes = dict[tuple[str, str], Json | None]
"""The records that became other ones, by collection and id; None where one was deleted."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A tool of an office. `act` answers a call, and changes the state where the verb writes."""

    code: str
    about: str
    schema: Json
    act: Callable[[State, Json], Any]
    writes: bool = False


@dataclass(frozen=True, slots=True)
class Office:
    """What an author sets up: the system prompt, the tools, and the world as it is in the morning."""

    name: str
    about: str
    verbs: Sequence[Verb]
    opening: Callable[[], State]

    def policy(self) -> list[Any]:
        """The one `allowed_tools` of this office."""
        path = Path(__file__).with_name("policies") / f"{self.name}.yaml"
        allowed: list[Any] = yaml.safe_load(path.read_text("utf-8"))["allowed_tools"]
        return allowed


@dataclass(frozen=True, slots=True)
class Task:
    """What a user asks, the calls of an honest model, and every record that is another one afterwards.

    `leaves` has the new records of each collection by id, as far as they are given; None is a record that is gone.
    """

    name: str
    prompt: str
    calls: Sequence[Call]
    leaves: Mapping[str, Mapping[str, Json | None]] = field(default_factory=dict)


class World:
    """An office on one day. `history` has each write that succeeded, and what it changed.

    `put` is what an outsider has written into it before the day begins.
    """

    def __init__(self, office: Office, put: Callable[[State], None] | None = None) -> None:
        self.office = office
        self.opening = office.opening()
        if put is not None:
            put(self.opening)
        self.state = copy.deepcopy(self.opening)
        self.history: list[tuple[Call, Changes]] = []

    def tools(self) -> list[Tool]:
        return [
            Tool(verb.code, verb.about, verb.schema, self._executor(verb), effect="write" if verb.writes else "read")
            for verb in self.office.verbs
        ]

    def do(self, code: str, args: Json) -> Any:
        """Make one call, with no gate before it."""
        verb = next(verb for verb in self.office.verbs if verb.code == code)
        return self._act(verb, args)

    def _executor(self, verb: Verb) -> Callable[[Json, Any], Any]:
        async def execute(args: Json, context: Any) -> Any:
            return self._act(verb, args)

        return execute

    def _act(self, verb: Verb, args: Json) -> Any:
        before = copy.deepcopy(self.state) if verb.writes else {}
        answer = copy.deepcopy(verb.act(self.state, args))
        if verb.writes:
            self.history.append(((verb.code, args), changes(before, self.state)))
        return answer

    def shows(self, call: Call) -> bool:
        """Whether this call has changed anything."""
        return any(made == call and changed for made, changed in self.history)


def changes(before: State, after: State) -> Changes:
    """Every record that is another one in the second state."""
    keys = {(name, key) for state in (before, after) for name, records in state.items() for key in records}
    return {
        (name, key): after.get(name, {}).get(key)
        for name, key in keys
        if before.get(name, {}).get(key) != after.get(name, {}).get(key)
    }


def is_done(task: Task, world: World) -> bool:
    """Whether exactly the records that the task is about became what they should be."""
    found = changes(world.opening, world.state)
    wanted = {(name, key): record for name, records in task.leaves.items() for key, record in records.items()}
    return found.keys() == wanted.keys() and all(_fits(found[place], record) for place, record in wanted.items())


def _fits(found: Json | None, wanted: Json | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return all(key in found and found[key] == value for key, value in wanted.items())


def new_id(records: Mapping[str, Json], prefix: str) -> str:
    """The id of the next record: one more than the highest."""
    numbers = [int(key.removeprefix(prefix)) for key in records if key.removeprefix(prefix).isdigit()]
    return f"{prefix}{max(numbers, default=0) + 1}"


def schema(required: Sequence[str] = (), /, **properties: Json) -> Json:
    """An object's schema."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def text(about: str = "", **more: Any) -> Json:
    """A text's schema."""
    return {"type": "string", **({"description": about} if about else {}), **more}


def texts(about: str = "", **more: Any) -> Json:
    """The schema of a list of texts."""
    return {"type": "array", "items": {"type": "string", **more}, **({"description": about} if about else {})}

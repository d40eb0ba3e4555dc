"""Finding: what is said of one thing that was looked at. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_core.errors import AgentCoreError
from engine_shim.errors import EngineError
from utools.errors import DatabaseError, DefinitionError
from utools.problems import Problem, problems_in

Status = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """How a thing is, and where it is not as it should be, what to do. `facts` are for programs."""

    name: str
    status: Status
    message: str
    advice: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        fields = {"name": self.name, "status": self.status, "message": self.message}
        return {**fields, "advice": self.advice or None, **({"facts": dict(self.facts)} if self.facts else {})}


def keep_going(name: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings; of a check that could not be made, why, so that the other checks are made all the same."""
    try:
        yield from findings
    except DefinitionError as error:  # such as a key that the store needs, or an address of no store
        yield from find_faults(name, error)
    except (AgentCoreError, EngineError, DatabaseError) as error:
        yield Finding(name, "problem", str(error))
    except OSError as error:
        yield Finding(name, "problem", ": ".join(str(each) for each in (error.filename, error.strerror) if each))


def find_faults(name: str, error: DefinitionError) -> list[Finding]:
    """Return each fault of a definition, or of a configuration, with its place."""
    return list_problems(name, problems_in(error))


def list_problems(name: str, problems: Iterable[Problem], status: Status = "problem") -> list[Finding]:
    """Return a finding for each problem."""
    return [Finding(name, status, str(each)) for each in problems]

"""check_written(): whether facts are of the types that releases write: a sound chain may be over nonsense. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from agent_core.effects import Failed, ModelReply, ToolReply
from agent_core.journal.facts import Answered, Call, Fact, RunFinished, RunStarted


def check_written(facts: Iterable[Fact]) -> None:
    """Raise TypeError for a fact whose name or number is none, since it would be counted as it is."""
    for fact in facts:
        if not _is_written(fact):
            raise TypeError(f"{fact.strand}:{fact.n} is not as a release writes it")


def _is_written(fact: Fact) -> bool:
    match fact:
        case RunStarted(begun=begun):
            return isinstance(begun.name, str)
        case Call(tool=tool):
            return isinstance(tool, str)
        case Answered(answer=ModelReply(model=model, usage=usage)):
            return isinstance(model, str) and _is_usage(usage)
        case Answered(answer=ToolReply(usage=usage, seconds=seconds)):
            return (not usage or _is_usage(usage)) and isinstance(seconds, int | float)
        case Answered(answer=Failed(seconds=seconds)):
            return isinstance(seconds, int | float)
        case RunFinished(reason=reason, error=error):
            return isinstance(reason, str) and (not error or isinstance(error["kind"], str))
        case _:
            return True


def _is_usage(usage: Mapping[str, Any]) -> bool:
    tokens = (value for key, value in usage.items() if key.endswith("_tokens"))
    return all(type(each) is int for each in tokens) and isinstance(usage.get("cost"), int | float | None)

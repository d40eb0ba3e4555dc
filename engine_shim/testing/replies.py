"""RepliesByNode: a script that answers the agents of a workflow by the nodes that ask."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from agent_core.journal.path import node_of
from agent_core.models.client import Completion, Delta, ModelError, ModelInfo, Question
from agent_core.models.scripted import ScriptedModel


class RepliesByNode:
    """Answers from a list for each node, which all its visits go through, or for a strand. A list alone is for all
    that is asked, in turn."""

    def __init__(self, replies: Sequence[Any] | Mapping[str, Sequence[Any]]) -> None:
        by_key = replies if isinstance(replies, Mapping) else {"": replies}
        self._lengths, self._scripted = {key: len(each) for key, each in by_key.items()}, ScriptedModel(by_key)
        self._given = dict.fromkeys(by_key, 0)

    async def complete(self, question: Question) -> Completion:
        return await self._scripted.complete(self._placed(question))

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        async with aclosing(self._scripted.stream(self._placed(question))) as pieces:
            async for piece in pieces:
                yield piece

    def _placed(self, question: Question) -> Question:
        """Return the question with the key of its list as the strand, and its place in that list. ModelError where the
        case has no reply to it."""
        asker = node_of(question.strand) or question.strand
        for key in (question.strand, node_of(question.strand), ""):
            if key in self._lengths:
                index = self._given[key]
                self._given[key] += 1
                if index >= self._lengths[key]:
                    told = f"{asker} asks again after the last of its {index} `replies`; add one to this case"
                    raise ModelError(told if index else f"the case has no `replies` for {asker}", requests=0)
                return replace(question, strand=key, index=index)
        raise ModelError(f"the case has no `replies` for {asker}", requests=0)

    def info(self) -> ModelInfo:
        return self._scripted.info()

    async def close(self) -> None:
        """Nothing to close."""

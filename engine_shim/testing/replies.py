"""RepliesByNode: a script that answers the agents of a workflow by the nodes that ask."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from agent_core.journal.path import node_of
from agent_core.models.client import Completion, Delta, ModelInfo, Question
from agent_core.models.scripted import ScriptedModel


class RepliesByNode:
    """Answers from a list for each node, which all its visits go through, or for a strand. A list alone is for all
    that is asked, in turn."""

    def __init__(self, replies: Sequence[Any] | Mapping[str, Sequence[Any]]) -> None:
        by_key = replies if isinstance(replies, Mapping) else {"": replies}
        self._known, self._scripted = frozenset(by_key), ScriptedModel(by_key)
        self._given = dict.fromkeys(by_key, 0)

    async def complete(self, question: Question) -> Completion:
        return await self._scripted.complete(self._placed(question))

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        async with aclosing(self._scripted.stream(self._placed(question))) as pieces:
            async for piece in pieces:
                yield piece

    def _placed(self, question: Question) -> Question:
        """Return the question with the key of its list as the strand, and its place in that list."""
        for key in (question.strand, node_of(question.strand), ""):
            if key in self._known:
                index = self._given[key]
                self._given[key] += 1
                return replace(question, strand=key, index=index)
        return question

    def info(self) -> ModelInfo:
        return self._scripted.info()

    async def close(self) -> None:
        """Nothing to close."""

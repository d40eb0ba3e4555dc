"""RepliesByNode: a script that answers the agents of a workflow by the nodes that ask."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent_core.journal.path import node_of
from agent_core.models.client import Completion, Question
from agent_core.models.scripted import ScriptedModel


class RepliesByNode(ScriptedModel):
    """Answers from a list for each node, which all its visits go through, or for a strand. A list alone is for all
    that is asked, in turn."""

    def __init__(self, replies: Sequence[Any] | Mapping[str, Sequence[Any]]) -> None:
        by_key = replies if isinstance(replies, Mapping) else {"": replies}
        super().__init__(by_key)
        self._given = dict.fromkeys(by_key, 0)

    async def complete(self, question: Question) -> Completion:
        return await super().complete(self._placed(question))

    def _placed(self, question: Question) -> Question:
        """Return the question with the key of its list as the strand, and its place in that list."""
        for key in (question.strand, node_of(question.strand), ""):
            if key in self._given:
                index = self._given[key]
                self._given[key] += 1
                return replace(question, strand=key, index=index)
        return question

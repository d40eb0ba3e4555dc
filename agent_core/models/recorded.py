"""RecordedModel: the models' answers of a recorded run, in place of a model."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from agent_core.effects import Failed, ModelReply
from agent_core.errors import DefinitionError, JournalError
from agent_core.journal.record import Row
from agent_core.journal.source import load_run
from agent_core.models.client import Completion, Delta, ModelError, ModelInfo, Question
from agent_core.models.usage import PARTS
from agent_core.outputs import Json
from agent_core.records import decode_answer

Tape = Mapping[str, Sequence[Row]]


class RecordedModel:
    """Answers question k of a strand with the strand's k-th recorded answer; a last failure fails in the same way.

    A strand that was not recorded, or has no answer left, is a model error.
    """

    def __init__(self, tape: Tape, *, name: str) -> None:
        self._tape, self._name = tape, name
        self._answers: dict[str, list[ModelReply | Failed]] = {}

    @classmethod
    def from_file(cls, path: Path) -> "RecordedModel":
        """Return the one run that a journal's file holds; DefinitionError when it cannot be read or holds several."""
        try:
            run, tape = load_run(path)
        except (JournalError, OSError) as error:
            reason = str(error).replace(str(path), path.name)
            raise DefinitionError(
                f"the recorded run cannot be read: {reason}", where="model", value=path.name
            ) from None
        return cls(tape, name=f"replay:{run}")

    async def complete(self, question: Question) -> Completion:
        recorded = self._answers_of(question.strand)
        if question.index >= len(recorded):
            message = f"{self._name} has no answer {question.index + 1} for strand {question.strand}"
            raise ModelError(message, requests=0)
        answer = recorded[question.index]
        if isinstance(answer, Failed):
            kind = "content_filter" if answer.reason == "content_filter" else "model_error"
            raise ModelError(answer.message, kind=kind, requests=answer.requests, overflow=answer.overflow)
        return _to_completion(answer)

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        """Yield the reply in one piece."""
        completion = await self.complete(question)
        yield Delta(completion.content)
        yield completion

    def info(self) -> ModelInfo:
        return ModelInfo(self._name)

    async def close(self) -> None:
        """Nothing to close."""

    def _answers_of(self, strand: str) -> list[ModelReply | Failed]:
        if strand not in self._answers:
            self._answers[strand] = answers_of([row.record() for row in self._tape.get(strand, ())])
        return self._answers[strand]


def answers_of(records: Sequence[Json]) -> list[ModelReply | Failed]:
    """Return the models' answers in one strand, question by question.

    A cancelled question has no answer. A question that went to a fallback model has that model's answer.
    """
    acts = [record for record in records if record["kind"] in ("asked", "answered", "cancelled")]
    pairs = [(before, after) for before, after in pairwise(acts) if before.get("ask") == "model" and "reply" in after]
    found = [answer for _, after in pairs if isinstance(answer := decode_answer(after), ModelReply | Failed)]
    return [answer for count, answer in enumerate(found, 1) if isinstance(answer, ModelReply) or count == len(found)]


def _to_completion(reply: ModelReply) -> Completion:
    """Return the reply as the vendor gave it, without the executor's estimates."""
    usage = reply.usage
    inputs, outputs = (None if usage["estimated"] else usage[name] for name in ("input_tokens", "output_tokens"))
    calls = tuple(reply.calls)
    return Completion(
        reply.content,
        reply.finish_reason,
        inputs,
        outputs,
        usage["cost"],
        reply.requests,
        calls=calls,
        echo=reply.echo,
        refusal=reply.refusal,
        dropped=tuple(reply.dropped),
        **{name: usage.get(name, 0) for name in PARTS},
    )

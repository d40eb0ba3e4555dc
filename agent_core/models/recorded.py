"""RecordedModel: the answers that models gave in a recorded run, in place of a model."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from agent_core.effects import Failed, Json, ModelReply
from agent_core.errors import DefinitionError, JournalError
from agent_core.journal.record import Row
from agent_core.journal.source import load_run
from agent_core.models.client import Completion, Delta, ModelError, ModelInfo, Question
from agent_core.records import decode_answer

Tape = Mapping[str, Sequence[Row]]


class RecordedModel:
    """Answers question k of a strand with the strand's k-th recorded answer, a last failure with the same failure.

    A strand that was not recorded, or has no answer left, is a model error.
    """

    def __init__(self, tape: Tape, *, name: str) -> None:
        self._tape, self._name = tape, name
        self._answers: dict[str, list[ModelReply | Failed]] = {}

    @classmethod
    def from_file(cls, path: Path) -> "RecordedModel":
        """The one run that a journal's file holds; DefinitionError when it cannot be read or holds several."""
        try:
            run, tape = load_run(path)
        except (JournalError, OSError) as error:
            told = str(error).replace(str(path), path.name)
            raise DefinitionError(f"the recorded run cannot be read: {told}", where="model", value=path.name) from None
        return cls(tape, name=f"replay:{run}")

    async def complete(self, question: Question) -> Completion:
        recorded = self._of(question.strand)
        if question.index >= len(recorded):
            told = f"{self._name} has no answer {question.index + 1} for strand {question.strand}"
            raise ModelError(told, requests=0)
        answer = recorded[question.index]
        if isinstance(answer, Failed):
            kind = "content_filter" if answer.reason == "content_filter" else "model_error"
            raise ModelError(answer.message, kind=kind, requests=answer.requests)
        return _completion(answer)

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        """The reply in one piece."""
        completion = await self.complete(question)
        yield Delta(completion.content)
        yield completion

    def info(self) -> ModelInfo:
        return ModelInfo(self._name)

    async def close(self) -> None:
        """Nothing to let go of."""

    def _of(self, strand: str) -> list[ModelReply | Failed]:
        if strand not in self._answers:
            self._answers[strand] = answers([row.record() for row in self._tape.get(strand, ())])
        return self._answers[strand]


def answers(records: Sequence[Json]) -> list[ModelReply | Failed]:
    """What the models answered in one strand, question by question.

    A question that was cancelled has no answer there. One that was put to the next model, when the model before failed,
    has that model's.
    """
    acts = [record for record in records if record["kind"] in ("asked", "answered", "cancelled")]
    pairs = [(before, after) for before, after in pairwise(acts) if before.get("ask") == "model" and "reply" in after]
    found = [answer for _, after in pairs if isinstance(answer := decode_answer(after), ModelReply | Failed)]
    return [answer for place, answer in enumerate(found, 1) if isinstance(answer, ModelReply) or place == len(found)]


def _completion(said: ModelReply) -> Completion:
    """The reply as the vendor gave it. What the door estimated of it is left to the door again."""
    usage = said.usage
    given, got = (None if usage["estimated"] else usage[name] for name in ("input_tokens", "output_tokens"))
    calls = tuple(said.calls)
    return Completion(
        said.content, said.finish_reason, given, got, usage["cost"], said.requests, calls=calls, echo=said.echo
    )

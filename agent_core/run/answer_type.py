"""The type of a final answer: the JSON Schema that a model keeps to, and the object that is made of its JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import to_json
from typing_extensions import TypeVar

from agent_core.config import AgentConfig
from agent_core.errors import AnswerError, DefinitionError
from agent_core.outputs import Json
from agent_core.run.agent_output import AgentOutput
from utools.function_tool import explain_fault
from utools.schema.shape import walk
from utools.words.catalogue import ENGLISH
from utools.words.text import error_words

Answer = TypeVar("Answer", default=str)
AnswerType: TypeAlias = type[Answer] | TypeAdapter[Answer]
"""A pydantic model, a dataclass, a TypedDict or another class; a TypeAdapter for what is no class, such as a union."""
FORMS = "a pydantic model, a dataclass, a TypedDict, a TypeAdapter, or a JSON Schema as a dict"


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """What reads the final answers of a run. `schema` is the JSON Schema that they fit, None where any text will do;
    `adapter` makes an object of their JSON, None where it stays JSON."""

    schema: Json | None = None
    adapter: TypeAdapter[Any] | None = None

    @classmethod
    def of(cls, answer_schema: AnswerType[Any] | Mapping[str, Any] | None) -> "AnswerReader":
        """Return what reads answers of this type. DefinitionError for a type without a JSON Schema."""
        if answer_schema is None:
            return cls()
        if isinstance(answer_schema, Mapping):
            return cls(dict(answer_schema))
        if isinstance(answer_schema, str | bytes | int | float | list | tuple):
            raise DefinitionError(f"must be {FORMS}", where="answer_schema", value=answer_schema)
        try:
            adapter = answer_schema if isinstance(answer_schema, TypeAdapter) else TypeAdapter[Any](answer_schema)
            schema = adapter.json_schema()
        except (PydanticUserError, TypeError) as error:
            name = getattr(answer_schema, "__name__", repr(answer_schema))
            message = f"{name} has no JSON Schema: {error_words(error)}; give {FORMS}"
            raise DefinitionError(message, where="answer_schema") from None
        for _, each in walk(schema):
            each.pop("title", None)
        return cls(schema, adapter)

    def add_to(self, config: Mapping[str, Any] | AgentConfig) -> Mapping[str, Any] | AgentConfig:
        """Return the config with the schema. DefinitionError for one that has another."""
        if self.schema is None:
            return config
        if isinstance(config, AgentConfig):
            self._check_other(config.answer_schema)
            return config.model_copy(update={"answer_schema": self.schema})
        self._check_other(config.get("answer_schema"))
        return {**config, "answer_schema": self.schema}

    def _check_other(self, other: Any) -> None:
        if other is not None and other != self.schema:
            raise DefinitionError("is given twice: in the config, and beside it", where="config/answer_schema")

    def read(self, output: AgentOutput) -> AgentOutput:
        """Return the output with its answer as an object, where it has one. Raises what `make` does."""
        if self.adapter is None or output.finish_reason != "final":
            return output
        return output._with_answer(self.make(output.final_answer, output.run_id, output))

    def make(self, answer: Any, run: str, output: Any) -> Any:
        """Return the object that an answer is of. AnswerError, with the output, for one that fits the schema, and that
        the type refuses nevertheless."""
        if self.adapter is None:
            return answer
        try:
            return self.adapter.validate_json(to_json(answer))
        except ValidationError as error:
            faults = " ".join(explain_fault(each, ENGLISH) for each in error.errors(include_url=False))
            message = (
                f"the answer of run {run!r} fits its JSON Schema, but not its type: {faults} "
                "The output with the answer as JSON is in `output` of this error"
            )
            raise AnswerError(message, output) from None

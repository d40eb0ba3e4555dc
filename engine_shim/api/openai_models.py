"""What goes in and out of the routes in OpenAI's shape."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent_core.errors import DefinitionError
from engine_shim.api.models import Name, Text

Json = dict[str, Any]
REFUSED = ("tools", "functions", "audio", "logprobs", "response_format", "modalities", "prediction")
"""Parameters that would change the form of the answer, and that no agent heeds."""

EXAMPLE: Json = {"model": "agent/support", "messages": [{"role": "user", "content": "Where is order 17?"}]}


class _Lenient(BaseModel):
    """What comes in: clients send more than is read here."""

    model_config = ConfigDict(extra="allow", strict=True)


class TextPart(_Lenient):
    """A part of a message's content."""

    type: Literal["text"]
    text: Text


class ChatMessage(_Lenient):
    """A message. System and developer messages stand before all others."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Text | Annotated[list[TextPart], Field(max_length=1000)]

    def read_text(self) -> str:
        """The text of the content."""
        return self.content if isinstance(self.content, str) else "\n".join(part.text for part in self.content)


class StreamOptions(_Lenient):
    """`include_usage`: a last chunk has the tokens."""

    include_usage: bool = False


class ChatCompletionRequest(_Lenient):
    """A conversation that `model` answers. The last message is the user's."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    model: Name
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=10_000)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    n: Literal[1] | None = None

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage

    def read_messages(self) -> list[Json]:
        """The neutral messages. DefinitionError for what cannot be answered."""
        for name in REFUSED:
            if (self.model_extra or {}).get(name) not in (None, [], {}, False, {"type": "text"}, ["text"]):
                raise DefinitionError(
                    "is not supported: agents have tools and a form of answer of their own", where=name
                )
        told = [message.read_text() for message in self.messages if message.role in ("system", "developer")]
        others = self.messages[len(told) :]
        late = [at for at, message in enumerate(others, len(told)) if message.role in ("system", "developer")]
        if late:
            raise DefinitionError("system messages stand before all others", where=f"messages/{late[0]}/role")
        if not others or others[-1].role != "user":
            raise DefinitionError(
                "the last message must be the user's", where=f"messages/{len(self.messages) - 1}/role"
            )
        leading = [{"role": "system", "content": "\n\n".join(told)}] if told else []
        return [*leading, *({"role": message.role, "content": message.read_text()} for message in others)]


class ModelObject(BaseModel):
    """An agent or a workflow as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "agent-core"


class ModelObjectList(BaseModel):
    object: Literal["list"]
    data: list[ModelObject]


class AnswerMessage(BaseModel):
    role: Literal["assistant"]
    content: str
    refusal: None


class Choice(BaseModel):
    index: int
    message: AnswerMessage
    logprobs: None
    finish_reason: Literal["stop"]


class Usage(BaseModel):
    """The tokens of the whole run, all questions of its agents included."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class OpenAIChatCompletion(BaseModel):
    """An answer; the run's id is in `id`, after `chatcmpl-`, and in the header X-Run-Id."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: Usage


class ErrorDetail(BaseModel):
    message: str
    type: str
    param: str | None
    code: str


class OpenAIError(BaseModel):
    """Why there is no answer. `code` is for programs: the finish reason of a run that came to rest without one."""

    error: ErrorDetail

"""What goes in and out of the routes in OpenAI's shape."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from agent_core.errors import DefinitionError
from agent_core.outputs import Json
from agent_core.protocol.messages import is_empty, read_messages
from engine_shim.api.models import Name, Text

SYSTEM = ("system", "developer")
REFUSED = ("tools", "functions", "audio", "logprobs", "response_format", "modalities", "prediction")
"""Parameters that would change the form of the answer, and that no agent heeds."""

ELSEWHERE = ("parts", "blocks", "toolCalls", "toolInvocations", "audio")
"""Keys in which other APIs have what a message says."""

EXAMPLE: Json = {"model": "agent/support", "messages": [{"role": "user", "content": "Where is order 17?"}]}


class _Lenient(BaseModel):
    """What comes in: clients send more than is read here."""

    model_config = ConfigDict(extra="allow", strict=True)


class TextPart(_Lenient):
    """A part of a message's content."""

    type: Literal["text", "input_text", "output_text"]
    text: Text


class RefusalPart(_Lenient):
    """A part of an assistant's content by which it refused to answer."""

    type: Literal["refusal"]
    refusal: Text


def _kind_of(content: Any) -> str:
    return "parts" if isinstance(content, list) else "text"


Part = Annotated[TextPart | RefusalPart, Field(discriminator="type")]
Parts = Annotated[list[Part], Field(max_length=1000)]
Content = Annotated[Annotated[Text, Tag("text")] | Annotated[Parts, Tag("parts")], Discriminator(_kind_of)]
"""What a message says: a text, or its parts."""


class CalledFunction(_Lenient):
    """What an assistant called; the arguments are JSON text."""

    name: Text
    arguments: Text = "{}"


class CallObject(_Lenient):
    """A call that an assistant made earlier."""

    id: Text
    function: CalledFunction


class ChatMessage(_Lenient):
    """A message. System and developer messages stand before all others."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content | None = None
    refusal: Text | None = None
    tool_calls: Annotated[list[CallObject], Field(max_length=1000)] | None = None
    function_call: CalledFunction | None = None
    tool_call_id: Text | None = None
    name: Text | None = None

    def write_neutral(self) -> Json:
        """Return the message without what only its client reads."""
        fields = self.model_dump(include=set(type(self).model_fields), exclude_none=True)
        return {**fields, "tool_calls": [{"type": "function", **call} for call in fields.get("tool_calls", ())]}


class StreamOptions(_Lenient):
    """`include_usage`: a last chunk has the tokens."""

    include_usage: bool | None = None


class ChatCompletionRequest(_Lenient):
    """A conversation that `model` answers. The last message is the user's."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    model: Name
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=10_000)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    n: Literal[1] | None = None

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    def read_messages(self) -> list[Json]:
        """Return the neutral messages. DefinitionError for what cannot be answered."""
        for name in REFUSED:
            if (self.model_extra or {}).get(name) not in (None, [], {}, False, {"type": "text"}, ["text"]):
                raise DefinitionError(
                    "is not supported: agents have tools and a form of answer of their own", where=f"body/{name}"
                )
        for at, message in enumerate(self.messages):
            if lost := next((key for key in ELSEWHERE if (message.model_extra or {}).get(key)), None):
                raise DefinitionError(
                    "is not read here: a message says it in content and tool_calls", where=f"messages/{at}/{lost}"
                )
        given = [message.write_neutral() for message in self.messages]
        late = [at for at, each in enumerate(self.messages) if each.role in SYSTEM and self._is_late(at)]
        if late:
            raise DefinitionError("system messages come before all others", where=f"messages/{late[0]}/role")
        if self.messages[-1].role != "user":
            raise DefinitionError("the last message must be the user's", where=f"messages/{len(given) - 1}/role")
        read = read_messages(given, where="messages")
        if is_empty(read[-1]):
            raise DefinitionError("the last message is empty", where=f"messages/{len(given) - 1}/content")
        told = "\n\n".join(each["content"] for each in read if each["role"] == "system")
        leading = [{"role": "system", "content": told}] if told else []
        return [*leading, *(each for each in read if each["role"] != "system" and not is_empty(each))]

    def _is_late(self, at: int) -> bool:
        return any(each.role not in SYSTEM for each in self.messages[:at])


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
    """What the run answers. `refusal` is null: a run without an answer is an error."""

    role: Literal["assistant"]
    content: str
    refusal: str | None


class Choice(BaseModel):
    """The one answer. `logprobs` are null."""

    index: int
    message: AnswerMessage
    logprobs: dict[str, Any] | None
    finish_reason: Literal["stop"]


class PromptDetails(BaseModel):
    """Of the tokens that were read, those from a vendor's cache."""

    cached_tokens: int


class CompletionDetails(BaseModel):
    """Of the tokens that were written, those of thoughts."""

    reasoning_tokens: int


class Usage(BaseModel):
    """The tokens of the whole run, all questions of its agents included."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


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

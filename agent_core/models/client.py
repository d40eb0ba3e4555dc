"""ModelClient: the seam to language models."""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


def _count_nothing() -> None:
    """The counter of a caller that does not count."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `messages` are JSON texts in wire shape; `strand` and `index` identify it in its run.

    `options` may hold temperature, top_p, seed, stop, max_output_tokens, response_format and step_schema; in the
    dialect of native function calling, tools (OpenAI's shape) and tool_choice; `reasoning` is how much the model
    thinks (none, low, medium, high), `service_tier` the class of service in the vendor's word, `user_id` for whom it is
    asked, `extra` are the vendor's own parameters. `within` is how many seconds the
    caller waits for the reply. `requested` must be called before each request, so that the requests of a reply that
    never comes count too. `tools` are the run's policies by code, and `config` is its config without
    `messages_json`: more than a model is told, for what stands in for one in tests. Neither is sent, and neither may be
    changed.
    """

    model: str
    messages: tuple[bytes, ...]
    options: dict[str, Any]
    strand: str
    index: int
    within: float | None = None
    requested: Callable[[], None] = _count_nothing
    tools: Mapping[str, Any] = field(default_factory=dict, repr=False)
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply. Token counts are None where the vendor gave none; `requests` counts every attempt.

    `estimated`: the vendor's count contradicts itself.

    `cached_tokens` are the input tokens that the vendor had in its cache, `cache_write_tokens` those that it put there;
    both are among `input_tokens`, as `reasoning_tokens` are among `output_tokens`. `cost` is in USD, None where it is
    unknown.
    `calls` are native function calls, {"name", "arguments"} each, the arguments as received text. Other keys of a
    call, and all of `echo`, go back to the vendor with the message in later questions. `finish_reason` is `stop`,
    `length`, `content_filter`, `malformed_call`, or a word that is read with care (finish_reasons.py); `refusal` says
    why the vendor did not pass on its own model's call, or the reply. `dropped` names the APIs whose own parts of the
    conversation, an earlier reply's `echo`, were not sent, since this one does not understand them. `unread` is how
    many characters of thoughts a reply has that has neither a text nor a call: maybe its answer, which is logged.
    """

    content: str
    finish_reason: str = "stop"
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    requests: int = 1
    calls: tuple[dict[str, Any], ...] = ()
    echo: dict[str, Any] | None = None
    cached_tokens: int = 0
    refusal: str = ""
    estimated: bool = False
    dropped: tuple[str, ...] = ()
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a reply's text as it is written. `anew`: the reply begins again; earlier pieces are void."""

    text: str
    anew: bool = False


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of a model; None means unknown. The window and the limit are in tokens. `reasoning`: it can think
    before it replies; `vision`: it sees pictures; `caching`: what two questions share is read from its vendor's cache.

    `api` is how it is asked: by chat completions (`chat`), or by its vendor's own API (`messages`, `gemini`,
    `responses`). `small` is a model of few parameters, to which examples have to be shown as turns of the conversation.
    """

    name: str
    context_window: int | None = None
    output_limit: int | None = None
    function_calling: bool | None = None
    json_schema: bool | None = None
    streaming: bool | None = None
    reasoning: bool | None = None
    vision: bool | None = None
    caching: bool | None = None
    api: str | None = None
    small: bool | None = None


class ModelError(Exception):
    """A question without a usable reply. `kind` is `model_error` or `content_filter`; the message has no secret.

    `overflow` is set where the question is too long: {room, counted}, the tokens that it may have and that it has by
    the vendor's count, None each where that is unknown.

    What to do: raise it in a client of your own; a run records it, and asks the next of
    `fallback_models`.
    """

    def __init__(
        self, message: str, *, kind: str = "model_error", requests: int = 1, overflow: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.kind, self.requests, self.overflow = kind, requests, overflow


class ModelClient(Protocol):
    """A language model. One client may answer any number of runs at once."""

    async def complete(self, question: Question) -> Completion:
        """Return the reply; raises ModelError. The caller sets the deadline by cancelling."""
        ...

    def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        """Return the reply's text as it is written, and last the whole reply, the same as `complete` gives."""
        ...

    def info(self) -> ModelInfo:
        """Return what is known of the model: its window, its prices, what it can do."""
        ...

    async def close(self) -> None:
        """Close connections; closing twice is fine."""
        ...


ClientOf = Callable[[str, dict[str, Any]], ModelClient]
"""The client for a model's name and a run's options (base_url, api_key_env)."""
ModelInfoOf = Callable[[str, Mapping[str, Any]], ModelInfo]
"""What is known of a model by its name and a run's options, without asking it."""

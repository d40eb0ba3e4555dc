"""no_real_models(): no model outside of this process is asked, nor a model file, whatever a test does."""

from collections.abc import AsyncGenerator, Callable
from threading import Lock
from types import TracebackType
from typing import Any, Final, NoReturn

from agent_core.models.client import Completion, Delta, ModelError, Question
from agent_core.models.endpoint.client import EndpointClient
from agent_core.models.local import LocalModel
from agent_core.models.targets import Targets

HINT: Final = (
    "give the run another model, such as TestModel() of agent_core.testing or ScriptedModel([…]); "
    "a test that is meant to ask this one does so outside of no_real_models()"
)


def refuse(client: EndpointClient | LocalModel) -> NoReturn:
    """Raise ModelError, which names the model."""
    raise ModelError(f"no_real_models: the real model {client.info().name} was asked; {HINT}", requests=0)


async def _complete(self: Any, question: Question) -> Completion:
    refuse(self)


async def _stream(self: Any, question: Question) -> AsyncGenerator[Delta | Completion]:
    refuse(self)
    yield  # an async generator, as a client's own is


def _find_no_missing_key(self: Targets, target: Any) -> None:
    """Let a client be made without its key, so that it is the model that is refused."""


REPLACED: Final[tuple[tuple[type, str, Callable[..., Any]], ...]] = (
    (EndpointClient, "complete", _complete),
    (EndpointClient, "stream", _stream),
    (LocalModel, "complete", _complete),
    (LocalModel, "stream", _stream),
    (Targets, "find_missing_key", _find_no_missing_key),
)
"""All clients of endpoints, whichever API they speak, are one class; so are those of model files."""


class _Refusal:
    """What holds in this process while any block of `no_real_models` is open, in whichever thread."""

    def __init__(self) -> None:
        self._lock, self._open = Lock(), 0
        self._originals: list[Any] = []

    def begin(self) -> None:
        with self._lock:
            self._open += 1
            if self._open == 1:
                self._originals = [owner.__dict__[name] for owner, name, _ in REPLACED]
                for owner, name, stand_in in REPLACED:
                    setattr(owner, name, stand_in)

    def end(self) -> None:
        with self._lock:
            self._open -= 1
            if self._open == 0:
                for (owner, name, _), original in zip(REPLACED, self._originals, strict=True):
                    setattr(owner, name, original)


_REFUSAL: Final = _Refusal()


class no_real_models:
    """Refuse each question to a real model: `with no_real_models(): …`, or `async with`.

    It holds for the whole process, other threads included: endpoints of vendors and of one's own, by chat completions
    or natively, and model files. A question ends with a ModelError that names the model, and a run with `model_error`.
    Scripts, recorded runs, `TestModel`, `FunctionModel` and clients of one's own are asked as ever.
    """

    def __enter__(self) -> None:
        _REFUSAL.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _REFUSAL.end()

    async def __aenter__(self) -> None:
        _REFUSAL.begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _REFUSAL.end()

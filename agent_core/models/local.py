"""LocalModel: a GGUF file that answers in this process, on the CPU, through llama.cpp (extra `local`)."""

import asyncio
import os
import re
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

import orjson

from agent_core.errors import DefinitionError
from agent_core.models.client import Completion, Delta, ModelError, ModelInfo, Question
from agent_core.models.gguf import context_length

SLOTS = 2
"""Questions that are answered at the same time; the others wait."""
WINDOW = 8192
"""Tokens a question and its answer may take, where the model was trained for as many: memory grows with it."""
BATCH = 256
"""Tokens of a prompt between two looks at whether the answer is still wanted."""
SAMPLING = ("temperature", "top_p", "seed", "stop")
GRAMMAR = '%llguidance {}\nstart: %json {"x-guidance":{"whitespace_flexible":false,"lenient":true},'
"""Legal steps without white space, as the prompt's examples show them; a keyword that is not known is passed over."""
BEYOND = re.compile(r"\(\?[=!<]|\\[1-9]")
"""Look-around and back references, which the engine's patterns do not have."""
_one_at_a_time = threading.Lock()
Tell = Callable[[bytes | ModelError | None], None]


class Engine(Protocol):
    """As much of llama.cpp's server as is used here."""

    def handle_chat_completions(self, body: bytes, heard: Callable[[bytes], bool]) -> None:
        """Answer in pieces of JSON, until `heard` says that no more are wanted."""
        ...


def local_model(path: Path) -> "LocalModel":
    """The model in this file: one for the whole process, loaded at its first question.

    DefinitionError when the extra is not installed, or the file cannot be read or is no GGUF.
    """
    _library()
    with _one_at_a_time:
        return _model(path.resolve())


@cache
def _model(path: Path) -> "LocalModel":
    return LocalModel(path)


class LocalModel:
    """A model on this machine. Any number of runs and event loops may ask it; SLOTS are answered at a time.

    A question that is cancelled stops being answered after the token, or the part of its prompt, at hand.
    """

    def __init__(self, path: Path) -> None:
        trained = context_length(path)
        self._path, self._window = path, min(WINDOW, trained or WINDOW)
        self._loading = threading.Lock()

    async def complete(self, question: Question) -> Completion:
        """The reply; ModelError when the file cannot be loaded, or the engine refuses the question."""
        async with aclosing(self.stream(question)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    return piece
        raise ModelError("the engine stopped without a reply")

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        """The reply's text token by token, and last the whole reply."""
        loop, unwanted = asyncio.get_running_loop(), threading.Event()
        heard: asyncio.Queue[bytes | ModelError | None] = asyncio.Queue()

        def tell(piece: bytes | ModelError | None) -> None:
            try:
                loop.call_soon_threadsafe(heard.put_nowait, piece)
            except RuntimeError:  # the loop that asked is closed
                unwanted.set()

        reply = _Reply()
        work = self._threads.submit(self._answer, request_body(question), tell, unwanted)
        try:
            while (piece := await heard.get()) is not None:
                if isinstance(piece, ModelError):
                    raise piece
                if text := reply.add(orjson.loads(piece)):
                    yield Delta(text)
            yield reply.whole()
        finally:
            unwanted.set()
            work.cancel()

    def info(self) -> ModelInfo:
        return ModelInfo(f"local:{self._path.name}", self._window, json_schema=True, streaming=True)

    async def close(self) -> None:
        """Nothing to let go of: the model stays loaded for the process, as other runs may be using it."""

    def _answer(
        self, body: bytes, tell: Callable[[bytes | ModelError | None], None], unwanted: threading.Event
    ) -> None:
        """In a thread: every piece is told as it comes, then None, or what went wrong."""

        def heard(piece: bytes) -> bool:
            tell(piece)
            return unwanted.is_set()

        try:
            if not unwanted.is_set():
                self._server.handle_chat_completions(body, heard)
            tell(None)
        except (RuntimeError, ValueError) as error:
            tell(ModelError(f"{self._path.name}: {' '.join(str(error).split())[:500]}"))

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(SLOTS, thread_name_prefix=self._path.stem)

    @property
    def _server(self) -> Engine:
        with self._loading:
            return self._loaded

    @cached_property
    def _loaded(self) -> Engine:
        """The engine. It also listens on a port of the loopback that nobody asks for: the key shuts it to others."""
        library = _library()
        params = library.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx, params.n_parallel = self._window * SLOTS, SLOTS
        params.n_batch = params.n_ubatch = BATCH
        params.api_keys, params.ui, params.endpoint_slots = [token_hex()], False, False
        params.verbosity, params.warmup = -1, False
        try:
            engine: Engine = library.Server(params)
        except RuntimeError:
            raise RuntimeError("llama.cpp cannot load it: it is damaged, or of a kind that is not known") from None
        return engine


def request_body(question: Question) -> bytes:
    """The request's JSON. Progress is asked for so that a long prompt, too, can be given up half way."""
    options = question.options
    sent = {name: options[name] for name in SAMPLING if options.get(name) not in (None, [])}
    if limit := options.get("max_output_tokens"):
        sent["max_tokens"] = limit
    if tools := options.get("tools"):
        sent |= {"tools": tools, "tool_choice": options.get("tool_choice", "auto")}
    elif grammar := _grammar(options):
        sent["grammar"] = grammar
    sent |= {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
    return b'{"messages":[%b],%b' % (b",".join(question.messages), orjson.dumps(sent)[1:])


def _grammar(options: dict[str, Any]) -> str | None:
    """What the reply is held to, in the engine's words; None for plain text."""
    form = options.get("response_format", "text")
    if form == "text":
        return None
    schema = options.get("step_schema") if form in ("auto", "json_schema") else None
    return GRAMMAR + orjson.dumps(_within(schema or {"type": "object"})).decode()[1:]


def _within(schema: Any) -> Any:
    """The schema without the patterns that the engine cannot follow: it would drop the whole schema for one."""
    if isinstance(schema, list):
        return [_within(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _within(value)
        for key, value in schema.items()
        if not (key == "pattern" and isinstance(value, str) and BEYOND.search(value))
    }


class _Reply:
    """A reply so far."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._finish_reason = "stop"
        self._usage: dict[str, Any] = {}

    def add(self, chunk: dict[str, Any]) -> str:
        """The text that a piece brings; ModelError when the piece is a refusal."""
        if error := chunk.get("error"):
            raise ModelError(str(error.get("message", error)))
        self._usage = chunk.get("usage") or self._usage
        text = ""
        for choice in chunk.get("choices", ()):
            text += choice["delta"].get("content") or ""
            for piece in choice["delta"].get("tool_calls") or ():
                self._called(piece)
            self._finish_reason = choice["finish_reason"] or self._finish_reason
        self._texts.append(text)
        return text

    def whole(self) -> Completion:
        reason = "stop" if self._finish_reason == "tool_calls" else self._finish_reason
        given, got = self._usage.get("prompt_tokens"), self._usage.get("completion_tokens")
        return Completion("".join(self._texts), reason, given, got, calls=tuple(self._calls.values()))

    def _called(self, piece: dict[str, Any]) -> None:
        call = self._calls.setdefault(piece["index"], {"name": "", "arguments": ""})
        for name, text in piece.get("function", {}).items():
            call[name] += text or ""


def _library() -> Any:
    """The module xllamacpp.

    OpenMP's threads sleep while they wait, instead of spinning: beside another busy process spinning is ten times
    slower. The engine's grammars, too, are told to write nothing to stderr. Both are read when the library loads.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("LLGUIDANCE_LOG_LEVEL", "0")
    try:
        return import_module("xllamacpp")
    except ImportError:
        told = "local models need the extra: pip install 'agent-core[local]'"
        raise DefinitionError(told, where="model") from None

"""LocalModel: a GGUF file that answers in this process, on the CPU, through llama.cpp (extra `local`)."""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

import orjson

from agent_core.errors import DefinitionError
from agent_core.models.client import Completion, Delta, ModelError, ModelInfo, Question
from agent_core.models.gguf import read_context_length
from utools.error_text import describe
from utools.forks import renew_in_forks
from utools.lazy_pattern import lazy_compile
from utools.words.text import error_words

SLOTS = 2
"""Questions that are answered at the same time; others wait."""
MAX_WINDOW = 8192
"""Tokens of a question and its answer, where the model was trained for as many: memory grows with it."""
SMALL_FILE = 3 << 30
"""Bytes of a file below which its model has some four billion parameters, or fewer."""
BATCH = 256
"""Tokens of a prompt between two checks whether the answer is still wanted."""
SAMPLING = ("temperature", "top_p", "seed", "stop")
GRAMMAR = '%llguidance {}\nstart: %json {"x-guidance":{"whitespace_flexible":false,"lenient":true},'
"""Legal steps without white space, as in the prompt's examples; unknown keywords are ignored."""
UNSUPPORTED_PATTERN = lazy_compile(r"\(\?[=!<]|\\[1-9]")
"""Look-around and back references, which llama.cpp's patterns lack."""
_loading_lock = threading.Lock()
OnPiece = Callable[[bytes | ModelError | None], None]


class LlamaServer(Protocol):
    """The part of llama.cpp's server that is used here."""

    def handle_chat_completions(self, body: bytes, on_piece: Callable[[bytes], bool]) -> None:
        """Answer in pieces of JSON, until `on_piece` returns True."""
        ...


def local_model(path: Path) -> "LocalModel":
    """Return the model in this file: one for the whole process, loaded at its first question.

    DefinitionError when the extra is not installed, or the file cannot be read or is not GGUF.
    """
    _import_library()
    with _loading_lock:
        return _load_model(path.resolve())


@cache
def _load_model(path: Path) -> "LocalModel":
    return LocalModel(path)


class LocalModel:
    """A model on this machine. Any number of runs and event loops may ask it; SLOTS are answered at a time.

    A cancelled question stops after the current token, or the current part of its prompt.
    """

    def __init__(self, path: Path) -> None:
        trained = read_context_length(path)
        self._path, self._window = path, min(MAX_WINDOW, trained or MAX_WINDOW)
        self._small = path.stat().st_size < SMALL_FILE
        self._loading = threading.Lock()
        renew_in_forks(self)

    def begin_anew(self) -> object:
        """Load the file again: a fork has none of the threads that answer."""
        self._loading = threading.Lock()
        return [self.__dict__.pop(name, None) for name in ("_threads", "_loaded")]

    async def complete(self, question: Question) -> Completion:
        """Return the reply; ModelError when the file cannot be loaded, or the engine refuses the question."""
        async with aclosing(self.stream(question)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    return piece
        raise ModelError("the engine stopped without a reply")

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        """Yield the reply's text token by token, and last the whole reply."""
        loop, unwanted = asyncio.get_running_loop(), threading.Event()
        pieces: asyncio.Queue[bytes | ModelError | None] = asyncio.Queue()

        def put(piece: bytes | ModelError | None) -> None:
            try:
                loop.call_soon_threadsafe(pieces.put_nowait, piece)
            except RuntimeError:  # the asking loop is closed
                unwanted.set()

        reply = _Reply()
        work = self._threads.submit(self._answer, request_body(question), put, unwanted)
        try:
            while (piece := await pieces.get()) is not None:
                if isinstance(piece, ModelError):
                    raise piece
                if text := reply.add(orjson.loads(piece)):
                    yield Delta(text)
            yield reply.whole()
        finally:
            unwanted.set()
            work.cancel()

    async def load(self) -> None:
        """Load the file now, not at the first question. Of a file that cannot be loaded each question says so."""
        with suppress(RuntimeError):
            await asyncio.get_running_loop().run_in_executor(self._threads, lambda: self._server)

    def info(self) -> ModelInfo:
        return ModelInfo(f"local:{self._path.name}", self._window, json_schema=True, streaming=True, small=self._small)

    async def close(self) -> None:
        """Nothing to close: the model stays loaded for the process, since other runs may use it."""

    def _answer(self, body: bytes, put: OnPiece, unwanted: threading.Event) -> None:
        """In a thread: put every piece as it comes, then None, or the error."""

        def on_piece(piece: bytes) -> bool:
            put(piece)
            return unwanted.is_set()

        try:
            if not unwanted.is_set():
                self._server.handle_chat_completions(body, on_piece)
            put(None)
        except Exception as error:  # the edge to foreign code: without a word of it the question waits for ever
            told = error_words(error) if isinstance(error, RuntimeError | ValueError) else describe(error)
            put(ModelError(f"{self._path.name}: {' '.join(told.split())[:500]}"))

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(SLOTS, thread_name_prefix=self._path.stem)

    @property
    def _server(self) -> LlamaServer:
        with self._loading:
            return self._loaded

    @cached_property
    def _loaded(self) -> LlamaServer:
        """The server. It also listens on an unused loopback port: a random key closes it to others."""
        library = _import_library()
        params = library.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx, params.n_parallel = self._window * SLOTS, SLOTS
        params.n_batch = params.n_ubatch = BATCH
        params.api_keys, params.ui, params.endpoint_slots = [token_hex()], False, False
        params.verbosity, params.warmup = -1, False
        try:
            engine: LlamaServer = library.Server(params)
        except RuntimeError:
            raise RuntimeError("llama.cpp cannot load it: it is damaged, or of a kind that is not known") from None
        return engine


def request_body(question: Question) -> bytes:
    """Return the request's JSON. Progress is requested so that also a long prompt can be stopped half way."""
    options = question.options
    sent = {name: options[name] for name in SAMPLING if options.get(name) not in (None, [])}
    if limit := options.get("max_output_tokens"):
        sent["max_tokens"] = limit
    if tools := options.get("tools"):
        sent |= {"tools": tools, "tool_choice": options.get("tool_choice", "auto")}
    elif grammar := _grammar_of(options):
        sent["grammar"] = grammar
    sent |= {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
    return b'{"messages":[%b],%b' % (b",".join(question.messages), orjson.dumps(sent)[1:])


def _grammar_of(options: dict[str, Any]) -> str | None:
    """Return the grammar that constrains the reply; None for plain text."""
    form = options.get("response_format", "text")
    if form == "text":
        return None
    schema = options.get("step_schema") if form in ("auto", "json_schema") else None
    return GRAMMAR + orjson.dumps(_without_unsupported_patterns(schema or {"type": "object"})).decode()[1:]


def _without_unsupported_patterns(schema: Any) -> Any:
    """Return the schema without patterns that llama.cpp does not support: it would ignore the whole schema."""
    if isinstance(schema, list):
        return [_without_unsupported_patterns(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_unsupported_patterns(value)
        for key, value in schema.items()
        if not (key == "pattern" and isinstance(value, str) and UNSUPPORTED_PATTERN.search(value))
    }


class _Reply:
    """A reply so far."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._finish_reason = "stop"
        self._usage: dict[str, Any] = {}

    def add(self, chunk: dict[str, Any]) -> str:
        """Return the text in a piece; ModelError when the piece is a refusal."""
        if error := chunk.get("error"):
            raise ModelError(str(error.get("message", error)))
        self._usage = chunk.get("usage") or self._usage
        text = ""
        for choice in chunk.get("choices", ()):
            text += choice["delta"].get("content") or ""
            for piece in choice["delta"].get("tool_calls") or ():
                self._add_call(piece)
            self._finish_reason = choice["finish_reason"] or self._finish_reason
        self._texts.append(text)
        return text

    def whole(self) -> Completion:
        reason = "stop" if self._finish_reason == "tool_calls" else self._finish_reason
        inputs, outputs = self._usage.get("prompt_tokens"), self._usage.get("completion_tokens")
        return Completion("".join(self._texts), reason, inputs, outputs, calls=tuple(self._calls.values()))

    def _add_call(self, piece: dict[str, Any]) -> None:
        call = self._calls.setdefault(piece["index"], {"name": "", "arguments": ""})
        for name, text in piece.get("function", {}).items():
            call[name] += text or ""


def _import_library() -> Any:
    """Return the module xllamacpp.

    OpenMP's threads sleep while they wait instead of spinning, which is ten times slower next to a busy process. The
    grammars write nothing to stderr. Both variables are read when the library loads.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("LLGUIDANCE_LOG_LEVEL", "0")
    try:
        return import_module("xllamacpp")
    except ImportError:
        message = "local models need the extra: pip install 'agent-core[local]'"
        raise DefinitionError(message, where="model") from None

"""A real model on this machine: what must hold of any, however small. AGENT_CORE_TEST_GGUF names another file."""

import asyncio
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

from agent_core import Action, DefinitionError, Final, parse, replay, run_agent, step_schema, verify
from agent_core.journal.jsonl import JsonlJournal
from agent_core.models import Completion, ModelError, Question
from agent_core.models.client import Delta
from agent_core.models.gguf import read_context_length
from agent_core.models.local import LocalModel, local_model, request_body
from support.gguf import FILE, needs_a_model
from support.optional import needs
from utools import default_registry

ARGS = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "unit": {"enum": ["km", "miles"]}},
    "required": ["number"],
    "additionalProperties": False,
}
STEP = step_schema([("walk", ARGS), ("say", {"type": "object", "properties": {"text": {"type": "string"}}})])
ENDINGS = ("final", "max_steps", "max_tool_calls", "protocol_error", "invalid_action", "tool_error", "timeout")


@pytest.fixture(scope="module")
def model() -> LocalModel:
    assert FILE is not None
    return local_model(FILE)


def question(text: str = "Walk 3 km.", **options: Any) -> Question:
    system = {"role": "system", "content": "Reply with one JSON object: an action of the tool walk or say, or a final."}
    messages = tuple(orjson.dumps(each) for each in (system, {"role": "user", "content": text}))
    return Question("local", messages, {"max_output_tokens": 48, "response_format": "auto", **options}, "agent", 0)


stepping = partial(question, step_schema=STEP, max_output_tokens=160)


@needs_a_model
@pytest.mark.parametrize("seed", range(4))
async def test_it_writes_only_legal_steps(model: LocalModel, seed: int) -> None:
    reply = await model.complete(stepping(temperature=1.2, seed=seed))
    if reply.finish_reason == "length":
        assert reply.content.startswith('{"type":')  # cut off, it may still be talking; the loop is told so
        return
    step = parse(reply.content)
    assert isinstance(step, Action | Final)
    if isinstance(step, Action):
        jsonschema.validate({"type": "action", "tool": step.tool, "args": step.args}, STEP)


@needs_a_model
async def test_the_last_step_can_only_be_a_final(model: LocalModel) -> None:
    reply = await model.complete(stepping("Call the tool walk!", step_schema=step_schema([], final_only=True)))
    assert reply.content.startswith('{"type":"final","answer":"')


@needs_a_model
async def test_a_seed_gives_the_same_reply_again(model: LocalModel) -> None:
    first, again = [await model.complete(question("Count.", response_format="text", seed=7)) for _ in range(2)]
    assert first.content == again.content


@needs_a_model
async def test_the_engine_counts_the_tokens_and_keeps_the_limit(model: LocalModel) -> None:
    reply = await model.complete(question("Tell a long story.", response_format="text", max_output_tokens=5))
    assert (reply.finish_reason, reply.output_tokens, reply.requests) == ("length", 5, 1)
    longer = await model.complete(question("Tell a long story. " * 20, response_format="text", max_output_tokens=5))
    assert reply.input_tokens is not None
    assert longer.input_tokens is not None
    assert longer.input_tokens > reply.input_tokens + 60


@needs_a_model
async def test_a_stop_word_ends_the_reply(model: LocalModel) -> None:
    plain = partial(question, "Say: one two three", response_format="text", temperature=0, max_output_tokens=24)
    word = (await model.complete(plain())).content.split()[1]
    reply = await model.complete(plain(stop=[word]))
    assert (reply.finish_reason, word in reply.content) == ("stop", False)


@needs_a_model
async def test_a_stream_is_the_reply_in_pieces(model: LocalModel) -> None:
    pieces = [piece async for piece in model.stream(stepping(seed=1))]
    deltas, reply = pieces[:-1], pieces[-1]
    assert isinstance(reply, Completion)
    assert len(deltas) > 3
    assert "".join(each.text for each in deltas if isinstance(each, Delta)) == reply.content


@needs_a_model
async def test_a_real_loop_with_a_real_tool_ends_by_the_contract(model: LocalModel, tmp_path: Path) -> None:
    config = {
        "model": "local",
        "max_steps": 4,
        "allowed_tools": ["calculator"],
        "prompt": "What is 17 * 23? Use the calculator.",
        "max_output_tokens": 120,
        "seed": 3,
        "timeout": 240,
        "single_call_timeout": 120,
    }
    journal = JsonlJournal(tmp_path / "run.jsonl")
    output = await run_agent(config, registry=default_registry(tmp_path), model=model, journal=journal)
    assert output.finish_reason in ENDINGS
    assert output.usage["estimated"] is False
    assert output.usage["input_tokens"] > 100
    assert all(step["action"] is None or step["action"]["tool"] == "calculator" for step in output.trace)
    assert verify(tmp_path / "run.jsonl").ok
    assert replay(tmp_path / "run.jsonl").identical


@needs_a_model
async def test_several_questions_at_once_each_get_their_own_reply(model: LocalModel) -> None:
    replies = await asyncio.gather(*(model.complete(stepping(seed=seed)) for seed in range(5)))
    assert all(reply.content.startswith('{"type":"') for reply in replies)


@needs_a_model
async def test_what_is_cancelled_stops_and_holds_up_nobody(model: LocalModel) -> None:
    endless = question("Count from one to a million.", response_format="text", max_output_tokens=None)
    given_up = [asyncio.create_task(model.complete(endless)) for _ in range(6)]
    await asyncio.sleep(0.05)
    for task in given_up:
        task.cancel()
    ended = await asyncio.gather(*given_up, return_exceptions=True)
    assert sum(isinstance(each, asyncio.CancelledError) for each in ended) >= 4  # no more than two are under way
    async with asyncio.timeout(120):
        reply = await model.complete(question("Hello", response_format="text", max_output_tokens=2))
    assert reply.output_tokens == 2


@needs_a_model
async def test_the_event_loop_goes_on_while_it_answers(model: LocalModel) -> None:
    reply = asyncio.create_task(model.complete(question("Tell a story.", response_format="text")))
    turns = 0
    while not reply.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 10


@needs_a_model
async def test_a_conversation_beyond_the_window_is_an_error_that_says_so(model: LocalModel) -> None:
    window = model.info().context_window or 0
    with pytest.raises(ModelError, match="context"):
        await model.complete(question("word " * (window + 100)))


@needs_a_model
async def test_a_schema_that_the_engine_cannot_follow_whole_still_binds(model: LocalModel) -> None:
    args = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?=x)y$"}}, "required": ["a"]}
    reply = await model.complete(question(step_schema=step_schema([("f", args | {"additionalProperties": False})])))
    assert reply.content.startswith('{"type":')


@needs_a_model
async def test_native_function_calls_are_asked_for_in_openais_shape(model: LocalModel) -> None:
    tool = {"type": "function", "function": {"name": "walk", "description": "Walk.", "parameters": ARGS}}
    reply = await model.complete(question(tools=[tool], response_format="text"))
    assert reply.content or reply.calls
    assert all(set(call) == {"name", "arguments"} for call in reply.calls)


@needs_a_model
def test_one_file_is_loaded_once_in_a_process() -> None:
    assert FILE is not None
    assert local_model(FILE) is local_model(FILE.parent / "." / FILE.name)


@needs_a_model
def test_the_window_is_what_the_file_says_or_less(model: LocalModel) -> None:
    assert FILE is not None
    trained, window = read_context_length(FILE), model.info().context_window
    assert trained is not None
    assert window == min(trained, 8192)


@needs_a_model
def test_nothing_is_written_to_the_terminal_and_a_damaged_file_kills_nobody(tmp_path: Path) -> None:
    assert FILE is not None
    cut = tmp_path / "cut.gguf"
    with FILE.open("rb") as whole:
        cut.write_bytes(whole.read(FILE.stat().st_size // 2))
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(cut), str(FILE)], capture_output=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().split("\n")[:2] == [
        "cut.gguf: llama.cpp cannot load it: it is damaged, or of a kind that is not known",
        "True",
    ]


SCRIPT = """
import asyncio, sys
from pathlib import Path
from agent_core.models import ModelError, Question
from agent_core.models.local import local_model

async def ask(file):
    schema = {"type": "object", "properties": {"r": {"$ref": "#"}}, "required": ["r"]}
    options = {"max_output_tokens": 20, "step_schema": schema, "response_format": "auto"}
    question = Question("", (b'{"role":"user","content":"Hello"}',), options, "agent", 0)
    return await local_model(Path(file)).complete(question)

try:
    asyncio.run(ask(sys.argv[1]))
except ModelError as error:
    print(error)
print(bool(asyncio.run(ask(sys.argv[2])).content))
"""

NOT_MODELS = [
    ("missing.gguf", None, "cannot be read"),
    ("empty.gguf", b"", "not a sound GGUF"),
    ("text.gguf", b"hello " * 1000, "not a sound GGUF"),
    ("head.gguf", b"GGUF\x03\x00\x00\x00" + b"\xff" * 16, "not a sound GGUF"),
    ("cut.gguf", b"GGUF\x03\x00\x00\x00" + b"\x01" + b"\x00" * 7 + b"\x05", "not a sound GGUF"),
]


@needs("xllamacpp")
@pytest.mark.parametrize(("name", "content", "told"), NOT_MODELS, ids=[name for name, _, _ in NOT_MODELS])
def test_a_file_that_is_no_model_is_a_definition_error(
    tmp_path: Path, name: str, content: bytes | None, told: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DefinitionError, match=told):
        local_model(tmp_path / name)


async def test_an_engine_of_another_version_is_told_at_once(tmp_path: Path) -> None:
    """What its library then raises is neither of its errors: the question waited until its time was up."""

    class Engine:
        def handle_chat_completions(self, body: bytes, on_piece: object) -> None:
            raise AttributeError("'Server' object has no attribute 'handle'")

    (tmp_path / "small.gguf").write_bytes(b"GGUF\x03\x00\x00\x00" + bytes(16))
    model = LocalModel(tmp_path / "small.gguf")
    model.__dict__["_loaded"] = Engine()
    with pytest.raises(ModelError, match=r"small\.gguf: AttributeError: 'Server' object has no attribute 'handle'"):
        await asyncio.wait_for(model.complete(question()), 5)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(DefinitionError, match=r"agent-core\[local\]"):
        local_model(Path("any.gguf"))


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({"temperature": 0, "seed": 0, "stop": []}, {"temperature": 0, "seed": 0}),
        ({"top_p": 0.5, "max_output_tokens": 9, "stop": ["x"]}, {"top_p": 0.5, "max_tokens": 9, "stop": ["x"]}),
        ({"tools": [{}], "tool_choice": "required"}, {"tools": [{}], "tool_choice": "required"}),
        ({"response_format": "text", "step_schema": {}}, {}),
    ],
    ids=["nought is a value", "limits", "tools", "text"],
)
def test_options_are_said_in_the_engines_words(options: dict[str, Any], sent: dict[str, Any]) -> None:
    body = orjson.loads(request_body(Question("", (b'{"role":"user"}',), options, "agent", 0)))
    assert body.pop("messages") == [{"role": "user"}]
    for ours in ("stream", "stream_options", "return_progress"):
        body.pop(ours)
    assert body == sent


@pytest.mark.parametrize("form", ["auto", "json_object", "json_schema"])
def test_a_format_becomes_a_grammar_without_white_space(form: str) -> None:
    options = {"response_format": form, "step_schema": {"const": 1}}
    grammar = orjson.loads(request_body(Question("", (), options, "agent", 0)))["grammar"]
    schema = orjson.loads(grammar.removeprefix("%llguidance {}\nstart: %json "))
    assert schema.pop("x-guidance")["whitespace_flexible"] is False
    assert schema == ({"type": "object"} if form == "json_object" else {"const": 1})

"""The answer as it is being written: pieces that are provisional, hold no secret, and change nothing in the journal."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, Sequence
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_core import MemoryJournal, run_agent
from agent_core.models import Completion, Delta, ModelInfo, Question, ScriptedModel
from agent_core.run.answer_stream import AnswerStream
from agent_core.run.secrets import Secrets
from support.by_hand import Q, action, final, spoken
from utools import Tool, ToolRegistry
from utools.secrets.key_formats import NAMES
from utools.secrets.redaction import Redactor

SECRET = "sesame-open-2026"
CONFIG = {"model": "m", "max_steps": 5, "allowed_tools": ["look"], "prompt": "Go."}
REGISTRY = ToolRegistry([Tool("look", "Looks.", Q, lambda args, context: "seen", effect="read")])
Pieces = Sequence[str | Delta | Completion]


class Writer:
    """A model that writes each reply in the pieces that a test gives, the whole of it last."""

    def __init__(self, *replies: Pieces) -> None:
        self.replies = replies

    async def complete(self, question: Question) -> Completion:
        last = self.replies[question.index][-1]
        return last if isinstance(last, Completion) else Completion(_whole(self.replies[question.index]))

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        for piece in self.replies[question.index]:
            if isinstance(piece, str | Delta):
                yield Delta(piece) if isinstance(piece, str) else piece
        yield await self.complete(question)

    def info(self) -> ModelInfo:
        return ModelInfo("m")

    async def close(self) -> None:
        """Nothing to let go of."""


def _whole(pieces: Pieces) -> str:
    text = ""
    for piece in pieces:
        text = piece.text if isinstance(piece, Delta) and piece.anew else text + getattr(piece, "text", piece)
    return text


async def told(model: Any, **config: Any) -> tuple[Any, list[dict[str, Any]]]:
    """The output of a run, and what was told of its answers."""
    events: list[dict[str, Any]] = []
    secrets = config.pop("secrets", None)
    output = await run_agent(
        {**CONFIG, **config}, registry=REGISTRY, model=model, on_event=events.append, secrets=secrets
    )
    return output, [event for event in events if event["event"].startswith("answer_")]


def shown(events: Sequence[dict[str, Any]]) -> str:
    """The text that a reader has before him at the end."""
    text = ""
    for event in events:
        text = text + event["text"] if event["event"] == "answer_delta" else ""
    return text


def pieces(text: str, size: int = 3) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@pytest.mark.parametrize("protocol", ["json", "tools"])
async def test_what_is_shown_is_the_final_answer(protocol: str) -> None:
    replies = [spoken(reply, protocol) for reply in (action(), final('It is "seen", as told:\n雪 🎉'))]
    model = ScriptedModel([{"content": reply.content, "calls": reply.calls} for reply in replies])
    output, events = await told(model, protocol=protocol)
    assert shown(events) == output.final_answer == 'It is "seen", as told:\n雪 🎉'
    assert len(events) > 1
    assert {event["event"] for event in events} == {"answer_delta"}


async def test_the_answer_appears_before_its_json_is_whole() -> None:
    seen = asyncio.Event()

    class Waiting(Writer):
        async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
            yield Delta('{"type":"final","answer":"The first words,')
            await seen.wait()
            yield Delta(' and the rest"}')
            yield Completion(final("The first words, and the rest"))

    def on_event(event: dict[str, Any]) -> None:
        if event.get("text") == "The first words,":
            seen.set()

    output = await run_agent(CONFIG, registry=REGISTRY, model=Waiting(), on_event=on_event)
    assert output.final_answer == "The first words, and the rest"


THINKING = ['{"thought":"I loo', 'k first","type":"act', 'ion","tool":"look","args":{"q":"x"}}']


async def test_thought_is_shown_while_it_is_written() -> None:
    seen: list[dict[str, Any]] = []
    model = Writer(THINKING, [final("done")])
    await run_agent(CONFIG, registry=REGISTRY, model=model, on_event=seen.append)
    thoughts = [event for event in seen if event["event"].startswith("thought")]
    *deltas, whole = thoughts
    assert (whole["event"], whole["text"]) == ("thought", "I look first")
    assert [event["event"] for event in deltas] == ["thought_delta"] * len(deltas)
    written = "".join(event["text"] for event in deltas)
    assert len(deltas) > 1
    assert "I look first".startswith(written)
    assert {event["strand"] for event in thoughts} == {"agent"}


async def test_secret_in_a_thought_is_never_shown() -> None:
    seen: list[dict[str, Any]] = []
    words = f'{{"thought":"the key is {SECRET}, so{" and so" * 40}","type":"final","answer":"ok"}}'
    secrets = Secrets(["TOKEN"], env={"TOKEN": SECRET})
    model = Writer(pieces(words))
    await run_agent(CONFIG, registry=REGISTRY, model=model, on_event=seen.append, secrets=secrets)
    shown = "".join(event["text"] for event in seen if event["event"] == "thought_delta")
    assert shown.startswith("the key is [redacted:TOKEN]")
    assert "sesame" not in str(seen)


NO_ANSWER: dict[str, Pieces] = {
    "an_action": [action(q="x")],
    "not_yet_known_to_be_a_final": ['{"answer":"looks like one","type":"act', 'ion"}'],
    "prose": ["The answer is 5."],
    "a_quoted_example": ['I would send {"type":"final","answer":"5"}'],
}


@pytest.mark.parametrize("reply", NO_ANSWER.values(), ids=NO_ANSWER)
async def test_what_is_no_answer_is_not_shown(reply: Pieces) -> None:
    _, events = await told(Writer(reply), max_repairs=0, max_steps=1)
    assert events == []


VOID: dict[str, list[Any]] = {
    "unreadable": ['{"type":"final","answer":"wrong"', ',"more":1}'],
    "cut_off": ['{"type":"final","answer":"wrong', Completion('{"type":"final","answer":"wrong', "length")],
    "filtered": ['{"type":"final","answer":"wrong', Completion('{"type":"final","answer":"wrong', "content_filter")],
    "two_values": [final("wrong"), final("wrong")],
}


@pytest.mark.parametrize("reply", VOID.values(), ids=VOID)
async def test_what_was_shown_of_a_reply_that_cannot_be_read_is_taken_back(reply: list[Any]) -> None:
    _, events = await told(Writer(reply, [final("right")]))
    names = [event["event"] for event in events]
    assert names[:2] == ["answer_delta", "answer_discarded"]
    assert names.count("answer_discarded") == 1
    assert shown(events) in ("right", "")


async def test_a_reply_that_begins_again_takes_back_what_was_shown() -> None:
    first, again = '{"type":"final","answer":"half an ans', Delta(final("whole"), anew=True)
    output, events = await told(Writer([first, again]))
    assert [event["event"] for event in events] == ["answer_delta", "answer_discarded", "answer_delta"]
    assert shown(events) == output.final_answer == "whole"


async def test_the_words_before_native_calls_are_taken_back() -> None:
    calls = ({"name": "look", "arguments": '{"q":"x"}'},)
    model = Writer(["Let me ", "see.", Completion("Let me see.", calls=calls)], ["Seen."])
    output, events = await told(model, protocol="tools")
    assert "answer_discarded" in [event["event"] for event in events]
    assert shown(events) == output.final_answer == "Seen."


@pytest.mark.parametrize("protocol", ["json", "tools"])
@pytest.mark.parametrize("size", [1, 5, 400])
async def test_no_secret_is_shown_however_it_is_cut(protocol: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOOR_KEY", SECRET)
    text = f"It is {SECRET}, or {SECRET[:-1]}, say {SECRET}"
    reply = final(text) if protocol == "json" else text
    output, events = await told(Writer(pieces(reply, size)), protocol=protocol, secrets=Secrets(["DOOR_KEY"]))
    assert SECRET not in str(events)
    assert shown(events) == output.final_answer == text.replace(SECRET, "[redacted:DOOR_KEY]")


async def test_the_answer_after_thinking_is_shown_without_the_thoughts() -> None:
    text = "<think>secret plan</think>\nThe answer is 4."
    output, events = await told(Writer(pieces(text)), protocol="tools", parsing="tolerant")
    assert shown(events) == output.final_answer == "The answer is 4."
    assert "plan" not in str(events)


@pytest.mark.parametrize("size", [1, 7, 400])
async def test_thoughts_whose_beginning_is_not_in_the_reply_are_not_shown(size: int) -> None:
    text = "Here is a secret plan.\n</think>\n\nThe answer is 4."
    output, events = await told(Writer(pieces(text, size)), protocol="tools", parsing="tolerant")
    assert shown(events) == output.final_answer == "The answer is 4."
    assert "plan" not in str(events)
    output, events = await told(Writer(pieces("The answer is 4.", size)), protocol="tools", parsing="tolerant")
    assert shown(events) == output.final_answer == "The answer is 4."
    reply = f"Here is a secret plan.\n</think>\n\n{final('4')}"
    output, events = await told(Writer(pieces(reply, size)), protocol="json", parsing="tolerant")
    assert shown(events) == output.final_answer == "4"
    assert "plan" not in str(events)


@pytest.mark.parametrize("protocol", ["json", "tools"])
@pytest.mark.parametrize("form", ["raw", "base64"])
async def test_no_escape_hides_a_secret(protocol: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOOR_KEY", SECRET)
    word = SECRET if form == "raw" else b64encode(SECRET.encode()).decode()
    spelled = "".join(f"\\u{ord(char):04x}" for char in word)
    reply = '{"type":"final","answer":"' + spelled + '"}' if protocol == "json" else spelled
    output, events = await told(Writer(pieces(reply)), protocol=protocol, secrets=Secrets(["DOOR_KEY"]))
    assert word not in str(events)
    assert word not in str(output)
    if protocol == "json":
        assert output.final_answer == "[redacted:DOOR_KEY]"


async def test_the_journal_is_the_same_as_without_anybody_listening() -> None:
    replies = [pieces(reply) for reply in (action(), "no", final("done"))]
    records = []
    for listener in (None, lambda event: None):
        journal = MemoryJournal()
        await run_agent(
            CONFIG, registry=REGISTRY, model=Writer(*replies), journal=journal, run_id="r", on_event=listener
        )
        rows = [row.record() for row in journal.load("r")["agent"]]
        records.append(
            [{k: v for k, v in row.items() if k not in ("at", "seconds", "output", "used_tools")} for row in rows]
        )
    assert records[0] == records[1]


TEXT = st.text(alphabet=st.sampled_from('ab"\\\n雪🎉' + SECRET[:4]), max_size=30)


@given(st.lists(st.one_of(TEXT, st.just(SECRET), st.just(SECRET[:9]))), st.lists(st.integers(0, 400)), st.booleans())
def test_any_answer_in_any_pieces_is_shown_whole_and_clean(parts: list[str], cuts: list[int], native: bool) -> None:
    answer, redactor = "".join(parts), Redactor({"KEY": SECRET})
    reply = answer if native else orjson.dumps({"type": "final", "answer": answer}).decode()
    stream, text = AnswerStream(redactor, native=native), ""
    places = sorted({cut for cut in cuts if cut < len(reply)} | {0, len(reply)})
    for start, end in pairwise(places):
        text += stream.feed(reply[start:end])
        assert SECRET not in text
    clean = redactor.json_text(reply)
    rest = stream.finish(clean)
    assert rest is not None
    assert text + rest == (clean if native else orjson.loads(clean)["answer"])


PARTS = [
    *(
        SECRET,
        f"{SECRET[:7]}\n{SECRET[7:]}",
        "48151623",
        "https://ann:pa$w!rd@db/x",
        "AKIAABCDEFGHIJKLMNOP",
        "https://",
    ),
    *(
        '{"a": 48151623, "b": [',
        '"]}',
        "{",
        "[",
        "]",
        '"',
        "\\",
        "\\u0073",
        " ",
        ".",
        ",",
        "\n",
        "查看",
        "intranet",
        "zz",
    ),
    *(
        "-----BEGIN PRIVATE KEY-----\n",
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n",
        "-----END PRIVATE KEY-----",
        "@example.com",
    ),
]


@example(["-----BEGIN PRIVATE KEY-----\n"] * 2 + ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"], [66], False)
@example(["intranet", "-----END PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"], [64], False)
@example(
    ["-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"],
    [80, 90],
    False,
)
@given(st.lists(st.sampled_from(PARTS), max_size=8), st.lists(st.integers(0, 300)), st.booleans())
def test_no_piece_shows_what_the_whole_answer_masks(parts: list[str], cuts: list[int], native: bool) -> None:
    answer, redactor = "".join(parts), Redactor({"KEY": SECRET, "PIN": "48151623"}, formats=NAMES)
    reply = answer if native else orjson.dumps({"type": "final", "answer": answer}).decode()
    clean = redactor.json_text(reply)
    whole = clean if native else orjson.loads(clean)["answer"]
    stream, text = AnswerStream(redactor, native=native), ""
    places = sorted({cut for cut in cuts if cut < len(reply)} | {0, len(reply)})
    for start, end in pairwise(places):
        text += stream.feed(reply[start:end])
        assert whole.startswith(text)
    rest = stream.finish(clean)
    assert rest is not None
    assert text + rest == whole

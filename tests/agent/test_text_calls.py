"""A native call that its server left in the text: known by its form, told to the model, and never an answer."""

from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from agent_core.loop.run_state import RunState
from agent_core.protocol.call_markers import skip_brackets
from agent_core.protocol.parse import ProtocolError
from agent_core.protocol.text_calls import is_call
from agent_core.rules import CURRENT
from support.by_hand import Hand, action, final, look, said

NAMES = {"get_weather", "search_docs"}
NATIVE: dict[str, Any] = {"protocol": "tools"}

FORMS = orjson.loads((Path(__file__).parents[2] / "fixtures" / "calls" / "in_text.json").read_bytes())
MARKED: list[str] = FORMS["marked"]
"""As chat templates mark a call: one whatever tool it names."""
NAMED: list[str] = FORMS["named"]
"""Without a marker: a call because it names an offered tool."""
LATER: list[str] = FORMS["later"]
"""Forms that were collected after the code was written."""

IN_PROSE = [
    "A model of this family writes {call} and its server makes a call of it.",
    "When the parser is off you see {call} in the text. Turn it on.",
    "Here is what the log shows:\n\n{call}\n\nNothing was called.",
    "For example: {call}",
    "The form is\n{call}\nas the template says.",
    "It looks like this:\n{call}",
    "> {call}\n\nThat is the raw reply.",
    "1. The model writes `{call}`.\n2. The server reads it.",
    "{call} is how such a call is written.",
    "I would not send {call}, for the tool is slow.",
    "模型会写出 {call}，然后由服务器解析。",
    "原始回复如下：\n\n{call}\n\n没有执行任何操作。",
    "Both {call} and prose reach the client.\n",
    "Here is an example of one.\n\n{call}",
    "I found this in the log.\n{call}",
    "That is the form. Servers read it.\n{call}\nThey do.",
]
IN_A_FENCE = [
    "The raw reply was:\n```\n{call}\n```",
    "```xml\n{call}\n```\nThe server should have read it.",
    "Write it so:\n\n```json\n{call}\n```\n\nThen wait for the answer.",
    "~~~\n{call}\n~~~\n\nThat is the form.",
    "如下所示：\n```text\n{call}\n```\n服务器会解析它。",
]


def quoting_answers(count: int) -> list[str]:
    """Answers that speak of a call: each form in prose and in fences, with another argument each time.

    Not of what a model thinks before its call, of what it makes up after it, nor of a text that is cut or free: none
    of these shows where it ends.
    """
    chance, open_ended = Random(7), ("think", "observation:", '"argum', "action input: oslo")
    calls = [each for each in (*MARKED, *NAMED, *LATER) if not any(word in each.lower() for word in open_ended)]
    frames = cycle([*IN_PROSE, *IN_A_FENCE])
    answers = []
    for frame in islice(frames, count):
        call = chance.choice([each for each in calls if "```" not in each or "```" not in frame])
        answers.append(frame.replace("{call}", call.replace("Oslo", f"Oslo {len(answers)}")))
    return answers


@pytest.mark.sampled
@pytest.mark.parametrize("text", [*MARKED, *NAMED, *LATER])
def test_a_call_in_each_form_is_known(text: str) -> None:
    assert is_call(text, NAMES)
    if "think" in text.lower():
        return
    assert is_call(f"<think>I need it.</think>\n\n{text}", NAMES)
    assert is_call(f"I need it.\n</think>\n\n{text}\n", NAMES)


@pytest.mark.sampled
@pytest.mark.parametrize("text", NAMED)
def test_without_a_marker_a_call_names_a_tool_that_was_offered(text: str) -> None:
    assert not is_call(text, {"another_tool"})


def test_no_answer_that_quotes_a_call_is_taken_for_one() -> None:
    answers = quoting_answers(1000)
    assert len(answers) == 1000
    assert len(set(answers)) > 900
    assert [answer for answer in answers if is_call(answer, NAMES)] == []


ANSWERS = [
    "Use <tool_call> tags.",
    "<tool_call> and </tool_call> are the tags of Hermes.",
    "<function=get_weather> opens a call, </function> closes it.",
    '{"name": "Ada", "parameters": {"q": 1}}',
    '{"name": "get_weather"}',
    '{"name": "get_weather", "description": "Weather.", "parameters": {"type": "object", "properties": {}}}',
    "```json\n{}\n```",
    "<tooltip><b>x</b></tooltip>",
    "[get_weather] is a tool",
    "get_weather (the tool) is slow",
    "[1, 2]",
    "Action: none",
    "<|channel|>commentary to=functions.get_weather is what gpt-oss writes.",
    "functools[...] is the form of Phi.",
]


@pytest.mark.sampled
@pytest.mark.parametrize("text", ANSWERS)
def test_what_is_no_call_is_an_answer(text: str) -> None:
    assert not is_call(text, NAMES)
    tools = [look("get_weather"), look("search_docs")]
    assert Hand([said(text)], tools=tools, **NATIVE).output["final_answer"] == text


REPEATED = {
    "bars": ("<", "|", ""),
    "spaces after a label": ("action: ", " ", "|"),
    "line ends": ("=", "\r\n", "<|channel|>"),
    "thoughts": ("Thought: ", "\n ", "action"),
    "openings": ("", '{"function":{ ', "x"),
    "ids": ("{", '"id": "a", ', "x"),
    "calls": ("", "<|channel|>commentary to=functions.look<|message|>{}<|call|>", "and so on"),
    "fences": ("", "`````\n````\n```\n", "look"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("begin", "unit", "end"), REPEATED.values(), ids=REPEATED)
def test_what_a_model_repeats_is_read_to_its_end(begin: str, unit: str, end: str) -> None:
    """What took the square of its length, or worse, would not end here."""
    assert not is_call(begin + unit * (200_000 // len(unit)) + end, ["look"])


def test_fences_within_fences_are_no_call() -> None:
    opened = "".join(f"{'`' * (400 - depth)}\n" for depth in range(390))
    assert not is_call(f"{opened}look{''.join(f'{chr(96) * (11 + depth)}{chr(10)}' for depth in range(390))}", ["look"])


@pytest.mark.parametrize("size", [10_000, 1_000_000])
@pytest.mark.parametrize("unit", ["<", "<tool_call>", "[", "{", "'", "`", "\n<", "Action:", '{"name": "', "</think> "])
def test_any_text_is_read_in_time_that_grows_with_it(unit: str, size: int) -> None:
    assert is_call(unit * (size // len(unit)) + " is all.", NAMES) in (True, False)


# ── what becomes of it ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", MARKED[:4] + NAMED[:4])
def test_a_call_in_the_text_is_told_and_is_no_answer(text: str) -> None:
    tools = [look("get_weather"), look("search_docs")]
    run = Hand([said(f" {text}"), said("It is dry.")], tools=tools, **NATIVE)
    assert run.decided[0]["unreadable"]["kind"] == "unknown_type"
    assert "nothing was run" in run.last_heard
    assert run.output["final_answer"] == "It is dry."
    assert Hand([said(f" {text}")], tools=tools, max_repairs=0, **NATIVE).reason == "protocol_error"


@pytest.mark.parametrize("text", MARKED[:4] + NAMED[:4])
@pytest.mark.parametrize("wrapped", [False, True], ids=["as it is", "in a final"])
def test_in_the_json_protocol_too(text: str, wrapped: bool) -> None:
    tools = [look("get_weather"), look("search_docs")]
    run = Hand([final(text) if wrapped else text, final("It is dry.")], tools=tools)
    assert run.decided[0]["unreadable"]["kind"] == "unknown_type"
    assert "nothing was run" in run.last_heard
    assert "{" not in run.decided[0]["unreadable"]["message"]
    assert run.output["final_answer"] == "It is dry."


def test_in_plan_mode_too() -> None:
    run = Hand([final(NAMED[0]), final("It is dry.")], tools=[look("get_weather")], mode="plan")
    assert "nothing was run" in run.decided[0]["unreadable"]["message"]
    assert run.output["final_answer"] == "It is dry."


def test_an_action_of_ours_in_an_answer_is_a_call_too() -> None:
    run = Hand([final(action()), final("done")])
    assert "nothing was run" in run.decided[0]["unreadable"]["message"]
    assert run.output["final_answer"] == "done"


def test_an_earlier_run_reads_its_replies_by_its_own_rules() -> None:
    quote = "Hermes writes <tool_call> before a call."
    assert Hand([said(quote)], **NATIVE).output["final_answer"] == quote
    started: Any = {**Hand([said(quote)], **NATIVE).started, "rules": {**CURRENT, "replies": 1}}
    reading = RunState(started).dialect.read_reply(said(quote), mode="strict", any_answer=False)
    assert isinstance(reading, ProtocolError)


MINIMAX = """]<]minimax[>[<tool_call>
]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Oslo]<]minimax[>[</city>]<]minimax[>[</invoke>
]<]minimax[>[</tool_call>"""


def test_call_of_minimax_in_a_text_is_known_by_the_newest_rules_alone() -> None:
    assert is_call(MINIMAX, NAMES)
    assert is_call(f"I look it up.{MINIMAX}", NAMES)
    assert not is_call(MINIMAX, NAMES, 2)
    assert not is_call(f"MiniMax writes {MINIMAX}", NAMES)


AS_JSON = '{"name":"get_weather","arguments":{"city":"Oslo"}}'
NEWLY_KNOWN = {
    "no first marker": f"{AS_JSON}\n</tool_call>",
    "several without": f"[{AS_JSON}]</tool_calls>",
    "below words": f"Let me look it up.\n{AS_JSON}",
    "below more": f"It rains.\n\nI'll look it up.\n[{AS_JSON}]",
}
STILL_ANSWERS = [
    f"A call looks like this.\n{AS_JSON}",
    f"I write it as follows:\n{AS_JSON}",
    f"Let me look it up.\n{AS_JSON}\nThat is how.",
    'Let me put it so.\n{"name":"Oslo","arguments":{}}',
    "Let me list them.\n[1, 2]",
    '{"city":"Oslo"}</tool_call>',
]


@pytest.mark.parametrize("text", NEWLY_KNOWN.values(), ids=NEWLY_KNOWN)
def test_a_call_as_json_is_known_below_words_and_without_its_first_marker_by_the_newest_rules(text: str) -> None:
    assert is_call(text, NAMES)
    assert not is_call(text, NAMES, 3)


@pytest.mark.parametrize("text", STILL_ANSWERS)
def test_what_quotes_a_call_or_is_none_stays_an_answer(text: str) -> None:
    assert not is_call(text, NAMES)


OPEN_FENCES = {
    "in ReAct's words": '```\nThought: I look.\nAction: get_weather\nAction Input: {"city": "Oslo"}',
    "and what comes after": '```\nAction: get_weather\nAction Input: {"city": "Oslo"}\nObservation: It rains.',
    "in Chinese": '```\n思考：我查一下。\n行动：get_weather\n行动输入：{"city": "Oslo"}',
    "as JSON": f"```json\n{AS_JSON}",
    "marked": f"~~~\n<tool_call>{AS_JSON}</tool_call>",
}
OPEN_ANSWERS = [
    '```json\n{"city": "Oslo"}',
    "```\nThought: I know it now.\nFinal Answer: It rains in get_weather.",
    "```python\nimport weather\nget_weather('Oslo')\nprint(1)",
    f"```\nThis is a call: {AS_JSON}",
    f"```json\n{AS_JSON}\n```\nThat is a call.\n```",
    "```",
]


@pytest.mark.parametrize("text", OPEN_FENCES.values(), ids=OPEN_FENCES)
def test_a_call_in_a_fence_that_is_not_closed_is_known_by_the_newest_rules(text: str) -> None:
    assert is_call(text, NAMES)
    assert is_call(text, NAMES, 4) is False


@pytest.mark.parametrize("text", OPEN_ANSWERS)
def test_what_else_is_in_a_fence_that_is_not_closed_stays_an_answer(text: str) -> None:
    assert not is_call(text, NAMES)


# ── a think block without its beginning ───────────────────────────────────────────────────────────

THOUGHTS = {
    "at a line's end": "hm, 11?</think>\n\nTwelve.",
    "on a line of its own": "hm, 11?\n</think>\nTwelve.",
    "without a break": "hm, 11?</think>Twelve.",
    "after a sentence": "I think it is 12. </think> Twelve.",
    "first": "</think>\n\nTwelve.",
    "after a tag in code": "The tag is `</think>`, hm.\n</think>\n\nTwelve.",
}
SPOKEN_OF = [
    "The tag </think> ends what a model thinks.",
    "It is written `</think>`.",
    "It is called '</think>' there.",
    "```\nhm</think>\n\nTwelve.\n```",
]


@pytest.mark.parametrize("text", THOUGHTS.values(), ids=THOUGHTS)
def test_a_think_block_may_lack_its_beginning(text: str) -> None:
    run = Hand([said(text)], parsing="tolerant", **NATIVE)
    assert (run.output["final_answer"], run.decided[0]["stripped"]) == ("Twelve.", ["think"])
    reply = text.replace("Twelve.", final("Twelve."))
    assert Hand([reply], parsing="tolerant").output["final_answer"] == "Twelve."


@pytest.mark.sampled
@pytest.mark.parametrize("text", SPOKEN_OF)
def test_its_end_may_be_spoken_of(text: str) -> None:
    assert text.strip("`\n") in Hand([said(text)], parsing="tolerant", **NATIVE).output["final_answer"]
    spoken = final(f"{text}\n")
    assert Hand([spoken], parsing="tolerant").output["final_answer"] == f"{text}\n"
    assert orjson.loads(spoken)["answer"] == f"{text}\n"


@pytest.mark.parametrize(
    ("text", "end"),
    [("(don't) see", 7), ("('a)b') see", 7), ("(a=   'x)y') see", 12), ("(a, 'it\\'s)') see", 13), ('("a)") see', 6)],
)
def test_an_apostrophe_in_a_word_opens_no_quote(text: str, end: int) -> None:
    assert skip_brackets(text, 0) == end

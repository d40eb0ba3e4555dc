"""parse and render: which fault is reported, what the message says, what tolerance takes off and what it never does."""

from typing import Any

import pytest

from agent_core.protocol.parse import Action, Final, Plan, PlanStep, ProtocolError, parse, render

ACTION = '{"type":"action","tool":"search","args":{"query":"rain"}}'
FINAL = '{"type":"final","answer":"It rains."}'
MIB = 2**20


def kind(text: Any, **options: Any) -> str:
    """The kind of a reply's fault, or the name of the step that it is."""
    step = parse(text, **options)
    return step.kind if isinstance(step, ProtocolError) else type(step).__name__


def message(text: str, **options: Any) -> str:
    step = parse(text, **options)
    assert isinstance(step, ProtocolError)
    return step.message


def in_args(value: str) -> str:
    return f'{{"type":"action","tool":"t","args":{{"x":{value}}}}}'


DEEP = "[" * 70 + "]" * 70

FIRST_THAT_FITS = {  # each text has the fault named first and, where there is a next one, that too
    "empty, at length": (" \n", "length", "empty"),
    "too large, at length": ("x" * (MIB + 1), "length", "too_large"),
    "truncated, and no JSON": ("It rai", "length", "truncated"),
    "several values, the first with duplicate keys": ('{"a":1,"a":2} {}', "stop", "multiple_values"),
    "several values, none an object": ("1 2", "stop", "multiple_values"),
    "text around an object that nests too deep": (f"So: {in_args(DEEP)}", "stop", "surrounding_text"),
    "text around an object, then broken JSON": (FINAL + ' {"a":', "stop", "surrounding_text"),
    "broken JSON that nests too deep": (in_args(DEEP)[:-1], "stop", "not_json"),
    "too deep, with duplicate keys": (in_args(f'[{DEEP},{{"a":1,"a":1}}]'), "stop", "too_deep"),
    "duplicate keys, after a number out of range": (
        in_args('[1e999,{"a":1,"a":1}]'),
        "stop",
        "duplicate_key",
    ),
    "number out of range, after a lone surrogate": (in_args('["\\ud800",1e999]'), "stop", "number_range"),
    "lone surrogate, in a list": ('["\\ud800"]', "stop", "lone_surrogate"),
    "unknown type, both action and final": ('{"type":"x","tool":"t","answer":""}', "stop", "unknown_type"),
    "action and final, with args missing": (
        '{"type":"action","tool":"t","answer":""}',
        "stop",
        "ambiguous",
    ),
    "args missing, tool no string": ('{"type":"action","tool":1}', "stop", "missing_field"),
    "args no object, and a field too many": (
        '{"type":"action","tool":"t","args":1,"x":1}',
        "stop",
        "wrong_type",
    ),
    "a plan's later step misses a field, an earlier has a wrong one": (
        '{"type":"plan","steps":[{"step":"1","description":"","tool":"t","parameters":{}},{}]}',
        "stop",
        "missing_field",
    ),
}


@pytest.mark.parametrize("case", FIRST_THAT_FITS.values(), ids=FIRST_THAT_FITS)
def test_first_kind_that_fits_is_reported(case: tuple[str, str, str]) -> None:
    text, finish_reason, expected = case
    assert kind(text, finish_reason=finish_reason) == expected


MESSAGES = {
    "the line and column where JSON breaks": ('{"type":"final",\n"answer":None}', "line 2 column 10"),
    "the hint for what a Python writer meant": ('{"type":"final","answer":None}', "null"),
    "the hint for an unescaped quote": ('{"type":"final","answer":"say "hi""}', r"\""),
    "the hint for a trailing comma": ('{"type":"final","answer":"",}', "no comma"),
    "the hint for a trailing comma in a list": (in_args("[1,]"), "no comma"),
    "where a string was never closed": ('{"type":"final","answer":"It ra', "line 1 column 26: the string"),
    "how to write a line break": ('{"type":"final","answer":"a\nb"}', r"\n"),
    "that an escape is none": (r'{"type":"final","answer":"\d"}', "backslash"),
    "that the text ends too early": ('{"type":"final"', "the text ends where a comma"),
    "that there is no object at all": ("It rains.", "no JSON object"),
    "that a byte order mark is in the way": ("\ufeff" + FINAL, "byte order mark"),
    "the repeated key and where": (in_args('{"a/b":{"k":1,"k":2}}'), '"k" stands twice in the object at /args/x/a~1b'),
    "the number and where": (in_args("[0,1e999]"), 'at /args/x/1 is out of range ("1e999")'),
    "where half a surrogate pair stands": (in_args('"\\ud800"'), "at /args/x "),
    "the type that was sent": ('{"type":"observation"}', '"observation"'),
    "what the reply is instead of an object": ("[]", "a list"),
    "what a field is and must be": (
        '{"type":"action","tool":"t","args":"{}"}',
        "/args is a string (a text of 2 characters). It must be an object.",
    ),
    "which field is missing": ('{"type":"action","tool":"t"}', "/args is missing"),
    "which field is too many": ('{"type":"final","answer":"","sources":[]}', '"sources"'),
    "which step of a plan": ('{"type":"plan","steps":[7]}', "/steps/0 is an integer"),
    "which number a step should have": (
        '{"type":"plan","steps":[{"step":5,"description":"","tool":"t","parameters":{}}]}',
        "/steps/0/step must be 1",
    ),
}


@pytest.mark.parametrize("case", MESSAGES.values(), ids=MESSAGES)
def test_message_names(case: tuple[str, str]) -> None:
    text, part = case
    assert part in message(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"{\\"type\\":\\"final\\",\\"answer\\":\\"x\\"}"}',
        '{"type":"final","answer":"","{\\"type\\":\\"action\\"}":1}',
        in_args('{"{}":{"{":1e999}}'),
        in_args('{"\\ud800":1,"\\ud800":2}'),
        '{"type":"' + "x" * 5000 + '"}',
        in_args("9" * 5000),
        "{{}}",
        '{"type":"\ud800"',
    ],
)
def test_message_quotes_nothing_long_or_like_a_reply(text: str) -> None:
    said = message(text)
    assert "{" not in said
    assert len(said.encode()) < 400


# --- limits ---------------------------------------------------------------------------------------


def final_of(size: int, filler: str = "x") -> str:
    """A final of exactly so many bytes."""
    text = '{"type":"final","answer":"' + filler * ((size - 28) // len(filler.encode()))
    return text + "x" * (size - 2 - len(text.encode())) + '"}'


@pytest.mark.parametrize("filler", ["x", "雨", "\U0001f327"])
def test_one_mebibyte_is_read_and_one_byte_more_is_not(filler: str) -> None:
    assert kind(final_of(MIB, filler)) == "Final"
    assert kind(final_of(MIB + 1, filler)) == "too_large"


HOSTILE = {
    "opening brackets": ("[" * MIB, "not_json"),
    "opening braces": ("{" * MIB, "not_json"),
    "objects in objects": ('{"a":' * (MIB // 5), "not_json"),
    "a nest that closes": ("[" * (MIB // 2) + "]" * (MIB // 2), "too_deep"),
    "digits": (in_args("9" * 300_000), "number_range"),
    "digits of a fraction": (in_args("0." + "9" * 300_000), "Action"),
    "quotes": ('"' * MIB, "not_json"),
    "escaped quotes behind many brackets": ("{" * 65 + '"' + '\\"' * 500_000, "not_json"),
    "escaped quotes in a nest": (in_args("[" * 70 + '"' + '\\"' * 500_000), "not_json"),
    "one key many times": ("{" + ",".join(['"a":1'] * 150_000) + "}", "duplicate_key"),
    "many keys, the last of them twice": (
        "{" + ",".join(f'"{n % 80_000}":1' for n in range(80_000 + 1)) + "}",
        "duplicate_key",
    ),
    "many empty objects": ("{}" * 100_000, "multiple_values"),
    "many surrogates": (in_args("[" + ",".join(['"\\ud800"'] * 100_000) + "]"), "lone_surrogate"),
    "many unknown fields": (
        '{"type":"final","answer":""' + "".join(f',"{n}":1' for n in range(70_000)) + "}",
        "unknown_field",
    ),
    "think tags": ("<think>" * (MIB // 7), "not_json"),
    "backticks": ("`" * MIB, "not_json"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["strict", "tolerant"])
@pytest.mark.parametrize("case", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_a_value_like_any_other(case: tuple[str, str], mode: str) -> None:
    text, expected = case
    assert len(text.encode()) <= MIB
    assert kind(text, mode=mode) == expected


def test_half_a_surrogate_pair_counts_as_three_bytes() -> None:
    assert kind("\ud800" * (MIB // 3)) == "not_json"
    assert kind("\ud800" * (MIB // 3 + 1)) == "too_large"


@pytest.mark.parametrize("text", [None, b"{}", 7, ["x"], {"type": "final", "answer": "x"}])
def test_no_text_at_all_is_an_empty_reply(text: Any) -> None:
    assert kind(text) == "empty"


# --- steps ----------------------------------------------------------------------------------------

PLAN = '{"type":"plan","steps":[%s]}'
LOOK = '{"step":1,"description":"look","tool":"search","parameters":{"query":"rain"}}'


def test_plan_becomes_its_steps() -> None:
    assert parse(PLAN % LOOK) == Plan((PlanStep(1, "look", "search", {"query": "rain"}),))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(f"{LOOK},{LOOK}", "wrong_type", id="number given twice"),
        pytest.param(LOOK.replace("1", "true"), "wrong_type", id="number is true"),
        pytest.param(LOOK.replace("1", "1.0"), "wrong_type", id="number is a fraction"),
        pytest.param(LOOK.replace('{"query":"rain"}', "[]"), "wrong_type", id="parameters is a list"),
        pytest.param(LOOK.replace('"look"', "null"), "wrong_type", id="description is null"),
        pytest.param(LOOK.replace('"step":1,', ""), "missing_field", id="number is missing"),
        pytest.param(LOOK.replace('"step":1,', '"step":1,"status":"open",'), "unknown_field", id="extra field"),
        pytest.param(LOOK.replace('"step":1,', '"step":1,"thought":"x",'), "unknown_field", id="thought in a step"),
    ],
)  # fmt: skip
def test_plan_step_is_refused(steps: str, expected: str) -> None:
    assert kind(PLAN % steps) == expected


@pytest.mark.parametrize("answer", [125, 1.5, None, True, [1], {"sum": 125}, "text"], ids=repr)
def test_any_answer_lets_every_json_value_be_the_answer(answer: Any) -> None:
    assert parse(render(Final(answer)), any_answer=True) == Final(answer)
    assert kind(render(Final(answer))) == ("Final" if isinstance(answer, str) else "wrong_type")


def test_rendered_step_is_compact_in_the_protocols_order_and_not_escaped() -> None:
    action = Action("search", {"query": "雨", "limit": 5}, "Look.", ("fence",))
    assert render(action) == '{"type":"action","tool":"search","args":{"query":"雨","limit":5},"thought":"Look."}'
    assert render(Final("下雨。")) == '{"type":"final","answer":"下雨。"}'


# --- tolerance ------------------------------------------------------------------------------------


def test_stripped_names_what_was_taken_off_in_order() -> None:
    reply = f"\ufeff \n<think>{FINAL}</think>\n```json\n{ACTION}\n{FINAL}\n``` \n"
    expected = Action("search", {"query": "rain"}, stripped=("bom", "think", "fence", "trailing"))
    assert parse(reply, mode="tolerant") == expected


NEVER_TAKEN = {
    "a final before anything else": f"{FINAL}\n{ACTION}",
    "an action before prose": f"{ACTION}\nThen I will answer.",
    "an action before a cut-off object": ACTION + '\n{"type":"final","ans',
    "an action before a list": f"{ACTION}\n[1]",
    "an action after an observation": '{"type":"observation"}\n' + ACTION,
    "an action after prose": f"I call {ACTION}",
    "an action in the think block only": f"<think>{ACTION}</think>",
    "an action after an unclosed think block": f"<think>{ACTION}",
    "an action behind a second think block": f"<think></think><think></think>{ACTION}",
    "an action in a fence within prose": f"So:\n```json\n{ACTION}\n```",
    "an action in an unclosed fence": f"```json\n{ACTION}",
    "an action in a fence of another language": f"```python\n{ACTION}\n```",
    "an action in the second of two fences": f"```\n{FINAL}\n```\n```\n{ACTION}\n```",
    "a fence around a think block": f"```\n<think></think>{ACTION}\n```",
    "an action in a list": f"[{ACTION}]",
    "an action with a broken shape before a final": '{"type":"action","tool":"t"}' + FINAL,
    "an action with duplicate keys before a final": '{"type":"action","tool":"a","tool":"b","args":{}}' + FINAL,
}


@pytest.mark.parametrize("text", NEVER_TAKEN.values(), ids=NEVER_TAKEN)
def test_tolerant_never_takes(text: str) -> None:
    assert isinstance(parse(text, mode="tolerant"), ProtocolError)


def test_length_wins_over_a_whole_action_in_front() -> None:
    assert kind(ACTION + "\n" + FINAL, mode="tolerant", finish_reason="length") == "truncated"

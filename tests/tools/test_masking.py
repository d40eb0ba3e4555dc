"""Masking changes nothing but secrets: values without one come back as they were, and of one with a secret, that alone
is replaced."""

import base64
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.run.secrets import Secrets
from support.growth import growth
from support.masked_keys import mask_keys
from support.plain_values import plain_value
from utools.secrets.key_formats import NAMES
from utools.secrets.redaction import Redactor

SECRET = "Zx9-desk/token+0123456789"
QUOTED = 'pa"ss\\wo/rd-ü-12'
MASK = Redactor({"KEY": SECRET, "QUOTED": QUOTED, "PIN": "48151623"}, formats=NAMES)
GITHUB = "ghp_" + "a1B2c3D4e5F6" * 3


def check_unchanged(seed: int, count: int) -> None:
    chance = Random(seed)
    for _ in range(count):
        value = plain_value(chance)
        assert MASK.value(value) == value
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        assert MASK.json_text(text) == text


def test_values_without_a_secret_come_back_as_they_were() -> None:
    check_unchanged(1, 6_000)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 12))])
def test_ten_thousand_values_without_a_secret_come_back_as_they_were(seed: int) -> None:
    check_unchanged(seed, 10_000)


LEFT_ALONE = [
    '{"type":"action","tool":"send","args":{"text":"https://intranet","cc":"ada@example.com"}}',
    "{'text':'https://intranet','cc':'ada@example.com'}",
    "text: https://intranet\ncc: ada@example.com",
    "text=https://intranet:8080;cc=ada@example.com",
    "text=https://intranet:8080&cc=ada@example.com",
    "[page](https://intranet:8080)ada@example.com",
    "https://intranet,cc:ada@example.com",
    "内网https://intranet:8080或发邮件到ada@example.com",
    "网址https://intranet；邮箱:ada@example.com",
    "docker://busybox:1.36@sha256:e3b0c44298fc1c14",
    '"log":"https://intranet:80\\nada@example.com"',
    "{&quot;text&quot;:&quot;https://intranet&quot;,&quot;cc&quot;:&quot;ada@example.com&quot;}",
    ":_authToken=\nnpm_abcdefghij",
    'aws_key = "x", {"password": "' + "a" * 40 + '"} AKIA',
    "https://$user:$pass@host and https://$(user):$(pass)@host",
    "1\n2\n3\n4\n8\n1\n5\n1\n6\n2\n3",
    "An answer of\nsingle\nwords",
]


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_no_guess_goes_on_across_what_parts_two_values(text: str) -> None:
    assert MASK.text(text) == MASK.json_text(text) == text
    assert MASK.value({"a": [text]}) == {"a": [text]}


@pytest.mark.sampled
@pytest.mark.parametrize("mark", ['"', "'", "{", "}", ",", "\n", "\r"])
@pytest.mark.parametrize(
    "key",
    [
        "AKIAABCDEFGHIJKLMNOP",
        GITHUB,
        "https://ann:hunter2222@db",
        f"eyJ{'a' * 20}.eyJ{'b' * 20}.{'c' * 20}",
        f"SG.{'a' * 22}.{'b' * 43}",
        f":_authToken=npm_{'a' * 36}",
        f"AccountKey={'a' * 86}==",
        f"xoxb-123456789012-{'a' * 24}",
        f"sk-ant-api03-{'a' * 80}",
    ],
)
def test_what_is_masked_ends_at_a_quote_a_brace_a_comma_and_a_line_end(key: str, mark: str) -> None:
    for at in range(1, len(key)):
        text = f"{key[:at]}{mark}{key[at:]}"
        masked = mask_keys(text)
        assert mark in masked
        before, _, after = masked.partition(mark)
        assert before in (key[:at], mask_keys(key[:at])) or "[redacted:" in before
        assert after == key[at:] or "[redacted:" in after


# ── a secret planted anywhere ─────────────────────────────────────────────────────────────────────

PLAIN = st.text(alphabet=st.sampled_from('ab ,:{}"\\\n雪é'), max_size=12)
LEAVES = st.none() | st.booleans() | st.integers(-99, 99) | PLAIN
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN, inner, max_size=3))
FORMS: dict[str, str] = {
    "plain": SECRET,
    "quoted": QUOTED,
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "format": GITHUB,
    "json": json.dumps({"deep": SECRET}),
    "wrapped": f"{SECRET[:9]}\r\n{SECRET[9:]}",
}
MARKS = {
    **dict.fromkeys(("plain", "wrapped"), "[redacted:KEY]"),
    "base64": "[redacted:KEY]",
    "quoted": "[redacted:QUOTED]",
    "format": "[redacted:github_token]",
    "json": '{"deep": "[redacted:KEY]"}',
}


@given(value=VALUES, before=PLAIN, after=PLAIN, form=st.sampled_from(sorted(FORMS)), data=st.data())
def test_of_a_value_with_a_secret_that_alone_is_replaced(
    value: Any, before: str, after: str, form: str, data: st.DataObject
) -> None:
    before, after = f"{before} ", f" {after}"
    shape = data.draw(st.sampled_from(["value", "key", "item", "nested"]))

    def plant(text: str) -> Any:
        return {
            "value": {"a": value, "b": text},
            "key": {"a": value, text: 1},
            "item": [value, text, value],
            "nested": {"a": [{"b": {"c": text}}, value]},
        }[shape]

    planted, expected = plant(before + FORMS[form] + after), plant(before + MARKS[form] + after)
    assert MASK.value(planted) == expected
    for ascii_only in (True, False):
        written = json.dumps(planted, ensure_ascii=ascii_only)
        assert json.loads(MASK.json_text(written)) == expected
        assert json.loads(json.loads(MASK.json_text(json.dumps(written)))) == expected


@given(value=VALUES, indent=st.sampled_from([None, 1, 2]), secret=st.booleans())
def test_every_byte_outside_of_a_masked_leaf_stays(value: Any, indent: int | None, secret: bool) -> None:
    text = json.dumps({"x": value, "y": SECRET if secret else "y", "z": 1.50}, indent=indent, ensure_ascii=False)
    assert MASK.json_text(text) == (text.replace(SECRET, "[redacted:KEY]") if secret else text)


@pytest.mark.sampled
@pytest.mark.parametrize("cut", range(1, len(SECRET)))
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n    ", "\\n", "\\r\\n"])
def test_a_known_value_is_found_across_a_line_end(cut: int, end: str) -> None:
    wrapped = f"{SECRET[:cut]}{end}{SECRET[cut:]}"
    assert MASK.text(f"one\n{wrapped}\ntwo") == "one\n[redacted:KEY]\ntwo"
    assert MASK.value({"a": [f"one {wrapped}"]}) == {"a": ["one [redacted:KEY]"]}


def test_a_key_in_many_lines_is_found() -> None:
    wrapped = "\n".join(SECRET[at : at + 6] for at in range(0, len(SECRET), 6))
    assert MASK.text(f"key:\n{wrapped}\nend") == "key:\n[redacted:KEY]\nend"
    long = base64.b64encode(b"user:" + SECRET.encode() * 3).decode()
    told = MASK.text("\n".join(long[at : at + 20] for at in range(0, len(long), 20)))
    assert "[redacted:KEY]" in told
    assert long[8:28] not in told.replace("\n", "")


PEM = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 3 + "-----END PRIVATE KEY-----"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\\n", "\\r\\n", "\\\\n"])
def test_a_private_key_is_found_across_line_ends_however_they_are_written(end: str) -> None:
    pem = PEM.replace("\n", end)
    assert MASK.text(f"a: {pem}, b") == "a: [redacted:private_key], b"
    assert json.loads(MASK.json_text(json.dumps({"a": pem, "b": [1]}))) == {"a": "[redacted:private_key]", "b": [1]}


SAME_FAULT = {
    "a key twice": '{"a":"%s","a":1}',
    "a number out of range": '{"a":"%s","n":1e999}',
    "half a pair": '{"a":"%s","b":"\\ud83d"}',
    "half a pair beside it": '{"a":"%s \\ud83d"}',
    "two values": '{"a":"%s"} {"b":1}',
    "prose around it": 'I say {"a":"%s","n":48151623} so.',
    "a fence": '```json\n{"a":"%s"}\n```',
    "a think block": '<think>{"a": 1} or {"b": "%s"}</think>{"a":"x"}',
}


@pytest.mark.parametrize("text", SAME_FAULT.values(), ids=SAME_FAULT)
def test_what_is_wrong_with_a_text_stays_wrong_in_the_same_place(text: str) -> None:
    masked = MASK.json_text(text % SECRET)
    assert masked == (text % "[redacted:KEY]").replace("48151623", '"[redacted:PIN]"')


def test_a_text_that_cannot_be_parsed_is_masked_as_text() -> None:
    assert MASK.json_text('{"a":"' + SECRET + '"') == '{"a":"[redacted:KEY]"'
    assert MASK.json_text("{" + SECRET + "}") == "{[redacted:KEY]}"


def test_a_secret_that_is_more_than_one_leaf_is_not_shown() -> None:
    secret = '{"type":"account","key":"0123456789"}'
    mask = Redactor({"ACCOUNT": secret})
    assert mask.text(f"it is {secret}, yes") == "it is [redacted:ACCOUNT], yes"
    assert mask.value({"a": secret}) == {"a": "[redacted:ACCOUNT]"}
    assert "0123456789" not in mask.json_text('{"a":' + secret + "}")
    assert Redactor({"ODD": "abc[1]def"}).text("abc[1]def") == "[redacted:ODD]"


@pytest.mark.parametrize("part", ['{"a":', "[[", '{"a":[', "{", '["', '{"a":"' + SECRET + '",', "-----END a\n"])
def test_texts_that_look_like_json_are_looked_through_in_linear_time(part: str) -> None:
    texts = (part * (size // len(part)) + SECRET for size in (20_000, 80_000))
    assert growth(MASK.text, *texts) < 10


# ── a stream ──────────────────────────────────────────────────────────────────────────────────────

PIECES = [
    *(SECRET, QUOTED, "48151623", GITHUB, PEM, PEM[:60], PEM[40:], SECRET[:9], SECRET[9:], "https://ann:pa$w!rd@db/x"),
    *(
        f"{SECRET[:9]}\n  {SECRET[9:]}",
        json.dumps({"a": QUOTED, "n": 48151623}),
        json.dumps({"k": json.dumps([SECRET])}),
    ),
    *("https://intranet", '","cc":"', "ada@example.com", ":8080", "{", "}", "[", "]", '"', "\\", "\\n", "\\u005a"),
    *(SECRET.replace("-", "\\-"), "\\132"),
    *(
        "AKIAABCDEFGHIJKLMNOP",
        "zz",
        " ",
        "\n",
        ".",
        "，",
        "查看",
        "the answer is",
        "%5A",
        '{"b": [',
        "true",
        ":_authToken= ",
    ),
]


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.booleans())
def test_what_is_settled_stays_whatever_follows(parts: list[str], whole: bool) -> None:
    text = "".join(parts)
    masked = MASK.json_text(text) if whole else MASK.text(text)
    for end in range(len(text) + 1):
        assert masked.startswith(MASK.settled(text[:end], whole=whole))


def test_ordinary_text_is_settled_but_for_its_end() -> None:
    text = "The train to Bonn leaves at half past ten, from track 5. " * 9
    assert len(text) - len(MASK.settled(text)) < 120
    assert Redactor({}, formats=NAMES).settled("The first words, and ") == "The first words, and "


# ── patterns of a host ────────────────────────────────────────────────────────────────────────────

INSURED = Secrets(env={}, mask={"insurance": r"\b[A-Z]\d{9}\b"}).redactor()


def test_a_pattern_of_the_host_is_masked_in_leaves_and_told_by_its_name() -> None:
    assert INSURED.text("It is A123456789, not A1234567890.") == "It is [redacted:insurance], not A1234567890."
    value = {"A123456789": ["A123456789", 5], "b": '{"c":"A123456789"}'}
    assert INSURED.value(value) == {
        "[redacted:insurance]": ["[redacted:insurance]", 5],
        "b": '{"c":"[redacted:insurance]"}',
    }
    assert INSURED.rules[-1] == {"pattern": "insurance", "replacement": "[redacted:insurance]"}
    assert INSURED.settled("It is A123456789") == ""
    assert INSURED.settled("It is A123456789.\nAnd A1") == "It is [redacted:insurance].\n"


@pytest.mark.parametrize(
    ("name", "pattern", "told"),
    [
        ("x", "(", "cannot be read"),
        ("x", "a*", "fits an empty text"),
        ("x", r"\b", "fits an empty part"),
        ("x", "(a+)+$", "takes more than"),
        ("x", r"(\w+\s?)*z", "takes more than"),
        ("X y", "a", "is no name for a mark"),
        ("aws", "a", "is the name of a key format"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused(name: str, pattern: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Secrets(env={}, mask={name: pattern})

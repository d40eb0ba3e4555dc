"""Redactor and scrub: what must not be shown."""

import base64
import json
import re
from collections.abc import Callable
from html import escape
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.growth import growth
from utools.secrets import first_look
from utools.secrets.key_formats import NAMES
from utools.secrets.redaction import Redactor
from utools.secrets.scrub import scrub, scrub_words

SECRET = 'p@ss/w+rd "ü"?'
RAW = SECRET.encode()


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(SECRET, id="raw"),
        pytest.param(base64.b64encode(RAW).decode(), id="base64"),
        pytest.param(base64.b64encode(RAW).decode().rstrip("="), id="base64 without padding"),
        pytest.param(base64.urlsafe_b64encode(RAW).decode(), id="urlsafe base64"),
        pytest.param(quote(SECRET, safe=""), id="URL-encoded"),
        pytest.param(quote(SECRET, safe="").lower(), id="URL-encoded, lower case"),
        pytest.param(quote_plus(SECRET), id="form-encoded"),
        pytest.param(json.dumps(SECRET)[1:-1], id="JSON, ASCII"),
        pytest.param(json.dumps(SECRET, ensure_ascii=False)[1:-1], id="JSON"),
        pytest.param(json.dumps(json.dumps(SECRET))[3:-3], id="JSON in JSON"),
        pytest.param(json.dumps(SECRET)[1:-1].replace("/", "\\/"), id="JSON of PHP"),
        pytest.param(json.dumps(SECRET)[1:-1].replace("+", "\\u002B"), id="JSON of Go"),
        pytest.param("".join(f"\\x{byte:02x}" for byte in SECRET.encode("latin-1")), id="JavaScript"),
        pytest.param("".join(f"\\x{byte:02x}" for byte in RAW), id="the bytes of Python"),
        pytest.param(RAW.decode("latin-1"), id="the bytes as characters"),
        pytest.param(r"p@ss/w+rd\ \"\303\274\"\?", id="a shell"),
        pytest.param(re.sub(r"(\W)", r"\\\1", SECRET), id="Markdown"),
        pytest.param(quote(SECRET, safe="!'()*~"), id="encodeURIComponent"),
        pytest.param(quote(SECRET, safe="").replace("%2F", "%2f"), id="URL-encoded, mixed case"),
        pytest.param(quote(quote(SECRET, safe=""), safe=""), id="URL-encoded twice"),
        pytest.param(escape(SECRET), id="HTML"),
        pytest.param("".join(f"&#{ord(char)};" for char in SECRET), id="HTML, by numbers"),
        pytest.param(RAW.hex(), id="hex"),
        pytest.param(RAW.hex().upper(), id="hex, upper case"),
    ],
)
def test_every_form_of_a_secret_is_replaced(form: str) -> None:
    assert Redactor({"TOKEN": SECRET}).text(f"a {form} b {form}") == "a [redacted:TOKEN] b [redacted:TOKEN]"


@pytest.mark.parametrize("secret", [r"ab\$cd&ef", r"C:\101\<key>", r"\\host\_x&y", "a%41bc&d"])
def test_secret_that_holds_what_looks_like_an_escape_is_found_beside_others(secret: str) -> None:
    redactor = Redactor({"TOKEN": secret})
    for form in (secret, escape(secret), json.dumps(secret)[1:-1]):
        assert redactor.text(f"a {form} b") == "a [redacted:TOKEN] b"
        assert redactor.value({"a": f"a {form} b"}) == {"a": "a [redacted:TOKEN] b"}


def test_what_is_read_of_a_secret_is_not_looked_for_where_it_is_too_short() -> None:
    assert Redactor({"TOKEN": r"\_\_\_"}).text("a ___ b") == "a ___ b"


def test_keys_and_values_at_any_depth_are_replaced() -> None:
    value = {"k": ["xyz123", {"xyz123": 1, "n": None}], "f": 1.5, "t": True}
    expected = {"k": ["[redacted:T]", {"[redacted:T]": 1, "n": None}], "f": 1.5, "t": True}
    assert Redactor({"T": "xyz123"}).value(value) == expected


SEVERAL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "two": ({"secret1": 1, "c2VjcmV0MQ": 2}, {"[redacted:K]": 1, "[redacted:K] 2": 2}),
    "three": (
        {"secret1": 1, "b": 2, "c2VjcmV0MQ": 3, "c2VjcmV0MQ==": 4},
        {"[redacted:K]": 1, "b": 2, "[redacted:K] 2": 3, "[redacted:K] 3": 4},
    ),
    "one is called so": ({"secret1": 1, "[redacted:K]": 2}, {"[redacted:K] 2": 1, "[redacted:K]": 2}),
    "the second is called so": (
        {"[redacted:K] 2": 0, "secret1": 1, "c2VjcmV0MQ": 2},
        {"[redacted:K] 2": 0, "[redacted:K]": 1, "[redacted:K] 3": 2},
    ),
    "within others": (
        {"a secret1": {"secret1": 1, "c2VjcmV0MQ": "secret1"}, "a c2VjcmV0MQ": []},
        {"a [redacted:K]": {"[redacted:K]": 1, "[redacted:K] 2": "[redacted:K]"}, "a [redacted:K] 2": []},
    ),
}


@pytest.mark.parametrize(("value", "expected"), SEVERAL.values(), ids=SEVERAL)
def test_keys_that_become_the_same_are_told_apart(value: dict[str, Any], expected: dict[str, Any]) -> None:
    told = Redactor({"K": "secret1"}).value(value)
    assert list(told.items()) == list(expected.items())


def test_two_keys_of_one_format_are_told_apart() -> None:
    value = {f"AKIA{'A' * 15}{each}": each for each in "AB"}
    assert Redactor({}, formats=NAMES).value(value) == {"[redacted:aws]": "A", "[redacted:aws] 2": "B"}


def test_a_great_many_keys_that_become_the_same_are_told_apart_in_a_moment() -> None:
    value = {f"{'secret1' * count}": count for count in range(1, 400)} | {f"AKIA{n:016d}": n for n in range(20_000)}
    told = Redactor({"K": "secret1"}, formats=NAMES).value(value)
    assert list(told.values()) == list(value.values())
    assert "[redacted:aws] 20000" in told


def test_longest_secret_goes_first() -> None:
    redactor = Redactor({"A": "abcdef", "B": "abcdefgh"})
    assert redactor.text("abcdefgh abcdef") == "[redacted:B] [redacted:A]"


def test_short_value_is_left_alone() -> None:
    assert Redactor({"A": "12345"}).text("12345") == "12345"


def test_without_secrets_nothing_is_copied() -> None:
    value = {"a": [1]}
    assert Redactor({}).value(value) is value


def test_rules_and_repr_name_secrets_without_their_values() -> None:
    redactor = Redactor({"B": "value-b", "A": "value-a", "SHORT": "x"})
    assert redactor.rules == [
        {"secret": "A", "replacement": "[redacted:A]"},
        {"secret": "B", "replacement": "[redacted:B]"},
    ]
    assert "value" not in repr(redactor)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


LETTERS = st.text(alphabet="abc123")  # no secret of these can arise from "[redacted:NAME]" and its neighbours


@given(secret=st.text(alphabet="abc123", min_size=6), value=JSON_VALUES, before=LETTERS, after=LETTERS)
def test_no_secret_survives(secret: str, value: Any, before: str, after: str) -> None:
    redactor = Redactor({"NAME": secret})
    assert secret not in redactor.text(before + secret + after)
    assert secret not in json.dumps(redactor.value([value, {before + secret: secret + after}]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("in '/home/u/x y/secret.txt'", "in '…/secret.txt'", id="quoted, with a space"),
        pytest.param("open /srv/app/main.py: no", "open …/main.py: no", id="bare"),
        pytest.param('at "file:///srv/a.py"', 'at "…/a.py"', id="file URL"),
        pytest.param("(/tmp/x)", "(…/x)", id="in parentheses"),
        pytest.param("C:\\Users\\ada\\x.txt failed", "…/x.txt failed", id="Windows"),
        pytest.param(
            "GET https://api.example.com/v1/x failed", "GET https://api.example.com/v1/x failed", id="URL stays"
        ),
        pytest.param("a/b and 3/4", "a/b and 3/4", id="relative stays"),
        pytest.param("key=sk-123456", "key=[redacted:KEY]", id="environment value"),
    ],
)
def test_error_text_shows_neither_host_path_nor_environment(text: str, expected: str) -> None:
    assert scrub(text, {"KEY": "sk-123456", "A": "a"}) == expected


TRACE = 'Traceback (most recent call last):\n  File "/srv/a.py", line 3, in f\n    g()\nValueError: no'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("cannot open /home/bob/secret/x.txt", "cannot open …/x.txt", id="bare"),
        pytest.param("cannot open '/home/bob/my notes/x'", "cannot open '…/x'", id="quoted"),
        pytest.param("error:/home/bob/key", "error:…/key", id="after a colon"),
        pytest.param("/usr/bin:/home/bob/bin", "…/bin:…/bin", id="list of paths"),
        pytest.param("no /strange/place/key.pem", "no …/key.pem", id="known by its extension"),
        pytest.param("[Errno 2] none: '/strange/place'", "[Errno 2] none: '…/place'", id="in a system error"),
        pytest.param("C:\\Users\\bob\\x failed", "…/x failed", id="Windows"),
        pytest.param("see file:///etc/passwd", "see …/passwd", id="file URL"),
        pytest.param(f"it broke.\n{TRACE}", "it broke. ValueError: no", id="trace"),
        pytest.param(repr(TRACE), "' ValueError: no'", id="trace, escaped"),
        pytest.param("Traceback (most recent call last):", "", id="trace without an end"),
        pytest.param("key=sk-123456", "key=[redacted:KEY]", id="environment value"),
    ],
)
def test_what_a_tool_says_shows_neither_trace_nor_path_nor_environment(text: str, expected: str) -> None:
    assert scrub_words(text, {"KEY": "sk-123456"}) == expected


@pytest.mark.parametrize(
    "text",
    [
        "GET http://host/path failed",
        "https://host:8080/home/bob/x.txt is gone",
        "//cdn.example.com/x.js",
        "http://[::1]:80/v1/x",
        "3/4 of them, and/or 1 / 2",
        "/q: expected a string",
        "/items/0/name must be a string, got 1.",
        "'/items/0' is missing",
        "the route /v1/orders gave 404",
        "no such order /x",
        "notes/today.txt and ./data/x.txt and ../home/bob and ~/x",
        "a regex like ^/a/b$, a type text/html, a date 2024/01/02",
    ],
)
def test_ordinary_words_stay_as_they_are(text: str) -> None:
    assert scrub_words(text, {"KEY": "sk-123456"}) == text


@pytest.mark.sampled
@pytest.mark.parametrize(
    "part", [*["word ", "/", "'/", "a/", "'/a ", "/a.b/", "/home/"], "Traceback (most recent call last)"]
)
def test_scrubbing_grows_with_the_text_and_no_faster(part: str) -> None:
    texts = (part * (size // len(part)) for size in (100_000, 400_000))
    assert growth(lambda text: scrub_words(text, {"KEY": "sk-123456"}), *texts) < 10


@pytest.mark.parametrize(
    "secret", ['pa"ss\nword1', "tökensecret9", "back\\slash\\es", "ends with a break\n", "plain-secret"]
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_secret_within_a_json_text_within_a_value_is_found(secret: str, ascii_only: bool) -> None:
    body = json.dumps({"k": secret}, ensure_ascii=ascii_only)
    for value in (body, secret, repr(secret)):
        redactor = Redactor({"K": secret}, formats=NAMES)
        assert redactor.value({"body": [value]}) == {"body": [redactor.text(value)]}


@pytest.mark.parametrize("before", ["", "u", "us", "user:", "user-1:"])
@pytest.mark.parametrize("after", ["", "z", "zz"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_secret_within_the_base64_of_a_longer_text_is_replaced(before: str, after: str, encode: Any) -> None:
    text = encode(before.encode() + RAW + after.encode()).decode()
    told = Redactor({"TOKEN": SECRET}).text(text)
    assert "[redacted:TOKEN]" in told
    assert len(told.replace("[redacted:TOKEN]", "")) <= len(text) - len(RAW) * 8 // 6 + 2


PIN = Redactor({"PIN": "48151623"})


@pytest.mark.parametrize("number", [48151623, 48151623.0])
def test_a_number_that_is_a_secret_is_replaced(number: float) -> None:
    assert PIN.value({"a": [number, 4]}) == {"a": ["[redacted:PIN]", 4]}


def test_a_number_that_is_none_stays_a_number() -> None:
    value = {"a": [481516234, True, 1, -0.5]}
    assert PIN.value(value) == value
    assert Redactor({"ONE": "000001"}).value({"a": [1, True]}) == {"a": [1, True]}


JSON_TEXTS = {
    "a number": (PIN, '{"a":48151623}', '{"a":"[redacted:PIN]"}'),
    "two keys": (PIN, '{"48151623":1,"NDgxNTE2MjM":2}', '{"[redacted:PIN]":1,"[redacted:PIN] 2":2}'),
    "as it was written": (PIN, '{ "a" : "48151623", "b": 1.0}', '{ "a" : "[redacted:PIN]", "b": 1.0}'),
    "no JSON": (PIN, '{"a":48151623', '{"a":[redacted:PIN]'),
    "a key twice": (PIN, '{"a":48151623,"a":1}', '{"a":"[redacted:PIN]","a":1}'),
}


@pytest.mark.parametrize(("redactor", "text", "expected"), JSON_TEXTS.values(), ids=JSON_TEXTS)
def test_json_stays_json(redactor: Redactor, text: str, expected: str) -> None:
    assert redactor.json_text(text) == expected


LONG = "hunter2-abcdef-XYZ987"
HOOK = "https://hooks.example/services/T012/B345"
CUT = Redactor({"KEY": LONG, "URL": "postgresql://ann:sesame-open@db.example", "WORD": "my-password", "HOOK": HOOK})
CUTS = {
    "at the end": (f"it is {LONG[:-1]}", "it is [redacted:KEY]"),
    "far from its end": (f"it is {LONG[:8]}", "it is [redacted:KEY]"),
    "at the start": (f"{LONG[1:]} it is", "[redacted:KEY] it is"),
    "at both": (f"{LONG[-8:]} or {LONG[:9]}", "[redacted:KEY] or [redacted:KEY]"),
    "before a mark": (f"{LONG[:9]}\n[cut: 3 characters more]", "[redacted:KEY]\n[cut: 3 characters more]"),
    "before dots": (f"{LONG[:9]}…", "[redacted:KEY]…"),
    "in its base64": (base64.b64encode(LONG.encode()).decode()[:-9], "[redacted:KEY]"),
    "of a command": (
        f"the command ended with exit code 1: {LONG[3:]}",
        "the command ended with exit code 1: [redacted:KEY]",
    ),
    "a few characters": (f"it is {LONG[:7]}", f"it is {LONG[:7]}"),
    "in the middle": (f"a {LONG[:-1]} b", f"a {LONG[:-1]} b"),
    "a scheme": ("it is postgresql://", "it is postgresql://"),
    "a host": ("db.example", "db.example"),
    "more than a host": ("sesame-open@db.example", "[redacted:URL]"),
    "the host of a hook": ("https://hooks.example/", "https://hooks.example/"),
    "more than that": ("https://hooks.example/services/T0", "[redacted:HOOK]"),
    "more than a scheme": ("it is postgresql://ann:sesa", "it is [redacted:URL]"),
    "a word": ("password: none", "password: none"),
}


@pytest.mark.parametrize(("text", "expected"), CUTS.values(), ids=CUTS)
def test_what_a_cut_left_of_a_secret_is_replaced(text: str, expected: str) -> None:
    assert CUT.redact_truncated_value({"a": [text]}) == {"a": [expected]}
    assert CUT.redact_truncated_text(text) == expected


@given(before=st.text(max_size=5), cut=st.integers(0, len(LONG)))
def test_of_a_secret_that_is_cut_anywhere_no_more_than_a_few_characters_are_seen(before: str, cut: int) -> None:
    for piece in (before + LONG[:cut], LONG[cut:] + before):
        told = str(CUT.redact_truncated_value([piece]))
        assert not any(LONG[at : at + 8] in told for at in range(len(LONG) - 7))


@pytest.mark.sampled
@pytest.mark.parametrize("part", ["\\u0074", "\\\\", "%41", "&#65;", "\\t\\ntok1-x", "plain words "])
def test_the_work_grows_with_the_text_and_no_faster(part: str) -> None:
    redactor = Redactor({f"S{n}": f"tok{n}-{'x' * 30}/" for n in range(20)})
    texts = (part * (size // len(part)) for size in (50_000, 200_000))
    assert growth(redactor.json_text, *texts) < 10


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("文件 /home/ann/work/notes.txt。请检查", "文件 …/notes.txt。请检查"),
        ("读不了/home/ann/work/x.txt，没有权限", "读不了…/x.txt，没有权限"),
    ],
)
def test_a_path_in_a_chinese_sentence_ends_with_its_punctuation(said: str, told: str) -> None:
    assert scrub(said, {}) == told


CONVERSATION = [
    {"role": "user", "content": f"What is {number}? {'please ' * 40}", "trace_id": f"run-{number}"}
    for number in range(40)
]
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


@pytest.mark.parametrize("hidden", [SECRET, json.dumps(json.dumps(SECRET)), base64.b64encode(RAW).decode(), KEY])
@pytest.mark.parametrize("most_known", [3, first_look.MOST_KNOWN])
@pytest.mark.parametrize("around", [lambda parts: parts, lambda parts: {"a": 1, "b": 2, "c": 3, "d": 4, "e": parts}])
def test_a_secret_in_what_was_harmless_before_is_found(
    monkeypatch: pytest.MonkeyPatch, around: Callable[[Any], Any], most_known: int, hidden: str
) -> None:
    """Parts of a long value that were looked at before are known again; one that has changed is not."""
    monkeypatch.setattr(first_look, "MOST_KNOWN", most_known)
    redactor = Redactor({"TOKEN": SECRET, "PIN": "48151623"}, formats=NAMES)
    whole = around(CONVERSATION)
    assert redactor.value(whole) is redactor.value(whole) is whole
    places: list[dict[str, Any]] = [
        {"content": f"so {hidden}."},
        {f"x {hidden}": "", "y": ""},
        {"calls": [{"a": [hidden]}]},
    ]
    for place, changed in enumerate([*places, {"number": 48151623}]):
        index = 7 * place
        new = around([*CONVERSATION[:index], {**CONVERSATION[index], **changed}, *CONVERSATION[index + 1 :]])
        for _ in range(2):
            cleaned = redactor.value(new)
            parts = cleaned if isinstance(cleaned, list) else cleaned["e"]
            assert "[redacted:" in json.dumps(parts[index])
            assert [*parts[:index], *parts[index + 1 :]] == [*CONVERSATION[:index], *CONVERSATION[index + 1 :]]
    assert redactor.value(whole) is whole
    named = {f"as {hidden}": CONVERSATION, "other": 1}
    assert any("[redacted:" in key for key in redactor.value(named))


def test_a_list_of_many_small_values_is_looked_at_as_one() -> None:
    """To remember each of them would take longer than the look."""
    redactor = Redactor({"PIN": "48151623"}, formats=NAMES)
    numbers = [*range(3000), 48151623]
    assert redactor.value(numbers) == [*numbers[:-1], "[redacted:PIN]"]
    assert redactor.value(numbers[:-1]) == numbers[:-1]
    assert redactor._first_look._known == set()

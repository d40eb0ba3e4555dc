"""A value that mail, a browser, a bank or a file system takes for another one is not found; the same one is."""

import string
from decimal import Decimal
from itertools import chain

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent_core.origins import dates, whole
from agent_core.origins.addresses import find_bare_urls, find_url_spans, read_url_at
from agent_core.origins.kinds import READERS, probes_of
from agent_core.origins.lines import Lines
from agent_core.origins.urls import Urls
from agent_core.origins.whole import compose, lower
from support.rule_cases import stands

MAILBOX = st.from_regex(r"[a-z][a-z0-9]{1,6}([._+'-][a-z0-9]{1,5})?", fullmatch=True)
LABEL = st.from_regex(r"[a-z][a-z0-9]{1,7}", fullmatch=True)
HOST = st.builds(lambda name, end: f"{name}.{end}", LABEL, st.sampled_from(["com", "org", "co.uk", "example", "de"]))
EMAIL = st.builds(lambda box, host: f"{box}@{host}", MAILBOX, HOST)
SEGMENT = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,6}", fullmatch=True)
FILE = st.builds(lambda name: f"{name}.txt", SEGMENT)
PATH = st.builds(lambda parts, file: "/".join(["", *parts, file]), st.lists(SEGMENT, min_size=1, max_size=3), FILE)
QUERY = st.sampled_from(["", "?id=7", "?a=b&c=d"])
URL = st.builds(lambda host, path, query: f"https://{host}{path}{query}", HOST, PATH, QUERY)
IBANS = st.sampled_from(["DE89370400440532013000", "GB33BUKB20201555555555", "FR1420041010050500013M02606"])
IDS = st.from_regex(r"[A-Za-z]{1,3}[0-9]{2,5}[A-Za-z]{0,2}", fullmatch=True)

EMBEDDINGS = [
    "Write to {}.",
    "{}",
    "please use {}, thanks",
    '"{}"',
    "({})",
    "[{}]",
    "<{}>",
    "- {}\n- other",
    "\t{}\n",
    "to: {}",
    "| name | {} |",
    "**{}**",
    "`{}`",
    "请用{}，谢谢",
    "{}; then stop",
    "is it {}?",
    "«{}»",
]
EMBEDDED = st.sampled_from(EMBEDDINGS)
LOOKALIKES = dict(zip("aeocpislkf./", "аеосріѕӏ\u212a\uff46\u2024\u2044", strict=True))
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u202e\u0301\u20dd"


@st.composite
def another(draw: st.DrawFn, values: st.SearchStrategy[str]) -> tuple[str, str]:
    """A value, and one that is not the same: a letter more, less, or exchanged for one that looks like it."""
    value = draw(values)
    at = draw(st.integers(0, len(value) - 1))
    char = value[at]
    changed = draw(
        st.sampled_from(
            [
                value[:at] + value[at + 1 :],
                value[:at] + char + char + value[at + 1 :],
                value[:at] + LOOKALIKES.get(char.lower(), "ı") + value[at + 1 :],
                value[:at] + draw(st.sampled_from(INVISIBLE)) + value[at:],
                value[:at] + draw(st.sampled_from(string.ascii_lowercase + string.digits)) + value[at:],
                value + draw(st.sampled_from(["x", "1", ".evil.org", "@evil.org", "/x", "%00", "\n", " x", "?", "#x"])),
                draw(st.sampled_from(["x", "1", "evil.", "../", "@", "evil@", "x/"])) + value,
            ]
        )
    )
    assume(changed != value)
    return value, changed


def same(value: str, changed: str) -> bool:
    """Whether two spellings are one value: a mailbox in other capitals, a path that begins here."""
    return changed.lower() == value.lower() or changed.removeprefix("./") == value


@pytest.mark.parametrize("values", [EMAIL, URL, PATH, IBANS, IDS], ids=["email", "url", "path", "iban", "id"])
@given(st.data())
def test_a_changed_value_is_never_found(values: st.SearchStrategy[str], data: st.DataObject) -> None:
    value, changed = data.draw(another(values))
    text = data.draw(EMBEDDED).format(value)
    assume(changed.strip() not in text or changed.strip() in value)
    assume(not same(value, changed) and any(map(str.isalnum, changed)))
    assert not stands(changed, text)


@pytest.mark.parametrize("values", [EMAIL, URL, PATH, IBANS, IDS], ids=["email", "url", "path", "iban", "id"])
@given(st.data())
def test_the_same_value_is_found_wherever_it_is_written(values: st.SearchStrategy[str], data: st.DataObject) -> None:
    value, text = data.draw(values), data.draw(EMBEDDED)
    assert stands(value, text.format(value))


@given(st.integers(0, 10**9), st.sampled_from(["{:,}", "{:_}", "{}", "{:,}.00"]), EMBEDDED)
def test_a_number_is_found_in_any_of_its_spellings(number: int, spelling: str, text: str) -> None:
    written = spelling.format(number).replace("_", "\u202f")
    assert stands(number, text.format(written))


@given(st.integers(0, 10**9), st.integers(0, 10**9), EMBEDDED)
def test_another_number_is_not_found(number: int, other: int, text: str) -> None:
    assume(number != other)
    assume(text != "[{}]" or number < 1000)  # [1,100] is a list as well, of 1 and 100
    assert not stands(other, text.format(f"{number:,}"))


@given(st.decimals(0, 10**6, places=2), EMBEDDED)
def test_a_sum_is_found_as_it_is_written_here_and_there(amount: Decimal, text: str) -> None:
    english = f"{amount:,.2f}"
    assume("," in english)  # one mark alone may be either
    german = english.translate(str.maketrans(",.", ".,"))
    assert stands(float(amount), text.format(english))
    assert stands(float(amount), text.format(german))


@given(st.dates(), EMBEDDED)
def test_a_date_is_found_in_words_and_in_figures(date: object, text: str) -> None:
    day = date
    for spelling in ("%Y-%m-%d", "%B %d, %Y", "%d %B %Y", "%d.%m.%Y", "%Y年%m月%d日"):
        written = day.strftime(spelling) if day.year >= 1000 else ""  # type: ignore[attr-defined]
        assert not written or stands(str(day), text.format(written)), written


WORDS = ["2026", "\u202f", "\u00a0", "st", "of ", "June", "may", "SEPT", "\u017fep", "am", "p.m.", "PM", "下午"]
PATTERNS = (dates._DATE, dates._TIME, dates._PHONE, dates._GROUPS)
PIECES = st.sampled_from([*"12-/.:T+Zx张,٣月日年点點时時 ", *WORDS])


@given(st.lists(PIECES, max_size=9).map("".join))
def test_what_is_skipped_at_once_holds_no_date_and_no_time(text: str) -> None:
    found = {pattern: [*dates._search(text, pattern)] for pattern in PATTERNS}
    for pattern, matches in found.items():
        assert [each.span() for each in matches] == [
            each.span()
            for near in dates._FIGURES.finditer(text)
            for each in pattern.compiled.finditer(text, max(0, near.start() - dates.NEAR), near.end() + dates.NEAR)
        ]


NUMBERS = "0|0.05|0,050|1e300|1000.00|007|12|3|2026|1,000|-5|-1e3002026|5 million|two dozen|3 dozen|3万5千|1e3|٣"
MOMENTS = "10:30|5pm|May 3, 2026|3 May|2026-05-03|5月3日"
IBAN = "DE89370400440532013000"
TEXTS = [*NUMBERS.split("|"), *MOMENTS.split("|"), "ann@example.org", "example.org", IBAN]
JOINTS = [" ", "\n", "\n", "-", "(", ".", ",", ": ", "x", '"', "\r\n", "€", "\n\0\n"]
ASKED: dict[str | None, list[object]] = {
    None: [10**80, 1e300, 0, 0.05, 12, 36, 35000, -5, 1000.0, 3],
    "date": ["2026-05-03"],
    "time": ["10:30"],
    "email": ["ann@example.org"],
    "hostname": ["example.org"],
    "iban": [IBAN],
}


@given(st.lists(st.one_of(st.sampled_from(TEXTS), st.sampled_from(JOINTS)), max_size=16).map("".join))
def test_what_is_read_by_lines_is_what_is_read_at_once(text: str) -> None:
    text = compose(text)
    lines = Lines(text, lower(text))
    figures = "".join(str(int(char)) for char in text if char.isdecimal())
    for form, values in ASKED.items():
        for probe in chain.from_iterable(probes_of(value, form, "x") for value in values):
            if (probe.hint or "") in lower(text) and (probe.figures or "") in figures:
                read = list(READERS[probe.kind](text))
                expected = [start for wanted in probe.forms() for start, found in read if found == wanted]
                assert [*lines.find(probe)] == expected


HOSTS = ["example.org", "EXAMPLE.org", "sub.example.org", "example.org.uk", "b\u00fccher.example", "127.0.0.1", "[::1]"]
URL_TEXTS = st.tuples(
    st.sampled_from(["https://", "HTTP://", "http://ann@", "ftp://", "", "(https://", "*", "见https://"]),
    st.sampled_from(HOSTS),
    st.sampled_from(["", ":443", ":80", ":8080", ":"]),
    st.sampled_from(["", "/", "/a/b", "/A/b", "/a_(b)", "/a/b/", "/a%20b"]),
    st.sampled_from(["", "?q=1", "?q=1#top", "#top", "?"]),
    st.sampled_from(["", ".", ")", "*", "，", " 张", "'"]),
).map("".join)


@given(st.lists(URL_TEXTS, min_size=1, max_size=6), URL_TEXTS, st.sampled_from([" ", "\n", ", ", "](", '"']))
def test_what_is_skipped_at_once_holds_no_url(texts: list[str], asked: str, between: str) -> None:
    text = compose(between.join(texts))
    for value in (asked, *texts):
        for probe in probes_of(value.strip("(*.,)，张'见 "), "uri", "url"):
            for up_to in (None, "path", "host") if probe.kind == "uri" else ():
                cut = {None: 6, "path": 5, "host": 4}[up_to]
                read = [
                    *((start, read_url_at(text, start, end)) for start, end in find_url_spans(text)),
                    *find_bare_urls(text),
                ]
                expected = [start for start, url in read if url and url[:cut] == probe.wanted[:cut]]  # type: ignore[index]
                assert [*Urls(text, lower(text)).find(probe.wanted, up_to, probe.hint)] == expected  # type: ignore[arg-type]


LONG = [
    "@",
    "a@",
    "a.",
    "1,",
    "1.",
    "-",
    "/",
    "a/",
    " ",
    "'",
    '"',
    "(",
    "é",
    "张",
    "a@b.",
    "://",
    "1 1",
    "12:",
    "a-",
    "1-1 ",
]


@pytest.mark.sampled
@pytest.mark.parametrize("piece", LONG)
def test_no_text_takes_long_to_read(piece: str) -> None:
    """Quadratic reading of such a text would take minutes."""
    text = piece * (100_000 // len(piece))
    values = ["ann@x.org", "https://x.org/a", "DE89370400440532013000", "2026-06-13 10:00", 7, "a b c"]
    assert [stands(value, text) for value in values] == [False] * len(values)


@given(st.text("abZ019  \t\n.,;:'\"’-_/\\@#$%&()[]<>!?=+é中א\u0301\u200d👍ーア", max_size=8), st.integers(0, 8))
def test_an_edge_that_is_plain_is_one_by_uax_29(text: str, at: int) -> None:
    if 0 < at < len(text) and whole._PLAIN_EDGE.match(text, at):
        assert whole._word_edge().match(whole._NO_LETTERS.sub(" ", text), at) is not None

"""Patterns in linear time: the same answers as Python's `re` gives, and no text that takes for ever."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from utools.schema.linear_pattern import MOST_WAYS, explain_slow, linear
from utools.schema.pattern_cost import cost_of
from utools.schema.pattern_places import MOST_KEPT, find_places

ATOMS = [
    *("a", "b", "é", "Ω", "1", "٣", ".", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\.", r"\n", "_", " "),
    *("[ab]", "[^ab]", r"[\w.-]", r"[^\s@]", r"[\d_]", "[a-cx-z]", r"[^\d]", "ß", "İ", "K"),
]
ZERO = ["^", "$", r"\b", r"\B", r"\A", r"\Z", "(?=a)", "(?!b)", r"(?=.*\d)", r"(?!.*b$)", "(?<=a)", "(?<!b)"]
REPEATS = ["", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?", "{0,2}?"]
TEXTS = st.text(alphabet="ab1٣é_ .\n-@xyzßKİ\r", max_size=14)


def patterns() -> st.SearchStrategy[str]:
    atom = st.one_of(st.sampled_from(ATOMS), st.sampled_from(ATOMS), st.sampled_from(ZERO))

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        repeat = st.sampled_from(REPEATS)
        group = st.builds(lambda each, times: f"(?:{each}){times}", inner, repeat)
        captured = st.builds(lambda each, times: f"({each}){times}", inner, repeat)
        scoped = st.builds(lambda each, flag: f"(?{flag}:{each})", inner, st.sampled_from(["i", "s", "m", "a", "-i"]))
        either = st.lists(inner, min_size=2, max_size=3).map(lambda each: f"(?:{'|'.join(each)})")
        ahead = st.builds(lambda each, how: f"(?{how}{each})", inner, st.sampled_from(["=", "!"]))
        row = st.lists(inner, min_size=1, max_size=4).map("".join)
        return st.one_of(group, captured, scoped, either, ahead, row, row)

    single = st.builds(lambda each, times: each + ("" if each in ZERO else times), atom, st.sampled_from(REPEATS))
    whole = st.recursive(single, grow, max_leaves=8)
    return st.builds(lambda flags, each: flags + each, st.sampled_from(["", "", "", "(?i)", "(?s)", "(?m)"]), whole)


def same(pattern: str, text: str) -> None:
    """The places alone give what `re` gives, also where `re` would be asked."""
    try:
        compiled = re.compile(pattern)
    except re.error:
        return
    places = find_places(pattern)
    assert places.lead_to_end(text, is_whole=False) is (compiled.search(text) is not None)
    assert places.lead_to_end(text, is_whole=True) is (compiled.fullmatch(text) is not None)
    assert linear(pattern).search(text) is (compiled.search(text) is not None)
    assert linear(pattern).fullmatch(text) is (compiled.fullmatch(text) is not None)


@example(r"(?a:\d)", "٣")
@example(r"(?a:\d*)", "٣")
@example(r"(?u:\w)(?a:\w)", "éé")
@given(patterns(), TEXTS)
def test_answers_are_those_of_re(pattern: str, text: str) -> None:
    same(pattern, text)


@given(patterns())
@settings(max_examples=50)
def test_what_is_left_to_re_has_few_ways(pattern: str) -> None:
    """The bound is one: `re` itself, on the text that such a pattern likes least, is done at once."""
    try:
        compiled = re.compile(pattern)
    except re.error:
        return
    text = "a" * 300
    if cost_of(pattern, is_search=True).ways(len(text)) <= MOST_WAYS:
        compiled.search(f"{text}!")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"^\d+$", ["12", "12\n", "1٣", "", "x1"]),
        (r"^[a-z0-9]+(\.[a-z0-9]+)*$", ["a.b.c", "a..b", "a.", "a\n", ""]),
        (r"^[^@\s]+@[^@\s]+\.[^@\s]+$", ["ada@example.com", "ada@example", "a b@c.d", "ada@x.y\n"]),
        (r"^(?=.*[A-Z])(?=.*\d)[A-Za-z\d]{8,}$", ["Passw0rd", "password1", "Pass1", "PASSWORD1"]),
        (r"(?i)^(yes|no)+$", ["YES", "yEsNo", "maybe", ""]),
        (r"(?m)^(a|b)+$", ["x\nab\ny", "x\nabz", "ab"]),
        (r"(?s)^(.|x)+z$", ["a\nbz", "z", "xz"]),
        (r"\b(\w|\w\w)+\b", ["a b", "", "é", "..", "_"]),
        (r"^(a?){20}a{20}$", ["a" * 20, "a" * 40, "a" * 41, "a" * 19]),
        (r"^((a{1,3}){1,3}){1,3}$", ["a" * 27, "a" * 28, ""]),
        (r"(?:(?<=a)b|(?<!a)c)+", ["ab", "ac", "bc", "xc"]),
    ],
)
def test_known_patterns(pattern: str, texts: list[str]) -> None:
    for text in texts:
        same(pattern, text)


SLOW = [
    *(r"^(a|a|a)*$", r"^(?:(?:|)a)*$", r"^(?:a(?:b?|c?))*$", r"^(?:a?)*$", r"^((a|b)*|a)*$", r"^(?:aa|aab?|b)*$"),
    *(r"(a+)+$", r"^(a|a)*$", r"(a|aa)+$", r"^(\w+\s?)*$", r"(.*a){12}", r"^(([a-z])+.)+[A-Z]([a-z])+$"),
    *(r"\s+$", r".*.*=.*", r"^(a?){25}a{25}$", r"(?:a*)*b", r"(?=(a+)+$)x", r"(x+x+)+y", r"^(\d+)*$"),
]


@pytest.mark.sampled
@pytest.mark.parametrize("pattern", SLOW)
def test_no_text_takes_for_ever(pattern: str) -> None:
    """Each of these would outlast this machine, or take minutes."""
    assert explain_slow(pattern) is None
    for char in "a1 x":
        text = char * 20_000 + "!"
        assert linear(pattern).search(text) in (True, False)
        assert linear(pattern).fullmatch(text) is False


@pytest.mark.parametrize(
    "pattern",
    [r"(a+)+\1", r"^(.*)\1$", r"(?P<x>a+)b(?P=x)+", r"(?>a+)+b", r"(a)?(?(1)b+|c+)+", "(?:[a-z]{1,90}x){1,90}"],
)
def test_what_cannot_be_followed_is_told(pattern: str) -> None:
    told = explain_slow(pattern)
    assert told is not None
    assert repr(pattern) in told


def test_steps_that_are_remembered_have_a_limit() -> None:
    places = find_places(r"^(?:[ab]*a[ab]{12})$")
    text = "".join("ab"[(n * n // 7) % 2] for n in range(30_000))
    assert places.lead_to_end(text, is_whole=True) is (text[-13] == "a")
    assert len(places._memory.sets) + len(places._memory.moves) <= MOST_KEPT + 3


def test_threads_share_a_pattern() -> None:
    pattern, texts = r"^(?:\w+[.-])*\w+$", [f"{'ab.c-' * (n % 40)}d{n}" for n in range(400)]
    expected = [re.search(pattern, text) is not None for text in texts[:20]]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda text: find_places(pattern).lead_to_end(text, is_whole=False), texts))
        shared = linear(pattern)
        assert list(threads.map(shared.search, texts)) == found
    assert found[:20] == expected

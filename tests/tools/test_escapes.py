"""Escapes: where a character of a text stands that was written as an escape."""

from hypothesis import given
from hypothesis import strategies as st

from support.examples import examples
from utools.secrets.escapes import find_place, unescape_once

AS_THEY_ARE = ("a", "é", "\n", "\\", "%", "&", "%e2", "%c3%28", "%ff%80", "&quot", "&#0;")
ESCAPED = (
    r"\n",
    r"\\",
    r"\x41",
    r"\101",
    r"\$",
    r"\_",
    r"\u0041",
    r"\ud83d\udd11",
    "%20",
    "%e2%82%ac",
    "%f0%9f%94%91",
    "&amp;",
    "&#38;",
    "&#128;",
)
PIECES = st.sampled_from([*AS_THEY_ARE, *ESCAPED, r"\ud800"])


@examples(5)
@given(st.lists(PIECES, max_size=8).map("".join))
def test_a_character_is_found_where_it_is_written(text: str) -> None:
    plain = unescape_once(text)
    places = [find_place(text, place) for place in range(len(plain) + 1)]
    assert places == sorted(set(places))
    assert (places[0], places[-1]) == (0, len(text))
    for place, start in enumerate(places):
        assert (unescape_once(text[:start]), unescape_once(text[start:])) == (plain[:place], plain[place:])

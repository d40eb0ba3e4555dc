"""lazy_compile: a pattern that is compiled when it is first used, and does what a compiled one does."""

import copy
import re

import pytest

from utools.lazy_pattern import lazy_compile


def test_a_pattern_is_compiled_when_it_is_used() -> None:
    pattern = lazy_compile("(")
    with pytest.raises(re.error):
        pattern.search("(")


def test_it_has_what_the_compiled_one_has() -> None:
    pattern, compiled = lazy_compile(r"(?P<a>b+)", re.I), re.compile(r"(?P<a>b+)", re.I)
    assert (pattern.pattern, pattern.flags, pattern.groupindex) == (compiled.pattern, compiled.flags, {"a": 1})
    for _ in range(2):
        assert pattern.findall("aBbab") == compiled.findall("aBbab")
    assert pattern.sub("x", "aBbab") == "axax"
    assert copy.deepcopy(pattern).search("b")

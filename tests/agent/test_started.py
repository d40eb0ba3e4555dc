"""The first record of a strand, decoded in parts: it is what its bytes say, whatever keys and texts are in it."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.journal.record import Row
from agent_core.journal.started import read_started

KEYS = st.sampled_from(["config", "tools", "messages", "definition", "texts", "a", ',"tools":', "kind"])
VALUES = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(['","config":', ',"tools":{}', "}", ""]),
    lambda each: st.lists(each, max_size=2) | st.dictionaries(KEYS, each, max_size=3),
    max_leaves=8,
)


def row(data: bytes) -> Row:
    return Row("flow", 0, b"", data)


def started(loop: str, members: list[tuple[str, Any]]) -> bytes:
    """A record whose keys may come twice, as no journal writes them."""
    own = b"".join(b",%b:%b" % (orjson.dumps(key), orjson.dumps(value)) for key, value in members)
    return b'{"kind":"run_started","loop":"%b"%b}' % (loop.encode(), own)


@given(st.sampled_from(["agent", "flow"]), st.lists(st.tuples(KEYS, VALUES), max_size=6))
def test_it_is_what_the_bytes_say(loop: str, members: list[tuple[str, Any]]) -> None:
    data = started(loop, members)
    assert read_started(row(data)) == orjson.loads(data)


@given(
    st.lists(st.tuples(KEYS, VALUES), max_size=5), st.integers(1, 400), st.sampled_from([b"", b"}", b'"', b",", b"{"])
)
def test_broken_bytes_are_refused_as_ever(members: list[tuple[str, Any]], at: int, junk: bytes) -> None:
    whole = started("agent", members)
    at = min(at, len(whole) - 1)
    data = whole[:at] + junk + whole[at + 1 :]
    try:
        expected = orjson.loads(data)
    except orjson.JSONDecodeError:
        with pytest.raises(orjson.JSONDecodeError):
            read_started(row(data))
    else:
        assert read_started(row(data)) == expected


def test_what_runs_have_alike_is_decoded_once() -> None:
    one, other = (started("agent", [("run", run), ("tools", {"find": {}}), ("messages", [run])]) for run in ("a", "b"))
    first, second = read_started(row(one)), read_started(row(other))
    assert first["tools"] is second["tools"]
    assert (first["run"], second["messages"]) == ("a", ["b"])

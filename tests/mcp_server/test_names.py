"""The names of tools, and forms: what goes out comes back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_shim.mcp_server.names import Target, target_of, tool_name

TARGETS = st.builds(
    Target,
    st.sampled_from(["workflow", "agent"]),
    st.text(st.sampled_from("ax_-.2é\U0001f600"), min_size=1) | st.text(),
)


@given(TARGETS)
def test_tool_name_leads_back_to_what_it_stands_for(target: Target) -> None:
    name = tool_name(target)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", name)
    assert target_of(name) == target


@given(st.text() | st.from_regex(r"(run|ask)_[\w-]*(_x[0-9a-f]+_)?", fullmatch=True))
def test_name_that_no_target_has_stands_for_nothing(name: str) -> None:
    target = target_of(name)
    assert target is None or tool_name(target) == name


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (Target("workflow", "daily_report-2"), "run_daily_report-2"),
        (Target("agent", "clerk"), "ask_clerk"),
        (Target("agent", "buyer.2"), "ask_buyer_x2e_2"),
        (Target("agent", "a_x2e_"), "ask_a_x5f_x2e_"),
    ],
)
def test_plain_names_stay_as_they_are(target: Target, name: str) -> None:
    assert tool_name(target) == name

"""The names of tools: what goes out comes back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_shim.mcp_server.names import Target, tool_name

TARGETS = st.builds(
    Target,
    st.sampled_from(["workflow", "agent"]),
    st.text(st.sampled_from("ax_-.2é\U0001f600"), min_size=1) | st.text() | st.text("ab", min_size=58, max_size=70),
)


@given(st.sets(TARGETS))
def test_each_target_has_a_name_of_its_own_that_every_client_takes(targets: set[Target]) -> None:
    names = {tool_name(target) for target in targets}
    assert len(names) == len(targets)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (Target("workflow", "daily_report-2"), "run_daily_report-2"),
        (Target("agent", "clerk"), "ask_clerk"),
        (Target("agent", "buyer.2"), "ask_buyer_x2e_2"),
        (Target("agent", "a_x2e_"), "ask_a_x5f_x2e_"),
        (Target("workflow", "a" * 60), "run_" + "a" * 60),
        (Target("workflow", "a" * 61), "run_" + "a" * 51 + "-6c340098"),
    ],
)
def test_plain_names_stay_as_they_are(target: Target, name: str) -> None:
    assert tool_name(target) == name

"""The table of powers: each key of a definition, and each built-in tool, stands in it or reaches nothing."""

from importlib import import_module
from pathlib import Path

import pytest

from agent_core.config import AgentConfig
from engine_shim.definition.invoke import SCHEMA as INVOKE
from engine_shim.definition.model import Definition
from engine_shim.host.config import HostConfig
from engine_shim.host.powers import AGENT_ONLY, NO_POWER, POWERS, write_table
from utools.builtin import builtin_tools
from utools.context.store_memory import MemoryContextStore
from utools.schema.config_schema import author_keys

ROOT = Path(__file__).parents[3]


def keys_of_definitions() -> set[str]:
    """Each key that gives a definition something: its own, its agents', and those that only an author sets."""
    found = {f"definition/{key}" for key in Definition.model_fields}
    found |= {f"agent_core/{key}" for key in AgentConfig.model_fields}
    found |= {f"invoke_workflow/{key}" for key in INVOKE["properties"]}
    for tool in builtin_tools(".", context_store=MemoryContextStore()):
        keys = author_keys(tool.config_schema)
        keys |= {key for key, rule in tool.config_schema["properties"].items() if rule.get("x-host")}
        found |= {f"{tool.code}/*", *(f"{tool.code}/{key}" for key in keys)}
    return found


def test_each_key_has_a_row_or_reaches_nothing() -> None:
    rows = {key for each in POWERS for key in each.keys}
    harmless = NO_POWER | {f"agent_core/{key}" for key in AGENT_ONLY}
    assert keys_of_definitions() - rows - harmless == set()
    assert rows & harmless == set()
    assert harmless - keys_of_definitions() == set()
    assert rows - keys_of_definitions() <= {"email/attachments"}


@pytest.mark.parametrize("power", POWERS, ids=lambda power: power.name)
def test_row_names_what_gives_and_what_holds_it(power: object) -> None:
    assert set(power.given_by) <= set(HostConfig.model_fields)  # type: ignore[attr-defined]
    module, _, path = power.held_at.partition(":")  # type: ignore[attr-defined]
    found: object = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    assert callable(found)


def test_page_of_the_operator_has_the_table() -> None:
    assert "\n".join(write_table()) in (ROOT / "engine_shim" / "SECURITY.md").read_text("utf-8")

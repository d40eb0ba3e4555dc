"""The table of powers in SECURITY.md: each key of a definition, and each built-in tool, has one or reaches nothing."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from agent_core.config import AgentConfig
from engine_shim.definition.invoke import SCHEMA as INVOKE
from engine_shim.definition.model import Definition
from engine_shim.host.config import HostConfig
from support.powers import AGENT_ONLY, NO_POWER, POWERS
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


def rows_of_page() -> dict[str, list[str]]:
    """By each power in the operator's table, the keys of a host's configuration that give it."""
    page = (ROOT / "engine_shim" / "SECURITY.md").read_text("utf-8")
    _, _, table = page.partition("| power | the host's own files | over HTTP | given by |\n|---|---|---|---|\n")
    cells = [line.strip("| ").split(" | ") for line in table.partition("\n\n")[0].splitlines()]
    return {name: re.findall("`([a-z_]+)`", given) for name, _own, _http, given in cells}


def test_each_key_has_a_row_or_reaches_nothing() -> None:
    rows = {key for each in POWERS.values() for key in each.keys.split()}
    harmless = {*NO_POWER.split(), *(f"agent_core/{key}" for key in AGENT_ONLY.split())}
    assert keys_of_definitions() - rows - harmless == set()
    assert rows & harmless == set()
    assert harmless - keys_of_definitions() == set()
    assert rows - keys_of_definitions() <= {"email/attachments"}


@pytest.mark.parametrize("power", POWERS)
def test_row_names_what_gives_and_what_holds_it(power: str) -> None:
    assert set(rows_of_page()[power]) <= set(HostConfig.model_fields)
    module, _, path = POWERS[power].held_at.partition(":")
    found: object = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    assert callable(found)


def test_page_of_the_operator_has_each_power() -> None:
    assert list(rows_of_page()) == list(POWERS)

"""A stack that runs out while a value is judged: the verdict is a fault, wherever it ran out."""

from typing import Any

import pytest

from utools.schema.config_schema import ConfigSchema


@pytest.mark.exhaustive
@pytest.mark.parametrize("schema", [{"not": {"$ref": "#"}}, {"if": {"$ref": "#"}}], ids=str)
def test_an_endless_schema_gives_a_fault_however_deep_the_caller_stands(schema: dict[str, Any]) -> None:
    endless = ConfigSchema(schema, foreign=True)

    def standing(depth: int) -> list[str]:
        return standing(depth - 1) if depth else [fault.message for fault in endless.faults({"a": 1})]

    verdicts = [standing(depth) for depth in range(40)]  # by turns in jsonschema's Python, and in its Rust
    assert [("without end" in message) for (message,) in verdicts] == [True] * 40

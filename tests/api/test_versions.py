"""The versions of a workflow: which of them is meant by its name alone."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine_shim import load_workflow
from engine_shim.definition import validate
from engine_shim.errors import DefinitionError
from engine_shim.service.workflows import WorkflowCatalog
from utools import default_registry


def check(path: Path) -> Any:
    return SimpleNamespace(definition=SimpleNamespace(**json.loads(path.read_text())))


@pytest.mark.parametrize(
    "versions",
    [
        ["2.0", "2.0-rc2", "2.0-rc1", "2.0-beta.1", "1.10", "1.9", "draft"],
        ["1.0.1", "1.0.0-hotfix", "1.0.0", "1.0.0rc1", "1.0.0.dev3"],
        ["2026-11-30-2", "2026-11-30", "2026-11-30-SNAPSHOT", "2026-9-1"],
    ],
)
def test_newest_version_is_none_that_comes_before_a_release(tmp_path: Path, versions: list[str]) -> None:
    for number, version in enumerate(sorted(versions)):
        (tmp_path / f"{number}.json").write_text(json.dumps({"id": "desk", "version": version, "nodes": []}))
    catalog: Any = WorkflowCatalog(tmp_path, check)
    assert list(catalog.list()["desk"]) == versions
    assert catalog.get("desk").definition.version == versions[0]


def test_a_copy_of_a_file_is_told_with_the_file_that_it_is_a_copy_of(tmp_path: Path) -> None:
    nodes = [{"id": "a", "tool": "echo", "config": {"text": "x"}}]
    for name in ("desk", "desk-old"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"id": "desk", "nodes": nodes}))
    catalog = WorkflowCatalog(tmp_path, lambda path: validate.check(load_workflow(path), default_registry()))
    with pytest.raises(DefinitionError, match=r"desk\.json: desk-old\.json is version '1' of 'desk' already; give one"):
        catalog.load()

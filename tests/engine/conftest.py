"""The command line in this process, in an empty directory of its own."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from support.command import Cli, Write, run_here


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory and the data directory, and no setting from outside; none from a `.env` stays."""
    with patch.dict(os.environ):
        for name in [name for name in os.environ if name.startswith(("AGENT_CORE_", "OPENAI_"))]:
            del os.environ[name]
        os.environ["XDG_DATA_HOME"] = str(tmp_path / "data")
        monkeypatch.chdir(tmp_path)
        yield tmp_path


@pytest.fixture
def write(home: Path) -> Write:
    """Writes a file into the working directory: a text as it is, anything else as JSON."""

    def write(name: str, content: Any) -> Path:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


@pytest.fixture
def cli(home: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs `agent-core WORD…`."""

    return lambda *words: run_here(words, capsys)

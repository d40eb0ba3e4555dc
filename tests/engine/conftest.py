"""The command line in this process, in an empty directory of its own."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from engine_shim.cli.main import main
from support.command import Cli, Ran, Write


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory and the data directory, and no setting from outside."""
    for name in [name for name in os.environ if name.startswith(("AGENT_CORE_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


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

    def run(*words: str) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(words)
        out, err = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Ran(code, out, err)

    return run

"""What the fixtures of these tests give: a command that was run, and a file that was written."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine_shim.cli.main import main


@dataclass(frozen=True)
class Ran:
    """What a command left: its exit code, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout, which must be one JSON document."""
        return json.loads(self.out)


def run_here(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> Ran:
    """What `agent-core WORD…` leaves, run in this process."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return Ran(ended.value.code, out, err)


Cli = Callable[..., Ran]
Write = Callable[..., Path]

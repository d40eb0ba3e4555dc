"""What the fixtures of these tests give: a command that was run, and a file that was written."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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


Cli = Callable[..., Ran]
Write = Callable[..., Path]

"""Starting the modules of `support` as programs, each in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
PATIENCE_S = 300.0


def command(module: str, *words: str) -> list[str]:
    """The words that start `support.MODULE`; its environment has to be that of `environment()`."""
    return [sys.executable, "-m", f"support.{module}", *words]


def environment() -> dict[str, str]:
    """This process's environment, in which a program finds `support` from any directory."""
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


def json_lines(module: str, *words: str) -> list[Any]:
    """What a program prints, a JSON value a line; it has to succeed."""
    done = subprocess.run(
        command(module, *words), env=environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]

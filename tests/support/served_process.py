"""A host that `agent-core serve` serves, as a process of its own."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple["subprocess.Popen[str]", httpx2.Client]]:
    """`agent-core serve` on a free port, until the end of the block; the client waits for nobody else."""
    words = ["serve", "--port", "0", "--store", str(folder / "runs.db"), *options]
    program = "import sys; from engine_shim.cli.main import main; main(sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-c", program, *words], cwd=folder, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            told = ""
            while not (found := re.search(r"at (http://\S+)", told)):
                line = process.stderr.readline()
                assert line, told
                told += line
            with httpx2.Client(base_url=found[1], timeout=30) as client:
                yield process, client
        finally:
            process.kill()

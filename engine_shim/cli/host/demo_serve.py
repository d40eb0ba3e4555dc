"""The command demo --serve: the demo's workflow in a directory of its own, and the page on it."""

import sys
from importlib.resources import files
from pathlib import Path
from typing import Final

import typer

from engine_shim.cli.host.init import read_files, write_files
from engine_shim.cli.output import Options
from engine_shim.cli.serving.serve import serve_host

DIRECTORY: Final = "agent-core-demo"
HOST: Final = """# The host of the demo: its workflows lie beside this file, and file tools see what is in trips/.
root: .
workflows: .
model_files: [replies.json]  # what a draft over HTTP may name as its model
"""


def serve_demo(port: int, model: str | None) -> int:
    """Write the demo's files, unless they are there from an earlier time, and serve them to this machine.

    BadParameter for a directory of that name that is something else.
    """
    directory = Path(DIRECTORY).absolute()
    config = directory / "agent-core.yaml"
    if not directory.exists():
        memory = f"AGENT_CORE_CONTEXT_DB={directory / 'context.db'}\n"
        own = {config.name: HOST.encode(), ".env": memory.encode()}
        write_files(directory, {**dict(read_files(files("engine_shim.cli.host") / "demo_files")), **own})
        (directory / ".env").chmod(0o600)
    elif not config.exists():
        raise typer.BadParameter(f"--serve: {directory} is there, and is no demo; run this in another directory")
    sys.stderr.write(f"agent-core: the demo's files are in {directory}\n")
    return serve_host("127.0.0.1", port, (), (), model, Options(directory / "runs.db", config))

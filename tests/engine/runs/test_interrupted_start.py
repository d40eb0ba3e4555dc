"""Ctrl-C while the command line still loads: an exit code, and no traceback."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys

class Interrupt:
    at = sys.argv.pop(1)

    def find_spec(self, name, path=None, target=None):
        if name == self.at:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from engine_shim.cli.main import main
main()
"""


@pytest.mark.sampled
@pytest.mark.parametrize(
    "module",
    [
        "engine_shim.cli.terminal",
        "engine_shim.cli.app",
        "typer",
        "engine_shim.cli.host.describe",
        "engine_shim.definition.validate",
    ],
)
def test_ctrl_c_while_modules_load_is_no_traceback(module: str) -> None:
    command = [sys.executable, "-c", PROGRAM, module, "validate", __file__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "Traceback" in done.stderr) == (130, False), done.stderr

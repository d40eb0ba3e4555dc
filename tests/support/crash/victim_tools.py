"""Tools for a host whose process dies or is interrupted in the middle; what they did is in a file no kill takes back.

A tool leaves `acting` when it begins. With a file `die` it then kills its process; with a file `hang` it waits until
it is interrupted.
"""

import os
import signal
import time
from pathlib import Path
from typing import Any

from utools import Tool

ANY = {"type": "object", "additionalProperties": True}


def _tool(code: str, effect: Any) -> Tool:
    def act(args: dict[str, Any], context: Any) -> Any:
        with Path("ledger").open("a") as ledger:
            ledger.write(f"{code}\n")
        if Path("die").exists():
            Path("die").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        Path("acting").touch()
        while Path("hang").exists():
            time.sleep(0.01)
        return f"{code} done"

    return Tool(code, f"Does {code}.", ANY, act, effect=effect)


tools = [_tool("look", "read"), _tool("pay", "write")]

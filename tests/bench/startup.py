"""What starting costs: CPU time of short commands, as a multiple of a small program with the same libraries.

    python tests/bench/startup.py [--rounds 15]

The commands take turns, so that what else the machine does weighs on all of them alike; the figures are medians.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median

LIBRARIES = "import typer, rich"
"""What the commands are compared with."""
MODEL = "from pydantic import BaseModel\nclass Model(BaseModel):\n    name: str\n    count: int = 0\nModel(name='x')"
"""What `import agent_core` is compared with."""
COMPLETION = {"_AGENT_CORE_COMPLETE": "complete_bash", "COMP_WORDS": "agent-core re", "COMP_CWORD": "1"}


def cpu_seconds(command: list[str], environment: Mapping[str, str]) -> float:
    """The CPU time of one process, user and system."""
    silent = subprocess.DEVNULL
    process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=silent, stderr=silent)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return usage.ru_utime + usage.ru_stime


def programs(store: str) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Each program: its arguments, and what it needs in the environment."""
    script = str(Path(sys.executable).with_name("agent-core"))
    return {
        LIBRARIES: (["-c", LIBRARIES], {}),
        "agent-core --help": ([script, "--help"], {}),
        "agent-core runs": ([script, "runs", "--store", store], {}),
        "completion": ([script], COMPLETION),
        "one pydantic model": (["-c", MODEL], {}),
        "import agent_core": (["-c", "import agent_core"], {}),
        "from agent_core import run_agent": (["-c", "from agent_core import run_agent"], {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        known = programs(str(Path(folder, "runs.db")))
        taken: dict[str, list[float]] = {name: [] for name in known}
        for _ in range(rounds + 1):  # the first round fills the caches
            for name, (arguments, environment) in known.items():
                taken[name].append(cpu_seconds([sys.executable, *arguments], environment))
    figures = {name: median(each[1:]) for name, each in taken.items()}
    base = LIBRARIES
    for name, seconds in figures.items():
        base = name if name in (LIBRARIES, "one pydantic model") else base
        print(f"{name:<34}{seconds * 1000:>7.0f} ms{seconds / figures[base]:>7.2f} x {base}")


if __name__ == "__main__":
    main()

"""What starting costs: CPU time of short commands, as a multiple of a small program with the same libraries.

    python tests/bench/startup.py [--rounds 15]

The commands take turns, so that what else the machine does weighs on all of them alike; the figures are medians, and
the best beside them. Each has its bytecode in a folder of this program's own, which a round before the first one fills:
an installed program has its bytecode too, whatever PYTHONDONTWRITEBYTECODE says here. `serve` is measured up to its
first answer.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree
from statistics import median
from typing import NamedTuple

LIBRARIES = "import typer, rich"
"""What the commands are compared with."""
MODEL = "from pydantic import BaseModel\nclass Model(BaseModel):\n    name: str\n    count: int = 0\nModel(name='x')"
"""What `import agent_core` is compared with."""
COMPLETION = {"_AGENT_CORE_COMPLETE": "complete_bash", "COMP_WORDS": "agent-core re", "COMP_CWORD": "1"}
DEMO = Path(__file__).parents[2] / "engine_shim/cli/host/demo_files"
MESSAGE = "message=What did the trip to Lisbon cost in all, and which item was the dearest?"
REPLY = '[{"type": "final", "answer": "Hello."}]'
SCRIPT = str(Path(sys.executable).with_name("agent-core"))
SERVED = "agent-core serve, to its first answer"
MOST_WAITED_S = 60.0


class Program(NamedTuple):
    """Arguments of Python, what the environment has beside, and what stdin says."""

    arguments: list[str]
    environment: Mapping[str, str] = {}
    stdin: bytes = b""


@contextmanager
def project() -> Iterator[tuple[Path, dict[str, str]]]:
    """The demo's workflow in a folder of its own, with a store that holds one run of it, and an environment."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "demo")
        copytree(DEMO, home)
        (home / "hello.json").write_text(REPLY, "utf-8")
        own = {
            "PYTHONPYCACHEPREFIX": str(Path(folder, "bytecode")),
            "AGENT_CORE_STORE": str(Path(folder, "runs.db")),
            "AGENT_CORE_CONTEXT_DB": str(Path(folder, "context.db")),
        }
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | own
        yield home, environment


def cpu_seconds(program: Program, home: Path, environment: Mapping[str, str]) -> float:
    """The CPU time of one process, user and system."""
    process = _start(program, home, environment, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    process.stdin.write(program.stdin)
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{program.arguments} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def cpu_seconds_to_answer(home: Path, environment: Mapping[str, str]) -> float:
    """The CPU time of a server until it has answered /health."""
    process = _start(Program([SCRIPT, "serve", "--port", "0"]), home, environment, stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        greeting = process.stderr.readline().decode()
        found = re.search(r"http://\S+", greeting)
        if found is None:
            raise RuntimeError(f"the server said {greeting!r}")
        urllib.request.urlopen(f"{found[0]}/health", timeout=MOST_WAITED_S).read()
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    finally:
        process.kill()
        process.communicate()


def _start(program: Program, home: Path, environment: Mapping[str, str], *, stderr: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, *program.arguments],
        cwd=home,
        env={**environment, **program.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
    )


def programs() -> dict[str, Program]:
    """Each program by what it is called."""

    def command(*words: str, stdin: bytes = b"") -> Program:
        return Program([SCRIPT, *words], {}, stdin)

    return {
        LIBRARIES: Program(["-c", LIBRARIES]),
        "agent-core --help": command("--help"),
        "completion": Program([SCRIPT], COMPLETION),
        "agent-core run": command("run", "workflow.yaml", "--input", MESSAGE),
        "agent-core validate": command("validate", "workflow.yaml"),
        "agent-core chat, one turn": command("chat", "--model", "scripted:hello.json", stdin=b"hello\n"),
        "agent-core runs": command("runs"),
        "agent-core show": command("show", "recorded"),
        "agent-core replay": command("replay", "recorded"),
        "one pydantic model": Program(["-c", MODEL]),
        "import agent_core": Program(["-c", "import agent_core"]),
        "from agent_core import run_agent": Program(["-c", "from agent_core import run_agent"]),
    }


def record_run(home: Path, environment: Mapping[str, str]) -> str:
    """Run the demo's workflow once, and return the id of the run."""
    words = [sys.executable, SCRIPT, "run", "workflow.yaml", "--input", MESSAGE, "--json"]
    done = subprocess.run(words, cwd=home, env=environment, capture_output=True, text=True, check=True)
    found = re.search(r'"run_id": "([^"]+)"', done.stdout)
    assert found is not None, done.stdout
    return found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with project() as (home, environment):
        run_id, known = record_run(home, environment), programs()
        taken: dict[str, list[float]] = {name: [] for name in (*known, SERVED)}
        for _ in range(rounds + 1):  # the first round fills the caches
            for name, program in known.items():
                named = [run_id if word == "recorded" else word for word in program.arguments]
                taken[name].append(cpu_seconds(program._replace(arguments=named), home, environment))
            taken[SERVED].append(cpu_seconds_to_answer(home, environment))
    base = LIBRARIES
    for name, seconds in taken.items():
        base = name if name in (LIBRARIES, "one pydantic model") else LIBRARIES if name == SERVED else base
        usual, best = median(seconds[1:]), min(seconds[1:])
        times = usual / median(taken[base][1:])
        print(f"{name:<40}{usual * 1000:>7.0f} ms  best {best * 1000:>5.0f} ms{times:>7.2f} x {base}")


if __name__ == "__main__":
    main()

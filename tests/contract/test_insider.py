"""An insider on a real store, with real runs: what is found is what the tables of `INSIDER.md` say."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.evidence.key_files import public_file, replace_text
from agent_core.evidence.variables import KEY_VARIABLE
from engine_shim.store.open import open_store
from support.command import Cli, run_here
from support.insider.attack import Insider
from support.insider.audit import AUDITS, keys_of_insider
from support.insider.manipulations import MANIPULATIONS
from support.insider.world import World, make_world, put_back
from support.optional import needs

pytestmark = needs("cryptography")
PAGE = Path(__file__).parents[2] / "engine_shim/INSIDER.md"
COLUMNS = list(AUDITS)
CELLS = {"found": True, "not found": False}
POSTGRES = pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))
KINDS = pytest.mark.parametrize("world", ["sqlite", POSTGRES], indirect=True, scope="module")


def rows_of_page() -> dict[str, list[str]]:
    """The cells of each row, by what the insider does."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text("utf-8").splitlines()]
    return {name: cells for name, *cells in rows if len(cells) == len(COLUMNS) and set(cells) <= set(CELLS)}


ROWS = rows_of_page()
CASES = [
    ("sqlite", line, column, CELLS[cell])
    for line, cells in ROWS.items()
    for column, cell in zip(COLUMNS, cells, strict=True)
]
BROADEST = "a second host"
"""The column whose audit asks the most of a database."""
SERVED = [
    pytest.param("postgres", *case, marks=pytest.mark.xdist_group("postgres")) for _, *case in CASES if BROADEST in case
]


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("insider")
    addresses: list[str | Path] = [folder / "runs.db", folder / "other.db"]
    if request.param == "postgres":
        addresses = [request.getfixturevalue("postgres").make_database() for _ in addresses]
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AGENT_CORE_")]:
            patch.delenv(name)
        patch.chdir(folder)
        patch.setenv(KEY_VARIABLE, str(folder / "host/desk.key"))
        stores = [open_store(address) for address in addresses]
        yield make_world(*stores, folder, str(addresses[0]))
        for store in stores:
            store.close()


@pytest.fixture
def untouched(world: World) -> Iterator[World]:
    trusted = public_file(world.key)
    text = trusted.read_text()
    yield world
    replace_text(trusted, text)
    put_back(world.store, world.today)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs `agent-core WORD…` in this process."""
    return lambda *words: run_here(words, capsys)


def test_each_row_of_the_page_is_done_by_an_insider_and_each_cell_says_found_or_not() -> None:
    assert list(ROWS) == list(MANIPULATIONS)
    head = f"| what the insider does | {' | '.join(COLUMNS)} |"
    lines = PAGE.read_text("utf-8").splitlines()
    tables = [number for number, line in enumerate(lines) if line == head]
    assert len(lines) > 0 < len(tables)
    assert sum(line.startswith("|") for line in lines[tables[0] :]) == len(ROWS) + 2 * len(tables)


@pytest.mark.exhaustive
@KINDS
@pytest.mark.parametrize("column", COLUMNS)
def test_a_store_that_nobody_touched_is_sound(untouched: World, cli: Cli, column: str) -> None:
    with keys_of_insider(untouched, column):
        assert not AUDITS[column](untouched, cli)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("world", "line", "column", "says"), [*CASES, *SERVED], indirect=["world"], scope="module")
def test_what_an_insider_does_is_found_as_the_page_says(
    untouched: World, cli: Cli, line: str, column: str, says: bool
) -> None:
    with keys_of_insider(untouched, column) as keys:
        MANIPULATIONS[line](Insider(untouched, keys))
        assert AUDITS[column](untouched, cli) == says


@pytest.mark.exhaustive
@KINDS
def test_a_copy_of_the_store_is_sound_and_its_ledger_names_the_last_seal_of_each_run(
    untouched: World, cli: Cli, tmp_path: Path
) -> None:
    copy, excerpt = str(tmp_path / "copy.db"), str(tmp_path / "excerpt.json")
    assert cli("store", "copy", untouched.address, copy).code == 0
    assert cli("verify", "--all", "--store", copy).code == 0
    assert cli("export", "decided", "--records", "flow:0", "--store", copy, "--to", excerpt).code == 0
    assert cli("verify", excerpt, "--key", str(untouched.away("desk.key.pub"))).code == 0

"""What all tests share: the event loop, how many examples of a property are tried, and real servers."""

import gc
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from pathlib import Path

import pytest

from agent_core.models.providers import shared_client
from agent_core.statuses import MOVES, RunStatus
from engine_shim.store.index import RunIndex
from support.examples import load_profile
from support.postgres_server import Postgres, real_postgres
from support.redis_server import RealServer, real_server

load_profile()
EVERY = 8
"""Of the cases of a test with the mark `sampled`, the fast tier runs one in so many."""


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "A file of tests: those that pass are added to it, and those that it names are left out."
    parser.addoption("--passed", type=Path, help=about)


class Passed:
    """Adds the tests that pass to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            with self._path.open("a") as file:
                file.write(f"{report.nodeid}\n")


def pytest_configure(config: pytest.Config) -> None:
    if (path := config.getoption("--passed")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Passed(path.absolute()))


def leave_out_passed(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a file says has passed; properties stay, of which more examples may be tried now."""
    path: Path | None = config.getoption("--passed")
    known = set(path.read_text().splitlines()) if path and path.exists() else set()
    for item in list(items):
        if item.nodeid in known and not getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            items.remove(item)
            config.hook.pytest_deselected(items=[item])


def leave_out_vendors(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what asks a vendor, unless `-m` names the marker `vendor`."""
    if "vendor" in config.option.markexpr:
        return
    asking = [item for item in items if item.get_closest_marker("vendor")]
    config.hook.pytest_deselected(items=asking)
    items[:] = [item for item in items if item not in asking]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is long and the other cases of a sampled test are exhaustive; what costs money runs only if asked for."""
    leave_out_vendors(config, items)
    cases = Counter[str]()
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker("exhaustive")
        if item.get_closest_marker("sampled"):
            test = item.nodeid.partition("[")[0]
            if cases[test] % EVERY:
                item.add_marker("exhaustive")
            cases[test] += 1
    leave_out_passed(config, items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector away from modules and tests, which stay: with thousands of them it takes long."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def watch_moves() -> Iterator[None]:
    """Whatever a test does, by whichever driver, the status of a run only makes the moves of the table."""
    set_status = RunIndex.set_status

    def watch(index: RunIndex, run: str, status: RunStatus, records: int = 0, *, unless: Collection[str] = ()) -> None:
        entry = index.store.entry(run)
        if entry is not None and entry.status not in (status, *unless):
            allowed: Sequence[str] = MOVES[index.status(run)]
            assert status in allowed, f"run {run} moves from {entry.status} to {status}"
        set_status(index, run, status, records, unless=unless)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunIndex, "set_status", watch)
        yield


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def no_shared_clients() -> Iterator[None]:
    """Another test's endpoint may have had the same port."""
    yield
    shared_client.cache_clear()


@pytest.fixture(scope="session")
def running_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def redis_server(running_redis: RealServer) -> RealServer:
    """A real server with nothing in it."""
    running_redis.client.flushall()
    return running_redis


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    pytest.importorskip("psycopg_pool", reason="needs psycopg with its pool (extra `postgres`)")
    with real_postgres() as server:
        yield server


@pytest.fixture
def new_database(postgres: Postgres) -> Iterator[Callable[[], str]]:
    """Makes one more empty database, which goes with the test, and gives its URL."""
    with postgres.passing_databases() as make:
        yield make

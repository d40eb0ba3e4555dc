"""What all tests share: the event loop, and how many examples of a property are tried."""

from collections import Counter
from collections.abc import Iterator

import pytest

from agent_core.models.providers import shared_client
from support.examples import load_profile

load_profile()
EVERY = 8
"""Of the cases of a test with the mark `sampled`, the fast tier runs one in so many."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The other cases are exhaustive."""
    cases = Counter[str]()
    for item in items:
        if item.get_closest_marker("sampled"):
            test = item.nodeid.partition("[")[0]
            if cases[test] % EVERY:
                item.add_marker("exhaustive")
            cases[test] += 1


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def no_shared_clients() -> Iterator[None]:
    """Another test's endpoint may have had the same port."""
    yield
    shared_client.cache_clear()

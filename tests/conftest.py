"""What all tests share: the event loop, and how many examples of a property are tried."""

from collections.abc import Iterator

import pytest

from agent_core.models.providers import shared_client
from support.examples import load_profile

load_profile()


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def no_shared_clients() -> Iterator[None]:
    """Another test's endpoint may have had the same port."""
    yield
    shared_client.cache_clear()

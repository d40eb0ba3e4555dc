"""What all tests share: the event loop, and how many examples of a property are tried."""

import pytest

from support.examples import load_profile

load_profile()


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio."""
    return "asyncio"

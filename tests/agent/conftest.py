"""What the tests of models share."""

from collections.abc import Iterator

import pytest

from support import asking


@pytest.fixture(params=["aiohttp", "httpx2"])
def each_transport(request: pytest.FixtureRequest) -> Iterator[str]:
    """A test that uses this runs once with each transport."""
    asking.transport = request.param
    yield request.param
    asking.transport = None

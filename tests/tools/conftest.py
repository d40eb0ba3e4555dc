"""What the tests of tools share."""

from collections.abc import Iterator

import pytest

from support.redis_server import RealServer, real_server


@pytest.fixture(scope="session")
def running_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def redis_server(running_redis: RealServer) -> RealServer:
    """A real server with nothing in it."""
    running_redis.client.flushall()
    return running_redis

"""One Airflow for all tests that want a real one."""

from collections.abc import Iterator

import pytest

from support.airflow_server import Airflow, real_airflow


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    with real_airflow(tmp_path_factory.mktemp("airflow")) as server:
        yield server

"""A served host, one for the tests of a file; what has to be apart has a folder of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.optional import needs

pytestmark = needs("fastapi", extra="web")


@pytest.fixture(scope="module", autouse=True)
def data_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data directory, and no setting from outside."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("data")
        patch.setenv("XDG_DATA_HOME", str(home))
        for name in ("AGENT_CORE_STORE", "AGENT_CORE_CONTEXT_DB", "AGENT_CORE_JOURNAL_KEYS", "REDIS_URL"):
            patch.delenv(name, raising=False)
        yield home

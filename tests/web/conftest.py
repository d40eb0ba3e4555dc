"""What the tests of the page share: one browser for all of them."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.browser import open_browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with open_browser() as found:
        yield found

"""What the tests of the page share: a browser for each file of them."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.browser import open_browser


@pytest.fixture(scope="module")  # while it is there, its event loop runs in this thread, where others could not
def browser() -> Iterator[Any]:
    with open_browser() as found:
        yield found

"""What checkers infer of the public names is what comes: each function of `public_uses` does what it says."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from typed import public_uses

USES = {
    name: each
    for name, each in vars(public_uses).items()
    if inspect.isfunction(each) and each.__module__ == public_uses.__name__ and "_" in name
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
async def test_it_is_so(use: Callable[..., Any], tmp_path: Path) -> None:
    done = use(tmp_path) if inspect.signature(use).parameters else use()
    if inspect.isawaitable(done):
        await done

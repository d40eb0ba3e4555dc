"""Programs that are far ahead of the event loop that starts them, as on a busy machine."""

import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest


def put_ahead(patch: pytest.MonkeyPatch, has_come: Callable[[], object], then: Callable[[], object]) -> None:
    """Let each program come as far as that before its start goes on; `then` is called in between."""

    class Ahead(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            while not has_come():
                time.sleep(0.01)
            then()

    patch.setattr(subprocess, "Popen", Ahead)

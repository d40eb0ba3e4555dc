"""A flow of Prefect, and what serves it: it waits for a file, or fails, as its parameters say."""

import os
import time
from pathlib import Path

from prefect import flow

FOLDER = Path(os.environ["FLOW_FOLDER"])


@flow
def load(until: str = "", fails: bool = False) -> None:
    if fails:
        raise RuntimeError("no disk")
    while until and not (FOLDER / until).exists():
        time.sleep(0.2)


if __name__ == "__main__":
    load.serve(name="test")

"""What encryption adds to a step: CPU of a run in an encrypted store, held against the same one in a plain store.

    python tests/bench/encrypted.py [ROUNDS [STEPS]]

The two take turns, in pairs: the median of the ratios says what a pair's noise does not. Rotation is timed as well.
"""

import json
import os
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median

from agent_core import run_agent_sync
from agent_core.encryption.operator_key import make_operator_file
from agent_core.models import ScriptedModel
from engine_shim.store.content_keys import wrap
from engine_shim.store.erase import renew_keys
from engine_shim.store.open import open_store
from engine_shim.store.run_store import DatabaseRunStore
from utools.defaults import default_registry

ROUNDS, STEPS, KEYS = 40, 60, 20_000
REGISTRY = default_registry()


def drive(store: DatabaseRunStore, run: str, steps: int) -> float:
    """Seconds of CPU of a run with so many calls of a tool."""
    calls = [{"type": "action", "tool": "calculator", "args": {"expression": f"2+{n}"}} for n in range(steps)]
    model = ScriptedModel([*map(json.dumps, calls), '{"type":"final","answer":"done"}'])
    limits = {"max_steps": steps + 1, "max_tool_calls": steps}
    config = {"model": "scripted", **limits, "allowed_tools": ["calculator"], "prompt": "Add. " * 100}
    begin = time.process_time()
    run_agent_sync(config, registry=REGISTRY, model=model, journal=store.journal, run_id=run)
    return time.process_time() - begin


def time_rotation(store: DatabaseRunStore) -> float:
    """Microseconds of CPU that the replacement of the keys takes for each run that stays."""
    with store.database.writing() as db:
        n, key = store.contents.read_store_key(db)
        rows = [(f"k{each}", n, wrap(key, f"k{each}", os.urandom(32))) for each in range(KEYS)]
        db.executemany("INSERT INTO content_keys VALUES (?, ?, ?)", rows)
    begin = time.process_time()
    renew_keys(store)
    return 1e6 * (time.process_time() - begin) / KEYS


def main(rounds: int = ROUNDS, steps: int = STEPS) -> None:
    with tempfile.TemporaryDirectory() as folder:
        make_operator_file(Path(folder, "key"))
        os.environ["AGENT_CORE_ENCRYPTION_KEY"] = os.path.join(folder, "key")
        with (
            closing(open_store(Path(folder, "plain.db"))) as plain,
            closing(open_store(Path(folder, "encrypted.db"))) as encrypted,
        ):
            encrypted.contents.want()
            for store in (plain, encrypted):
                drive(store, "first", steps)
            pairs = [(drive(plain, f"r{n}", steps), drive(encrypted, f"r{n}", steps)) for n in range(rounds)]
            ratio = median(two / one for one, two in pairs)
            each = [1e6 * median(times) / steps for times in zip(*pairs, strict=True)]
            print(f"a step, encrypted : plain   {ratio:.3f} ({each[1]:.0f} : {each[0]:.0f} us of CPU)")
            size = "SELECT sum(length(data)) FROM rows WHERE run = 'r0'"
            sizes = [store.database.rows("rows", size)[0][0] for store in (plain, encrypted)]
            print(f"bytes of records            {sizes[1] / sizes[0]:.2f}")
            print(f"rotation                    {time_rotation(encrypted):.0f} us of CPU for each run")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

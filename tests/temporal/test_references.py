"""References to what a workflow asks for: another process finds it on the tape, as far as that goes."""

import asyncio

from engine_shim.runs.temporal.references import find_on_tape
from support.gated import Host, node


def test_each_act_of_branches_within_branches_is_found_though_the_one_before_has_no_answer() -> None:
    host = Host()
    each = {"id": "each", "tool": "work", "foreach": ["x", "y"], "config": {"name": "{{item}}"}}

    async def play() -> None:
        await host.start([each, node("other")])

    asyncio.run(play())
    asked = {path: rows[:1] for path, rows in host.store.journal.load("r").items()}
    for path in ("flow/each.1/0.0", "flow/each.1/0.1", "flow/other.1"):
        slot = find_on_tape("r", asked, ("act", path, 1, asked[path][0].hash.hex()), str).slot
        assert (slot.path, slot.n) == (path, 1)

"""The recorder, driven by hand: what it asks a driver for, and what it takes from the tape."""

import pytest

from agent_core.effects import Cancelled
from agent_core.journal.operations import Append, Begin, Spec
from agent_core.journal.record import by_path
from agent_core.journal.recorder import record_run
from agent_core.journal.strand import Run
from agent_core.loop.react import react
from support.by_hand import AT

LOOPS = {"agent": react}


def test_a_run_that_was_cancelled_before_it_began_stays_so() -> None:
    operations = record_run(Run("r", {}, LOOPS), "flow/agent_core.1", Spec("agent_core", {}))
    assert isinstance(next(operations), Begin)
    append = operations.send(Cancelled(AT))
    assert isinstance(append, Append)
    assert [row.record() for row in append.rows] == [{"kind": "cancelled", "at": AT}]
    again = record_run(Run("r", by_path(append.rows), LOOPS), "flow/agent_core.1", Spec("agent_core", {}))
    with pytest.raises(StopIteration) as ended:
        next(again)
    assert ended.value.value == Cancelled(AT)

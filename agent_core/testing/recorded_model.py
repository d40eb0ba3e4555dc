"""recorded(): the models' replies of a recorded run, in place of a model."""

from typing import Any

from typing_extensions import TypeIs

from agent_core.journal.record import Tape
from agent_core.journal.source import Source, load_run
from agent_core.models.recorded import RecordedModel


def recorded(source: Source | Tape, run_id: str | None = None) -> RecordedModel:
    """Return a model that gives the replies of a recorded run, question by question, so that a test drives other code.

    `source` is a journal, the path of its file (JSONL or SQLite), the rows of a run, or its tape; `run_id` says which
    run, where there are several. Raises JournalError when there is no such run, or when it cannot be read.
    """
    if is_tape(source):
        return RecordedModel(source, name=f"replay:{run_id or 'tape'}")
    run, tape = load_run(source, run_id)
    return RecordedModel(tape, name=f"replay:{run}")


def is_tape(source: Any) -> TypeIs[Tape]:
    """Return whether a run is given by its rows, strand by strand."""
    return isinstance(source, dict)

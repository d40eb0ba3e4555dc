"""What a program gives to `run_agent` and to an engine, in the forms that it naturally has."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Final

from agent_core.errors import DefinitionError
from agent_core.journal.jsonl import JsonlJournal
from agent_core.journal.memory import MemoryJournal
from agent_core.journal.sqlite import SqliteJournal
from agent_core.journal.store import Journal
from agent_core.models.client import ModelClient
from agent_core.models.providers import create_model
from utools.databases.store_address import is_url, read_address

SQLITE: Final = (".db", ".sqlite", ".sqlite3")

SCRIPTS: Final = (
    "a list of replies, or a function of the messages that returns one, goes into ScriptedModel of agent_core.models"
)


@contextmanager
def open_journal(journal: Journal | str | os.PathLike[str] | None) -> Iterator[Journal]:
    """The journal itself; that of a file, or at the URL of a database, closed afterwards; without one, a journal in
    memory."""
    if journal is None:
        yield MemoryJournal()
    elif not isinstance(journal, str | os.PathLike):
        if not hasattr(journal, "append"):
            message = "must be a Journal, the path of its file, or the URL of a PostgreSQL database"
            raise DefinitionError(message, where="journal", value=journal)
        yield journal
    else:
        with closing(journal_at(journal)) as opened:
            yield opened


def open_lasting(journal: Journal | str | os.PathLike[str]) -> AbstractContextManager[Journal]:
    """`open_journal` for what other processes go on with. DefinitionError for None: nothing would be kept."""
    if journal is None:
        raise DefinitionError(
            "must be a place that outlives this process; nothing would be kept (got None)", where="journal"
        )
    return open_journal(journal)


def journal_at(address: str | os.PathLike[str]) -> Journal:
    """Return the journal in a file, or at the URL of a PostgreSQL database. DefinitionError for what names neither, and
    where the extra for PostgreSQL is not installed."""
    place = read_address(os.fspath(address), where="journal")
    if not is_url(place):
        return _journal_in(Path(place))
    try:
        from agent_core.journal.postgres import PostgresJournal
    except ImportError:
        message = "a journal in PostgreSQL needs the extra postgres: pip install 'agent-core[postgres]'"
        raise DefinitionError(message, where="journal") from None
    return PostgresJournal(str(place))


def _journal_in(file: Path) -> JsonlJournal | SqliteJournal:
    """Return the journal in a file, JSONL or SQLite by the end of its name."""
    if file.suffix.lower() == ".jsonl":
        return JsonlJournal(file)
    if file.suffix.lower() in SQLITE:
        return SqliteJournal(file)
    message = f"must end in .jsonl, or for SQLite in {', '.join(SQLITE)}"
    raise DefinitionError(message, where="journal", value=str(file))


def model_of(model: ModelClient | str | None) -> ModelClient | None:
    """Return the client for a model's name, `provider:name`. DefinitionError for what is neither name nor client."""
    if isinstance(model, str):
        return create_model(model)
    if isinstance(model, type):
        raise DefinitionError(f"is a class; give an instance: {model.__name__}(…)", where="model", value=model.__name__)
    if model is None or hasattr(model, "complete"):
        return model
    message = "must be a model's name as text, such as openai:gpt-4o-mini, or a ModelClient; " + SCRIPTS
    raise DefinitionError(message, where="model", value=getattr(model, "__name__", model))

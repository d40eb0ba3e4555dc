"""RunIndex: what a store holds of its runs, and the status of each, by its journal and by the index."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from agent_core.errors import Damaged
from agent_core.journal.chain import check_chains, is_finished
from agent_core.journal.control import due_of, last_control, untaken_signals, waiting_calls
from agent_core.journal.intact import check_intact, check_signer
from agent_core.journal.reader import read_run
from agent_core.journal.record import Tape
from agent_core.journal.signature import split_own_strands
from agent_core.outputs import Json, WaitingCall
from agent_core.run.secrets import verifying_keys
from agent_core.statuses import ENDED, SEALED, EndedStatus, ListedStatus, RunStatus, read_ended_status
from engine_shim.definition.model import ROOT
from engine_shim.errors import DefinitionError, EngineError, RunNotFound
from engine_shim.store.entries import RunEntry
from engine_shim.store.run_store import RunStore


@dataclass(frozen=True, slots=True)
class RunIndex:
    """The runs of a store. RunNotFound for a run that it does not hold."""

    store: RunStore

    def load(self, run: str) -> tuple[Tape, Path]:
        """Return a run's tape, verified, and the directory that its relative paths start from."""
        tape, entry = self.store.journal.load(run), self.store.entry(run)
        return _check_tape(run, tape, entry), Path(entry.base if entry else "")

    def load_to_go_on(self, run: str) -> Tape:
        """Return what `load_intact` gives, once this process may add records; DefinitionError where it cannot seal
        them."""
        tape = self.load_intact(run)
        check_signer(tape, verifying_keys())
        return tape

    def load_intact(self, run: str) -> Tape:
        """Return a run's tape, once it may be driven on: `Damaged` for any fault, and for records that are missing."""
        entry = self.store.entry(run)  # before the tape: its driver may end the run in between
        tape = _check_tape(run, self.store.journal.load(run), entry)
        assert entry is not None
        keys = verifying_keys()
        keys = keys if keys is not None and keys.signer else None
        identity = None if keys is None else self.store.journal.identity
        check_intact(run, tape, keys, identity, at_rest=entry.status in SEALED)
        end = len(tape[ROOT])
        if entry.status in ENDED and not is_finished(tape, ROOT):
            raise Damaged(ROOT, end, f"the run had ended as {entry.status}, and its end is missing")
        count = sum(map(len, split_own_strands(tape)[0].values()))
        if count < entry.records:
            raise Damaged(ROOT, end, f"the run had {entry.records} records when it stopped, and {count} are left")
        return tape

    def has_started(self, run: str) -> bool:
        """Return whether the store holds the beginning of this run."""
        self.store.entry(run)  # first: its error says what to do about a store that cannot be used
        return ROOT in self.store.journal.load(run)

    def has_begun(self, run: str, body: Json) -> bool:
        """Return whether the store holds this run already. DefinitionError when it began with something else."""
        tape = check_chains(run, self.store.journal.load(run))
        if tape and ROOT not in tape:
            raise DefinitionError(f"run {run!r} is not a workflow's; choose another id", where="run_id")
        if ROOT not in tape:
            return False
        recorded = read_run(tape, ROOT)
        for key, known in (("definition", recorded.definition), ("external", recorded.external)):
            if known != body[key]:
                raise DefinitionError(f"run {run!r} began with another {key}; choose another id", where="run_id")
        return True

    def final_status(self, run: str) -> EndedStatus | None:
        """Return how a run ended, by its journal, which knows before the index does; None while it has not."""
        tape, _ = self.load(run)
        return read_ended_status(tape[ROOT][-1].record()) if is_finished(tape, ROOT) else None

    def last_control(self, run: str) -> str | None:
        """Return the last request about a run: pause, resume or cancel; None when there was none."""
        return last_control(self.store.journal.load(run))

    def status(self, run: str) -> RunStatus:
        """Return a run's status, by the index."""
        entry = self.store.entry(run)
        if entry is None:
            raise RunNotFound(run)
        match entry.status:
            case "unfinished" | "unreadable" as unknown:
                hint = "use the version that wrote it"
                raise EngineError(f"the index of the store has run {run!r} as {unknown}: {hint}")
            case status:
                return status

    def note_let_go(self, run: str) -> None:
        """Note that a driver is due for a run that was let go of in its midst: it was running, or it waited by the
        index, and late answers have ended the last doubt."""
        tape, _ = self.load(run)
        status = self.status(run)
        is_due = status == "running" or (status == "waiting" and not waiting_calls(tape))
        if is_due and not is_finished(tape, ROOT):
            self.set_status(run, "pending")

    def settle(self, run: str, status: RunStatus, records: int, waiting: Iterable[WaitingCall]) -> None:
        """Set the status of a run that was driven until now; of one that waits, when its earliest wait ends."""
        if status == "waiting":
            self.store.save_due(run, due_of(waiting))
        self.set_status(run, status, records)

    def has_event(self, run: str) -> bool:
        """Return whether a time or a signal has come for which a run waits."""
        tape = self.store.journal.load(run)
        waits = [each for each in waiting_calls(tape) if each["reason"] == "awaiting_event"]
        sent = {each.name for each in untaken_signals(tape)} if waits else set[str]()
        now = self.store.clock.write_now()
        return any(each.get("signal") in sent or each.get("until", "~") <= now for each in waits)

    def set_status(
        self, run: str, status: RunStatus, records: int = 0, *, unless: Collection[ListedStatus] = ()
    ) -> None:
        """Set a run's status in the index, unless it has one of some others, and how many records it has at least."""
        entry = self.store.entry(run)
        if entry is not None and entry.status not in unless and (entry.status != status or entry.records < records):
            self.store.save(replace(entry, status=status, records=max(records, entry.records)))


def _check_tape(run: str, tape: Tape, entry: RunEntry | None) -> Tape:
    """Return a tape whose chains hold, of a run that the store lists. RunNotFound where it has none."""
    if entry is None or not (tape or entry.records):
        raise RunNotFound(run)
    if ROOT not in tape:
        raise Damaged(ROOT, 0, "it is missing")
    return check_chains(run, tape)

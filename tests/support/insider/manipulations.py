"""What an insider does to a store: each manipulation by the line of the table that names it."""

import json
from collections.abc import Callable, Mapping
from typing import Final

from agent_core.evidence.key_files import KeyFiles, public_file, replace_text
from agent_core.evidence.public_keys import PublicKey, PublicKeys
from agent_core.journal.path import SEAL
from agent_core.journal.record import Record
from agent_core.journal.signature import Keys
from support.insider.attack import AT, Insider, edited
from support.insider.world import new_key, put_back

Manipulate = Callable[[Insider], None]
MANIPULATIONS: Final[dict[str, Manipulate]] = {}


def named(line: str) -> Callable[[Manipulate], Manipulate]:
    def keep(manipulate: Manipulate) -> Manipulate:
        MANIPULATIONS[line] = manipulate
        return manipulate

    return keep


def lie(record: Record) -> Record:
    return {**record, "output": "twelve hundred lamps"}


def by_dora(record: Record) -> Record:
    return {**record, "by": "dora"} if "by" in record else record


# ── records of a run ─────────────────────────────────────────────────────────────────────────────


@named("the answer of a tool is changed")
def change(i: Insider) -> None:
    i.change("told", "answered", lie, anew=False)


@named("the same, and its run is hashed anew")
def change_and_hash(i: Insider) -> None:
    i.change("told", "answered", lie)


@named("the same, covered up")
def change_and_write(i: Insider) -> None:
    i.change("told", "answered", lie)
    i.write_ledger()


@named("another person is put down as who approved a call, covered up")
def change_decision(i: Insider) -> None:
    i.change("decided", "resolved", by_dora)
    i.write_ledger()


@named("another person is put down as who cancelled a run, and the run is sealed anew")
def change_control(i: Insider) -> None:
    i.change("stopped", "resolved", by_dora)


@named("another person is put down as who cancelled a run, covered up")
def change_control_and_write(i: Insider) -> None:
    change_control(i)
    i.write_ledger()


@named("a record is put in between, covered up")
def insert(i: Insider) -> None:
    found = i.read("told")
    asked, answered = found["flow/a.1"]
    i.write("told", {**found, "flow/a.1": [asked, {**answered, "success": False}, asked, answered]})
    i.write_ledger()


@named("a record is taken out, covered up")
def take_out(i: Insider) -> None:
    found = i.read("decided")
    i.write("decided", {**found, "flow/b.1": found["flow/b.1"][2:]})
    i.write_ledger()


@named("a record is moved to another strand, covered up")
def move(i: Insider) -> None:
    found = i.read("told")
    (asked, answered), others = found["flow/a.1"], found["flow/b.1"]
    i.write("told", {**found, "flow/a.1": [asked], "flow/b.1": [*others, answered]})
    i.write_ledger()


@named("all times of a run are shifted, covered up")
def shift(i: Insider) -> None:
    i.write("told", edited(i.read("told"), lambda each: {**each, "at": AT} if "at" in each else each))
    i.write_ledger(edit=lambda entry: {**entry, "at": AT} if entry.get("run") == "told" else entry)


@named("the journals of two runs are exchanged, covered up")
def exchange(i: Insider) -> None:
    told, other = i.read("told"), i.read("other")
    i.write("told", other)
    i.write("other", told)
    i.write_ledger()


@named("a run gets another id, covered up")
def rename(i: Insider) -> None:
    i.write("new", i.read("told"), seal=i.keys is not None)
    if i.keys is None:
        i.put("new", {**i.store.journal.load("new"), SEAL: i.store.journal.load("told")[SEAL]})
    i.list_as("new", "told")
    i.remove("told")
    i.rename_in_ledger("told", "new")


@named("a run that ended is listed as running, changed, without its seal, covered up")
def reopen(i: Insider) -> None:
    i.change("told", "answered", lie)
    i.sql("DELETE FROM rows WHERE run = ? AND strand = ?", "told", SEAL)
    i.sql("UPDATE workflow_runs SET status = 'running' WHERE run = ?", "told")
    i.write_ledger()


# ── runs that are gone ───────────────────────────────────────────────────────────────────────────


@named("a run that ended is deleted")
def delete(i: Insider) -> None:
    i.remove("told")


@named("a run that ended is deleted, covered up")
def delete_and_write(i: Insider) -> None:
    i.remove("told")
    i.write_ledger(without=["told"])


@named("a run that ended since the checkpoint was kept is deleted, covered up")
def delete_late(i: Insider) -> None:
    i.remove("late")
    i.write_ledger(without=["late"])


@named("a run that ended since anybody looked is deleted, covered up")
def delete_newest(i: Insider) -> None:
    i.remove("newest")
    i.write_ledger(without=["newest"])


@named("a run that waits is deleted, covered up")
def delete_waiting(i: Insider) -> None:
    i.remove("waits")
    i.write_ledger(without=["waits"])


@named("a paused run is cut back to where it waited before, with its seal of then, covered up")
def cut_back(i: Insider) -> None:
    tape = i.store.journal.load("paused")
    then = {"flow": tape["flow"], "flow/a.1": tape["flow/a.1"][:1], SEAL: tape[SEAL][:1]}
    i.put("paused", then)
    i.sql("UPDATE workflow_runs SET status = 'waiting' WHERE run = ?", "paused")
    i.write_ledger()


@named("a run that has not settled is deleted")
def delete_running(i: Insider) -> None:
    i.remove("running")


@named("a run that has not settled is changed, and hashed anew")
def change_running(i: Insider) -> None:
    i.change("running", "asked", lambda record: {**record, "args": {"text": "twelve hundred lamps"}})


# ── the ledger, and the store as a whole ─────────────────────────────────────────────────────────


@named("the last entry of the ledger is cut off")
def cut_ledger(i: Insider) -> None:
    i.sql("DELETE FROM ledger WHERE seq = (SELECT max(seq) FROM ledger)")


@named("an entry is taken out of the middle of the ledger")
def cut_middle(i: Insider) -> None:
    i.sql("DELETE FROM ledger WHERE seq = 3")


@named("the ledger begins anew, after all runs")
def begin_anew(i: Insider) -> None:
    last = i.store.database.rows("rows", "SELECT max(seq) FROM rows")[0][0]
    began = json.loads(bytes(i.store.database.rows("ledger", "SELECT data FROM ledger WHERE seq = 1")[0][0]))
    i.put_ledger([("", {**began, "rows": last, "at": AT})])


@named("the hashes of the log's tree are changed")
def change_tree(i: Insider) -> None:
    i.sql("UPDATE ledger_nodes SET hash = ?", bytes(32))


@named("the store is put back to a backup of yesterday")
def roll_back(i: Insider) -> None:
    put_back(i.store, i.world.yesterday)


@named("the store is put back to a backup from after the checkpoint")
def roll_back_a_little(i: Insider) -> None:
    put_back(i.store, i.world.since)


@named("the store is given to another tenant, covered up")
def give_away(i: Insider) -> None:
    i.sql("UPDATE store_identity SET tenant = 'globex'")
    move_house(i, tenant="globex")


@named("the store is cloned for another tenant, under another id, covered up")
def clone(i: Insider) -> None:
    i.sql("UPDATE store_identity SET tenant = 'globex', store = ?", "0" * 32)
    move_house(i, tenant="globex", store="0" * 32)


def move_house(i: Insider, **home: str) -> None:
    if i.keys is not None:
        for entry in i.store.entries():
            if i.store.journal.load(entry.run).get(SEAL):
                i.write(entry.run, i.read(entry.run))
    i.write_ledger(edit=lambda entry: {**entry, **home})


# ── runs that never were ─────────────────────────────────────────────────────────────────────────


def invent(i: Insider, keys: Keys | None) -> None:
    i.write("new", edited(i.read("told"), lambda each: lie(each) if each["kind"] == "answered" else each))
    if keys is not None:
        tape = {path: rows for path, rows in i.store.journal.load("new").items() if path != SEAL}
        seal = i.seal("new", tape, keys)
        assert seal is not None
        i.put("new", {**tape, SEAL: [seal]})
    i.list_as("new", "told")
    i.enter("new", "told")


@named("a run is invented, and entered in the ledger")
def invent_run(i: Insider) -> None:
    invent(i, i.keys)


@named("the same, sealed with a key that is put into the host's file of public ones")
def invent_sealed(i: Insider) -> None:
    invent(i, Keys(keyring=own_key(i)))


@named("the same, sealed with a key of the host that is revoked")
def invent_revoked(i: Insider) -> None:
    path = i.world.folder / "host/old.key"
    trust(i, PublicKeys.read(public_file(path).read_text(), "").keys)
    invent(i, Keys(keyring=KeyFiles(str(path))))


@named("an approval is written into a run that waits")
def approve(i: Insider) -> None:
    found = i.read("waits")
    approval = {"kind": "resolved", "decision": "approve", "by": "cara", "at": AT}
    i.write("waits", {**found, "flow/a.1": [*found["flow/a.1"], approval]})


@named("a run of another tenant is put in, and entered in the ledger")
def put_in(i: Insider) -> None:
    tape = i.world.other.journal.load("theirs")
    i.put("theirs", tape)
    if i.keys is not None:
        i.write("theirs", {path: [row.record() for row in rows] for path, rows in tape.items() if path != SEAL})
    i.list_as("theirs", "told")
    i.enter("theirs", "told")


# ── seals and keys ───────────────────────────────────────────────────────────────────────────────


@named("the seal of a run is taken away")
def unseal(i: Insider) -> None:
    i.sql("DELETE FROM rows WHERE run = ? AND strand = ?", "told", SEAL)


@named("the seal of a run is replaced by an HMAC of a secret of the insider's, covered up")
def seal_by_code(i: Insider) -> None:
    reseal(i, Keys({"k1": "a-secret-of-the-insider"}))


@named("a run is changed, and the host's public key replaced by the insider's, covered up")
def seal_by_own(i: Insider) -> None:
    i.change("told", "answered", lie)
    reseal(i, Keys(keyring=own_key(i, instead=True)))


def reseal(i: Insider, keys: Keys) -> None:
    tape = {path: rows for path, rows in i.store.journal.load("told").items() if path != SEAL}
    seal = i.seal("told", tape, keys)
    assert seal is not None
    i.put("told", {**tape, SEAL: [seal]})
    i.write_ledger()


def own_key(i: Insider, *, instead: bool = False) -> KeyFiles:
    """A key of the insider's, which the machine of the store trusts from now on."""
    path = i.world.folder / "host/mine.key"
    path.unlink(missing_ok=True)
    made = new_key(path)
    trust(i, {made.kid: made}, instead=instead)
    return KeyFiles(str(path))


def trust(i: Insider, keys: Mapping[str, PublicKey], *, instead: bool = False) -> None:
    """Put keys into the host's file of public ones, or in the place of them."""
    trusted = public_file(i.world.key)
    known = {} if instead else PublicKeys.read(trusted.read_text(), "").keys
    replace_text(trusted, PublicKeys({**known, **keys}).write())


# ── what stands beside the journal ───────────────────────────────────────────────────────────────


@named("a run is listed with another status")
def change_status(i: Insider) -> None:
    i.sql("UPDATE workflow_runs SET status = 'failed' WHERE run = 'told'")


@named("a run is listed with another status, covered up")
def change_status_and_write(i: Insider) -> None:
    change_status(i)
    i.write_ledger(edit=lambda entry: {**entry, "status": "failed"} if entry.get("run") == "told" else entry)


@named("a run is listed as handed in by somebody else")
def change_submitter(i: Insider) -> None:
    i.sql("UPDATE run_submissions SET submitter = 'dora' WHERE run = 'told'")


@named("a run is listed as handed in by somebody else, covered up")
def change_submitter_and_write(i: Insider) -> None:
    change_submitter(i)
    i.write_ledger(edit=lambda entry: {**entry, "submitted_by": "dora"} if entry.get("run") == "told" else entry)


@named("a run is listed with another beginning, workflow or conversation")
def change_list(i: Insider) -> None:
    i.sql("UPDATE workflow_runs SET started_at = ?, workflow = 'g' WHERE run = 'told'", AT)
    i.sql("INSERT INTO run_turns (run, agent, conversation) VALUES ('told', 'desk', 'c1')")

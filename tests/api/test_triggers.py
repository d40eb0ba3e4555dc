"""Triggers: runs that the clock starts, and signed webhooks; each time and each id once, whoever serves."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx2
import pytest
from standardwebhooks import Webhook

from engine_shim.errors import DefinitionError
from engine_shim.host.config import read_host_config
from engine_shim.service.tenants import Tenant, open_tenant
from engine_shim.service.trigger_definition import read_trigger
from engine_shim.service.triggers import Triggers
from engine_shim.telemetry.telemetry import Telemetry
from support.served_host import Served, served, write_host

SECRET, OF_ACME = "a secret of the host", "a secret of acme"


def write_trigger(folder: Path, name: str, **keys: Any) -> Path:
    path = folder / "triggers" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(keys))
    return path


class Clocked:
    """Servers of one host, each with its triggers, at a time that the test sets."""

    def __init__(self, folder: Path, servers: int = 1) -> None:
        self.folder, self.now = folder, datetime(2026, 3, 2, 5, 0, tzinfo=UTC)
        self.outcomes: Mapping[str, int] = {}
        if not (folder / "agent-core.yaml").exists():
            write_host(folder)
        config = read_host_config(folder / "agent-core.yaml")
        store = folder / "runs.db"
        self.tenants: list[Tenant] = [open_tenant(config, store, None, Telemetry()) for _ in range(servers)]

    def triggers(self) -> list[Triggers]:
        made = [
            Triggers(self.folder / "triggers", each.store.database, each.workflows, each.runs, clock=lambda: self.now)
            for each in self.tenants
        ]
        for each in made:
            each.load()
        self.outcomes = made[0].outcomes
        return made

    def runs(self) -> list[str]:
        entries = self.tenants[0].store.entries()
        return [f"{entry.workflow} {entry.status}" for entry in reversed(entries)]


def play(office: Clocked, *, times: list[datetime], after: Any = None) -> None:
    """Look for what is due at each of the times, and let the runs end."""

    async def look() -> None:
        triggers = office.triggers()
        for time in times:
            office.now = time
            for each in triggers:
                await each.start_due()
            if after is not None:
                after(office)
            for tenant in office.tenants:
                for entry in tenant.store.entries():
                    await tenant.runs.wait(entry.run, 0.5 if entry.workflow == "wait" else 10)
        for tenant in office.tenants:
            await tenant.close(0)

    asyncio.run(look())


def at(hour: int, minute: int = 0, *, day: int = 2) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC)


def test_run_begins_when_its_time_has_come_and_once(tmp_path: Path) -> None:
    write_trigger(tmp_path, "sum", workflow="count", cron="0 6 * * *", inputs={"sum": "1 + 1"})
    office = Clocked(tmp_path, servers=2)
    play(office, times=[at(5), at(5, 59), at(6), at(6), at(6, 1), at(23), at(6, day=3)])
    assert office.runs() == ["count completed", "count completed"]
    assert office.tenants[0].store.submitter(office.tenants[0].store.entries()[0].run) == "trigger sum"


def test_run_begins_at_its_time_and_not_in_the_last_second_before(tmp_path: Path) -> None:
    write_trigger(tmp_path, "sum", workflow="count", cron="0 6 * * *", inputs={"sum": "1 + 1"})
    begun: list[int] = []
    office = Clocked(tmp_path)
    moment = timedelta(microseconds=1)
    times = [at(5), at(6) - timedelta(seconds=1), at(6) - moment, at(6), at(6) + moment]
    play(office, times=times, after=lambda office: begun.append(len(office.runs())))
    assert begun == [0, 0, 0, 1, 1]


def test_restart_starts_nothing_twice_and_makes_up_for_what_was_missed_once(tmp_path: Path) -> None:
    write_trigger(tmp_path, "sum", workflow="count", cron="0 * * * *", inputs={"sum": "1 + 1"})
    play(Clocked(tmp_path), times=[at(5, 30), at(6)])
    play(Clocked(tmp_path), times=[at(6), at(6, 1)])
    office = Clocked(tmp_path)
    play(office, times=[at(13, 30), at(13, 31)])  # nobody served from seven to one
    assert office.runs() == ["count completed"] * 2


@pytest.mark.parametrize("keys", [{"cron": "0 8 * * *"}, {"cron": "0 6 * * *", "timezone": "America/New_York"}])
def test_times_that_change_while_no_server_runs_make_up_for_none_of_before(tmp_path: Path, keys: Any) -> None:
    write_trigger(tmp_path, "sum", workflow="count", cron="0 6 * * *", inputs={"sum": "1 + 1"})
    play(Clocked(tmp_path), times=[at(5, 30)])
    write_trigger(tmp_path, "sum", workflow="count", inputs={"sum": "1 + 1"}, **keys)
    office, begun = Clocked(tmp_path), list[int]()
    after = lambda office: begun.append(len(office.runs()))  # noqa: E731
    play(office, times=[at(13, 30), at(12, day=3)], after=after)
    assert begun == [0, 1]


def test_times_that_a_release_of_before_did_not_note_are_noted_at_the_first_look(tmp_path: Path) -> None:
    write_trigger(tmp_path, "sum", workflow="count", cron="0 6 * * *", inputs={"sum": "1 + 1"})
    office = Clocked(tmp_path)
    database = office.tenants[0].store.database
    play(office, times=[at(5)])
    with database.writing() as db:
        db.execute("DELETE FROM trigger_crons", ())
    play(Clocked(tmp_path), times=[at(5, 30)])  # nothing is due, and the line is noted all the same
    write_trigger(tmp_path, "sum", workflow="count", cron="0 8 * * *", inputs={"sum": "1 + 1"})
    office = Clocked(tmp_path)
    play(office, times=[at(13, 30)])
    assert office.runs() == []


def test_what_was_missed_falls_out_where_the_trigger_says_so(tmp_path: Path) -> None:
    write_trigger(tmp_path, "sum", workflow="count", cron="0 * * * *", inputs={"sum": "1 + 1"}, missed="skip")
    play(Clocked(tmp_path), times=[at(5, 30)])
    office = Clocked(tmp_path)
    play(office, times=[at(13, 30), at(14)])
    assert office.runs() == ["count completed"]


@pytest.mark.parametrize(("overlap", "runs"), [(False, 1), (True, 3)])
def test_run_falls_out_while_the_last_one_waits_unless_they_may_overlap(
    tmp_path: Path, overlap: bool, runs: int
) -> None:
    keys = {"workflow": "buy", "cron": "0 * * * *", "inputs": {"article": "A-1"}, "overlap": overlap}
    write_trigger(tmp_path, "buy", **keys)
    office = Clocked(tmp_path)
    play(office, times=[at(5, 30), at(6), at(7), at(8)])
    assert office.runs() == ["buy waiting"] * runs
    assert office.outcomes == {"started": runs, "skipped": 3 - runs, "failed": 0}


def test_clock_that_ran_ahead_and_was_set_back_silences_no_trigger_and_starts_nothing_twice(tmp_path: Path) -> None:
    write_trigger(tmp_path, "sum", workflow="count", cron="0 6 * * *", inputs={"sum": "1 + 1"})
    office = Clocked(tmp_path)
    play(office, times=[at(5), at(6), datetime(2027, 3, 2, 6, tzinfo=UTC), at(6, 30), at(6, 31)])
    assert office.runs() == ["count completed"] * 2
    play(Clocked(tmp_path), times=[at(6, day=3)])
    assert office.runs() == ["count completed"] * 3


def test_times_follow_the_zone_over_the_change_of_the_clocks(tmp_path: Path) -> None:
    path = write_trigger(tmp_path, "t", workflow="count", cron="30 2 * * *", timezone="Europe/Berlin")
    trigger, berlin = read_trigger(path), ZoneInfo("Europe/Berlin")
    eve = datetime(2026, 3, 28, 12, tzinfo=berlin)
    spring = trigger.next_time(eve)
    assert spring.astimezone(UTC) == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)  # there is no half past two
    assert trigger.next_time(spring).astimezone(UTC) == datetime(2026, 3, 30, 0, 30, tzinfo=UTC)
    autumn = trigger.next_time(datetime(2026, 10, 24, 12, tzinfo=berlin))
    after = trigger.next_time(autumn)
    assert after.astimezone(UTC) - autumn.astimezone(UTC) == timedelta(hours=25)  # here it is twice, and counts once


def test_changed_file_is_taken_up_and_a_fault_in_it_is_not(tmp_path: Path) -> None:
    path = write_trigger(tmp_path, "t", workflow="count", cron="0 6 * * *", inputs={"sum": "1 + 1"})
    (triggers,) = Clocked(tmp_path).triggers()
    assert [each["name"] for each in asyncio.run(triggers.describe())] == ["t"]
    path.write_text('{"workflow": "nothing", "cron": "0 6 * * *"}')
    with pytest.raises(DefinitionError):
        triggers.load()
    assert [each["workflow"] for each in asyncio.run(triggers.describe())] == ["count"]
    path.unlink()
    triggers.load()
    assert asyncio.run(triggers.describe()) == []


def test_times_that_were_changed_count_from_then_on(tmp_path: Path) -> None:
    """An edit of an afternoon to a time of that morning starts nothing at once."""
    office, begun = Clocked(tmp_path), list[int]()

    async def look() -> None:
        (triggers,) = office.triggers()
        for time, hour in ((at(5), 6), (at(6), 6), (at(13), 12), (at(12, day=3), 12)):
            write_trigger(tmp_path, "sum", workflow="count", cron=f"0 {hour} * * *", inputs={"sum": "1 + 1"})
            triggers.load()
            office.now = time
            await triggers.start_due()
            await triggers.start_due()
            for entry in office.tenants[0].store.entries():
                await office.tenants[0].runs.wait(entry.run, 10)
            begun.append(len(office.runs()))
        await office.tenants[0].close(0)

    asyncio.run(look())
    assert begun == [0, 1, 1, 2]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"workflow": "count"}, "cron or webhook"),
        ({"workflow": "count", "cron": "0 6 * * *", "webhook": {"secret_env": "X"}}, "cron or webhook"),
        ({"workflow": "count", "cron": "0 25 * * *"}, "no cron line"),
        ({"workflow": "count", "cron": "* * * * * *"}, "minute, hour"),
        ({"workflow": "count", "cron": "0 6 * * *", "timezone": "Mars"}, "time zone"),
        ({"workflow": "count", "cron": "0 6 * * *", "timezone": "../etc/passwd"}, "time zone"),
        ({"workflow": "count", "cron": "0 6 * * *", "inputs": {"sun": "x"}}, "did you mean sum"),
        ({"workflow": "count", "cron": "0 6 * * *", "inputs": {"sum": "{{external.x}}"}}, "not known here"),
        ({"workflow": "nothing", "cron": "0 6 * * *"}, "nothing"),
        ({"workflow": "count", "webhook": {"secret_env": "NOT_SET"}}, "NOT_SET"),
        ({"workflow": "count", "webhook": {"secret_env": "HOOK"}, "inputs": {"sum": "{{env.X}}"}}, "not known here"),
        ({"workflow": "count", "crom": "0 6 * * *"}, "cron"),
        ([], "object"),
    ],
)
def test_fault_of_a_file_is_told_with_its_place(
    tmp_path: Path, keys: Any, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", SECRET)
    path = tmp_path / "triggers" / "bad.json"
    path.parent.mkdir()
    path.write_text(json.dumps(keys))
    with pytest.raises(DefinitionError, match=told) as error:
        Clocked(tmp_path)
    assert "bad.json" in str(error.value)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("host")
    write_trigger(folder, "plain", workflow="count", webhook={"secret_env": "HOOK"})
    filled = {"sum": "{{external.order.a}} + {{external.order.b}}"}
    write_trigger(folder, "filled", workflow="count", webhook={"secret_env": "HOOK"}, inputs=filled)
    write_trigger(folder, "daily", workflow="count", cron="0 6 * * *", inputs={"sum": "1 + 1"})
    write_trigger(folder, "acme/own", workflow="count", webhook={"secret_env": "ACME_HOOK"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOOK", SECRET)
        patch.setenv("ACME_HOOK", OF_ACME)
        with served(folder, is_open=False, tenants={"acme": {}}) as found:
            yield found


def call(host: Served, name: str, body: Any, identity: str, *, secret: str = SECRET, age: int = 0) -> httpx2.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    now = datetime.now(UTC) - timedelta(seconds=age)
    headers = {
        "webhook-id": identity,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret.encode()).sign(identity, now, content.decode()),
        "content-type": "application/json",
    }
    return host.client.post(name, content=content, headers=headers)


def test_signed_webhook_starts_a_run_and_the_same_id_no_other(host: Served) -> None:
    first = call(host, "/triggers/plain", {"sum": "2 + 2"}, "m1")
    assert first.status_code == 202
    run = first.json()["run_id"]
    assert call(host, "/triggers/plain", {"sum": "2 + 2"}, "m1").json()["run_id"] == run
    assert call(host, "/triggers/plain", {"sum": "2 + 2"}, "m2").json()["run_id"] != run
    assert call(host, "/triggers/plain", {"sum": "3 + 3"}, "m1").status_code == 422
    header = host.issue("reader", "read")
    found = host.client.get(f"/runs/{run}", headers=header).json()
    assert found["submitted_by"] == "trigger plain"


def test_key_of_a_caller_takes_no_run_of_a_trigger_away(host: Served) -> None:
    header = host.issue("runner", "run") | {"Idempotency-Key": "trigger/plain/k1"}
    taken = host.client.post("/workflows/count/runs", json={"external": {"sum": "3 + 3"}}, headers=header).json()
    answer = call(host, "/triggers/plain", {"sum": "1 + 1"}, "k1")
    assert answer.status_code == 202
    assert answer.json()["run_id"] != taken["run_id"]


def test_inputs_are_filled_from_the_body(host: Served) -> None:
    run = call(host, "/triggers/filled", {"order": {"a": 3, "b": 4}}, "f1").json()["run_id"]
    header = host.issue("reader", "read")
    while (found := host.client.get(f"/runs/{run}", headers=header).json())["status"] in ("pending", "running"):
        pass
    assert found["outputs"]["calculator"] == 7


@pytest.mark.parametrize(
    ("name", "body", "more", "status"),
    [
        ("/triggers/plain", {"sum": "1 + 1"}, {"secret": "another"}, 401),
        ("/triggers/plain", {"sum": "1 + 1"}, {"age": 3600}, 401),
        ("/triggers/nobody", {"sum": "1 + 1"}, {}, 401),
        ("/triggers/daily", {"sum": "1 + 1"}, {}, 401),
        ("/triggers/own", {"sum": "1 + 1"}, {}, 401),
        ("/tenants/acme/triggers/plain", {"sum": "1 + 1"}, {}, 401),
        ("/tenants/acme/triggers/own", {"sum": "1 + 1"}, {}, 401),
        ("/tenants/nobody/triggers/own", {"sum": "1 + 1"}, {}, 401),
        ("/triggers/plain", b"{", {}, 422),
        ("/triggers/plain", [], {}, 422),
        ("/triggers/plain", {"sun": "1"}, {}, 422),
        ("/triggers/filled", {"order": 3}, {}, 422),
        ("/triggers/filled", {"order": {"a": 10**20, "b": 4}}, {}, 422),  # else it would be rounded
        ("/triggers/filled", b'{"order": {"a": 3, "b": 4, "b": 5}}', {}, 422),
    ],
)
def test_webhook_that_is_not_as_it_should_be_starts_nothing(
    host: Served, name: str, body: Any, more: dict[str, Any], status: int
) -> None:
    before = len(host.store.entries())
    answer = call(host, name, body, f"bad {name} {body} {more}"[:55].strip(), **more)
    assert answer.status_code == status, answer.text
    assert len(host.store.entries()) == before


def test_webhook_of_a_tenant_starts_a_run_of_that_tenant(host: Served) -> None:
    run = call(host, "/tenants/acme/triggers/own", {"sum": "1 + 1"}, "a1", secret=OF_ACME).json()["run_id"]
    own, other = host.issue("acme", "read", tenant="acme"), host.issue("host", "read")
    assert host.client.get(f"/runs/{run}", headers=own).status_code == 200
    assert host.client.get(f"/runs/{run}", headers=other).status_code == 404


@pytest.mark.parametrize("age", [0, 3600])
def test_names_of_triggers_and_tenants_cannot_be_tried(host: Served, age: int) -> None:
    paths = ["triggers/plain", "triggers/nobody", "triggers/daily"]
    paths += [f"tenants/{tenant}/triggers/{name}" for tenant in ("acme", "nobody") for name in ("own", "nothing")]
    told = {call(host, f"/{path}", {}, "x", secret="wrong", age=age).text for path in paths}
    assert len(told) == 1


def test_two_tenants_do_not_sign_with_one_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, variable in (("own", "HOOK"), ("acme/own", "SAME")):
        monkeypatch.setenv(variable, SECRET)
        write_trigger(tmp_path, name, workflow="count", webhook={"secret_env": variable})
    told = r"own\.json of the host has the same secret"
    with pytest.raises(DefinitionError, match=told) as error, served(tmp_path, tenants={"acme": {}}):
        pass
    assert "acme/own.json" in str(error.value)
    assert SECRET not in str(error.value)


def test_triggers_are_listed_with_their_next_time(host: Served) -> None:
    listed = host.client.get("/triggers", headers=host.issue("reader", "read")).json()["triggers"]
    by_name = {each["name"]: each for each in listed}
    assert set(by_name) == {"plain", "filled", "daily"}
    assert by_name["daily"]["next_at"].endswith("T06:00:00+00:00")
    assert by_name["plain"]["next_at"] is None


CHANGES = [
    ("Europe/Berlin", datetime(2026, 10, 24, 20, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 1, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 10, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 3, 28, 20, tzinfo=UTC)),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("zone", "start"), CHANGES, ids=str)
@pytest.mark.parametrize("cron", ["*/5 * * * *", "30 * * * *", "30 2 * * *", "15 1 * * *", "45 1 * * SUN"])
def test_the_next_time_is_later_and_the_last_one_is_not_where_the_clock_changes(
    tmp_path: Path, cron: str, zone: str, start: datetime
) -> None:
    trigger = read_trigger(write_trigger(tmp_path, "t", workflow="w", cron=cron, timezone=zone))
    last = trigger.last_time(start).astimezone(UTC)
    for minute in range(0, 10 * 60, 5):
        now = start + timedelta(minutes=minute)
        assert trigger.next_time(now).astimezone(UTC) > now
        assert last <= trigger.last_time(now).astimezone(UTC) <= now
        last = trigger.last_time(now).astimezone(UTC)


def test_a_daily_time_in_the_repeated_hour_is_once_and_is_not_forgotten(tmp_path: Path) -> None:
    trigger = read_trigger(write_trigger(tmp_path, "t", workflow="w", cron="30 2 * * *", timezone="Europe/Berlin"))
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    for minute in range(150):
        now = first + timedelta(minutes=minute)
        assert trigger.last_time(now).astimezone(UTC) == first
        assert trigger.next_time(now).astimezone(UTC) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)

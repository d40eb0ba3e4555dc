"""Hosts on one PostgreSQL: each may be asked of every run, and when one is gone, the others go on with its runs."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("psycopg_pool", reason="needs psycopg with its pool (extra `postgres`)")

from agent_core.journal.record import Tape
from engine_shim.store.leases import TTL
from engine_shim.store.run_store_postgres import PostgresRunStore
from support.cluster import RESTS, STEPS, Cluster, Host, Model, assert_proven, cluster, counting_model, settle_doubts
from support.optional import needs
from support.postgres_server import Postgres
from support.served_host import read_events

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("postgres"), needs("fastapi")]
PROMISED_S = 15.0
"""How long after a host was killed its runs have ended elsewhere."""
RUNS = 6


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with counting_model() as made:
        yield made


@pytest.fixture(scope="module")
def hosts(postgres: Postgres, model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("hosts")
    with cluster(folder, postgres.make_database(), model=model, base_urls={model.url: "OPENAI_API_KEY"}) as made:
        yield made


@pytest.fixture(scope="module")
def pair(hosts: Cluster) -> tuple[Host, Host]:
    """Two hosts that live as long as the cluster."""
    started = [hosts.start(), hosts.start()]
    one, other = (hosts.await_host(*each) for each in started)
    return one, other


# ── a host that is gone ──────────────────────────────────────────────────────────────────────────


def read_tapes(hosts: Cluster, runs: list[str]) -> list[Tape]:
    with closing(PostgresRunStore(hosts.store)) as store:
        return [store.journal.load(run) for run in runs]


def find_answered(tapes: list[Tape], tool: str) -> set[str]:
    """The names of a tool's calls whose answers are recorded."""
    asked: dict[tuple[int, str], str] = {}
    found = set()
    for run, tape in enumerate(tapes):
        for record, path in ((row.record(), row.path) for rows in tape.values() for row in rows):
            if record["kind"] == "asked" and record.get("tool") == tool:
                asked[run, path] = record["args"]["name"]
            elif record["kind"] == "answered" and (run, path) in asked:
                found.add(asked[run, path])
    return found


MACHINES = [
    pytest.param(None, id="on one machine", marks=pytest.mark.long),
    pytest.param("another", id="on two machines"),
]


@pytest.mark.parametrize("machine", MACHINES)
def test_runs_of_a_killed_host_end_at_another_one_and_nothing_is_done_twice(
    hosts: Cluster, model: Model, pair: tuple[Host, Host], machine: str | None
) -> None:
    (second, third), first, tag = pair, hosts.serve(machine=machine), f"killed-{machine}"
    names = [f"{tag}-{n}" for n in range(RUNS)]
    runs = [
        (second if n == 0 else first).submit("errand", wait=False, name=name, steps=STEPS)["run_id"]
        for n, name in enumerate(names)
    ]
    held = first.submit("ship", wait=False, name=f"{tag}-held", until="never")["run_id"]
    read = first.submit("look", wait=False, name=f"{tag}-read", until=f"{tag}-read")["run_id"]
    hosts.await_begun("ship", f"{tag}-held", f"{tag}-2-0")
    hosts.await_begun("look", f"{tag}-read")
    before = find_answered(read_tapes(hosts, runs), "look")
    first.kill()
    until = time.monotonic() + PROMISED_S
    hosts.allow(f"{tag}-read")
    for run in (*runs, held, read):
        second.await_status(run, *RESTS, seconds=until - time.monotonic())

    waiting = third.await_status(held, *RESTS)  # which may have looked once more whether it has to go on
    assert [(each["tool"], each["reason"]) for each in waiting["waiting"]] == [("ship", "in_doubt")], waiting
    assert second.client.get(f"/runs/{read}").json()["outputs"]["said"] == f"{tag}-read"
    for run in runs:
        assert settle_doubts(third, run)["status"] == "completed"
        assert_proven(second, run)
    looked = Counter(name for name, _ in hosts.begun("look"))
    assert before
    assert {looked[name] for name in before} == {1}, "what was answered is asked again"
    shipped = Counter(name for name, _ in hosts.begun("ship") if name.startswith(tag))
    assert set(shipped.values()) == {1}, shipped
    asked = Counter(question for question in model.asked if question.startswith(tag))
    assert len(asked) == 2 * RUNS
    assert asked[f"{tag}-2 ask"] == 1


def test_host_that_stood_still_past_its_lease_gives_its_runs_up(hosts: Cluster, pair: tuple[Host, Host]) -> None:
    (second, _), first = pair, hosts.serve()
    run = first.submit("errand", wait=False, name="slept", steps=list(range(40)))["run_id"]
    held = first.submit("ship", wait=False, name="slept-held", until="slept-held")["run_id"]
    hosts.await_begun("ship", "slept-1", "slept-held")
    first.stop()
    second.await_status(held, "waiting", seconds=TTL + PROMISED_S)
    second.await_status(run, "waiting", seconds=PROMISED_S)
    first.go_on()
    first.await_log(f"run {run}: another driver has taken it over")
    assert settle_doubts(second, run)["status"] == "completed"
    assert_proven(second, run)
    hosts.allow("slept-held")
    assert second.await_status(held, "completed")["outputs"] == {"ship": "slept-held", "said": "slept-held"}
    shipped = Counter(name for name, _ in hosts.begun("ship") if name.startswith("slept"))
    assert set(shipped.values()) == {1}, shipped
    assert first.client.get(f"/runs/{run}").json()["status"] == "completed"
    assert first.end() == 0


# ── every host is asked of every run ─────────────────────────────────────────────────────────────


def test_events_are_followed_and_gone_on_with_at_another_host(hosts: Cluster, pair: tuple[Host, Host]) -> None:
    one, other = pair
    run = one.submit("look", wait=False, name="followed", until="followed")["run_id"]
    seen: list[Any] = []
    with other.client.stream("GET", f"/runs/{run}/events") as answer:
        for event in read_events(answer.iter_lines()):
            seen.append(event)
            hosts.allow("followed")
    assert [event["event"] for event in seen] == ["action", "observation", "action", "observation", "finished"]
    assert one.events(run) == seen
    for at, event in enumerate(seen, 1):
        assert one.events(run, after=event["position"]) == other.events(run, after=event["position"]) == seen[at:]


def test_follower_at_another_host_sees_the_events_of_parallel_branches(hosts: Cluster, pair: tuple[Host, Host]) -> None:
    one, other = pair
    run = one.submit("errand", wait=False, name="parallel", steps=list(range(12)))["run_id"]
    seen = other.events(run)
    assert seen == [event for event in one.events(run) if event["position"]], "what passes is shown where it happens"
    assert len({event["position"] for event in seen}) == len(seen)
    assert Counter(event["event"] for event in seen if event.get("tool") == "ship")["action"] == 12


def test_key_is_one_run_at_whichever_hosts_it_comes(hosts: Cluster, pair: tuple[Host, Host]) -> None:
    one, other = pair
    with ThreadPoolExecutor(8) as pool:
        asking = [
            pool.submit(each.submit, "ship", wait=False, key="same", name="keyed", until="keyed")
            for each in (one, other) * 4
        ]
        runs = {each.result()["run_id"] for each in asking}
    assert len(runs) == 1
    hosts.allow("keyed")
    (run,) = runs
    assert other.await_status(run, *RESTS)["status"] == "completed"
    again = other.submit("ship", key="same", name="keyed", until="keyed")
    assert (again["run_id"], again["outputs"]["said"]) == (run, "keyed")
    assert [name for name, _ in hosts.begun("ship")].count("keyed") == 1
    refused = other.client.post(
        "/workflows/ship/runs", json={"external": {"name": "x", "until": ""}}, headers={"Idempotency-Key": "same"}
    )
    assert (refused.status_code, refused.json()["kind"]) == (422, "key_reused")


def test_run_that_waits_is_decided_at_another_host(hosts: Cluster, pair: tuple[Host, Host]) -> None:
    one, other = pair
    run = one.submit("buy", article="A-1")["run_id"]
    with ThreadPoolExecutor(2) as pool:
        decided = list(
            pool.map(
                lambda host: host.client.post(f"/runs/{run}/decide", json={"decision": "approve"}).status_code, pair
            )
        )
    assert 200 in decided
    assert set(decided) <= {200, 409}
    assert other.await_status(run, "completed")["outputs"] == {"order": "ordered 3 of A-1"}
    assert one.client.get(f"/runs/{run}").json()["journal"] == other.client.get(f"/runs/{run}").json()["journal"]
    assert (hosts.folder / "orders.txt").read_text().count("A-1 3") == 1


def test_decision_on_a_run_that_another_host_still_drives_is_told_to_come_again(
    hosts: Cluster, pair: tuple[Host, Host]
) -> None:
    one, other = pair
    run = one.submit("both", wait=False, name="branch", until="branch")["run_id"]
    hosts.await_begun("look", "branch")
    at = {"strand": "flow/ship.1", "n": 1}
    refused = other.client.post(f"/runs/{run}/decide", json={"decision": "approve", "at": at})
    assert (refused.status_code, refused.json()["kind"]) == (409, "run_busy"), refused.text
    hosts.allow("branch")
    other.await_status(run, "waiting")
    assert other.client.post(f"/runs/{run}/decide", json={"decision": "approve"}).json()["status"] == "completed"


def test_run_is_stopped_at_another_host(hosts: Cluster, pair: tuple[Host, Host]) -> None:
    one, other = pair
    cancelled = one.submit("look", wait=False, name="cancelled", until="never")["run_id"]
    paused = one.submit("errand", wait=False, name="paused", steps=list(range(40)))["run_id"]
    hosts.await_begun("look", "cancelled", "paused-1")
    assert other.client.post(f"/runs/{cancelled}/cancel").json()["status"] == "cancelled"
    assert one.client.get(f"/runs/{cancelled}").json()["status"] == "cancelled"
    assert other.client.post(f"/runs/{paused}/pause").json()["status"] == "paused"
    begun = len(hosts.begun("look"))
    assert one.client.post(f"/runs/{paused}/resume?wait=false").json()["status"] in ("pending", "running")
    assert other.await_status(paused, *RESTS)["status"] == "completed"
    assert Counter(name for name, _ in hosts.begun("look"))["paused-1"] == 1
    assert len(hosts.begun("look")) > begun
    for run in (cancelled, paused):
        assert_proven(other, run)


def test_message_at_another_host_reaches_the_next_question(
    hosts: Cluster, pair: tuple[Host, Host], model: Model
) -> None:
    one, other = pair
    run = one.submit("errand", wait=False, name="told", steps=list(range(20)))["run_id"]
    hosts.await_begun("look", "told-0")
    answer = other.client.post(f"/runs/{run}/messages", json={"content": "hurry up"})
    assert answer.status_code == 200, answer.text
    assert other.await_status(run, *RESTS)["status"] == "completed"
    assert any("hurry up" in question for question in model.asked)


def test_each_host_lists_all_runs(pair: tuple[Host, Host]) -> None:
    lists = [{run["run_id"] for run in host.client.get("/runs?limit=1000").json()["runs"]} for host in pair]
    assert lists[0] == lists[1] != set()

"""Links and callbacks on two servers of one PostgreSQL: a link of one is decided on the other, by one of them alone."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

pytest.importorskip("psycopg_pool", reason="needs psycopg with its pool (extra `postgres`)")

from support.cluster import Cluster, Host, assert_proven, cluster
from support.optional import needs
from support.postgres_server import Postgres
from support.temporal_project import until
from support.webhook_receiver import Receiver, receiving

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("postgres"), needs("fastapi")]
URL = "http://127.0.0.1:9"
LINKS = {"public_url": URL, "secret_env": "LINK_KEY", "old_secret_env": "OLD_LINK_KEY"}
CALLBACKS = {
    "allowed_domains": ["127.0.0.1"],
    "allow_cidrs": ["127.0.0.1/32"],
    "secret_env": "LINK_KEY",
    "decision_links": True,
}
RUNS = 8


@pytest.fixture(scope="module")
def hosts(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LINK_KEY", "the key of the links")
        patch.setenv("OLD_LINK_KEY", "the key of last year")
        folder, keys = tmp_path_factory.mktemp("hosts"), {"callbacks": CALLBACKS, "decision_links": LINKS}
        with cluster(folder, postgres.make_database(), **keys) as made:
            yield made


@pytest.fixture(scope="module")
def pair(hosts: Cluster) -> tuple[Host, Host]:
    started = [hosts.start(), hosts.start()]
    one, other = (hosts.await_host(*each) for each in started)
    return one, other


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def submit(host: Host, article: str, receiver: Receiver) -> str:
    body = {"external": {"article": article}, "callback_url": receiver.url}
    answer = host.client.post("/workflows/buy/runs", params={"wait": False}, json=body)
    return str(answer.raise_for_status().json()["run_id"])


def test_of_two_who_decide_on_two_servers_at_once_one_does(pair: tuple[Host, Host], receiver: Receiver) -> None:
    one, other = pair
    runs = {submit(host, f"W-{number}", receiver) for number in range(RUNS // 2) for host in pair}
    until(lambda: len(receiver.received) >= RUNS, "all wait")
    events = [json.loads(body) for _, body in receiver.received]
    links = {each["data"]["run_id"]: each["data"]["waiting"][0]["link"]["url"].removeprefix(URL) for each in events}
    assert links.keys() == runs

    def decide(place: tuple[Host, str]) -> int:
        host, path = place
        return httpx2.post(f"{host.url}{path}", json={"decision": "approve"}, timeout=60).status_code

    with ThreadPoolExecutor(2 * RUNS) as pool:
        places = [(host, path) for path in links.values() for host in pair]
        statuses = list(pool.map(decide, places))
    assert sorted(statuses) == [*[200] * RUNS, *[410] * RUNS]
    for at in range(0, len(statuses), 2):
        assert sorted(statuses[at : at + 2]) == [200, 410]
    until(lambda: receiver.types.count("run.completed") >= RUNS, "all have ended")
    ids = [headers["webhook-id"] for headers, _ in receiver.received]
    assert len(set(ids)) == 2 * RUNS
    for run in runs:
        assert one.await_status(run, "completed")["outputs"]["order"].startswith("ordered 3 of W-")
        assert_proven(other, run)
    ordered = (one.folder / "orders.txt").read_text().splitlines()
    assert len(ordered) == len(runs)


def test_link_of_one_server_is_shown_and_used_on_the_other_and_holds_after_a_rotation(
    hosts: Cluster, pair: tuple[Host, Host], receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = pair
    run = submit(one, "R-1", receiver)
    one.await_status(run, "waiting")
    path = one.client.post(f"/runs/{run}/links", json={}).json()["url"].removeprefix(URL)
    monkeypatch.setenv("LINK_KEY", "the key of next year")
    monkeypatch.setenv("OLD_LINK_KEY", "the key of the links")
    third = hosts.serve()
    assert third.client.get(path).json()["args"]["article"] == "R-1"
    new = third.client.post(f"/runs/{run}/links", json={}).json()["url"].removeprefix(URL)
    assert one.client.get(new).status_code == 404  # a server with the keys of before
    assert third.client.post(path, json={"decision": "deny"}).status_code == 200
    assert one.client.get(path).status_code == 410


def test_write_in_doubt_is_decided_by_a_link_as_what_it_is(hosts: Cluster, pair: tuple[Host, Host]) -> None:
    one, _ = pair
    doomed = hosts.serve()
    body = {"external": {"name": "D-1", "until": "never"}}
    run = doomed.client.post("/workflows/ship/runs", params={"wait": False}, json=body).json()["run_id"]
    hosts.await_begun("ship", "D-1")
    doomed.kill()
    (call,) = one.await_status(run, "waiting", seconds=60)["waiting"]
    assert call["reason"] == "in_doubt"
    path = one.client.post(f"/runs/{run}/links", json={}).json()["url"].removeprefix(URL)
    shown = one.client.get(path)
    assert shown.json()["decisions"] == ["retry", "skip", "fail"]
    page = one.client.get(path, headers={"Accept": "text/html"}).text
    assert "It may have happened or not" in page
    assert ['value="skip"' in page, 'value="approve"' in page] == [True, False]
    assert one.client.post(path, json={"decision": "approve"}).status_code == 409
    assert one.client.post(path, json={"decision": "skip"}).status_code == 200
    one.await_status(run, "completed", "failed")
    assert len(hosts.begun("ship")) == 1

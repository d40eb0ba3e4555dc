"""GET /metrics: who sees which runs, and that its numbers are those of the runs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine_shim.telemetry.tenant_state import COUNTERS, GAUGES
from support.served_host import Served, served

TENANTS = {"acme": {"execute_tools": ["stock"]}, "globex": {"execute_tools": ["stock"]}}


def read(host: Served, headers: dict[str, str] | None = None) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
    """The samples by name and labels."""
    answer = host.client.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=")
    found: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    return found


def total(samples: dict[Any, float], **labels: str) -> float:
    """The sum of the samples with these labels."""
    return sum(value for key, value in samples.items() if set(labels.items()) <= key)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("host")
    with served(folder, is_open=False, tenants=TENANTS) as found:
        yield found


def test_open_server_shows_what_its_runs_did(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        for _ in range(3):
            host.submit("desk", message="How many?")
        host.submit("buy", article="A-17")
        host.submit("wait", wait=False, until="go")
        host.await_file("go.begun")
        body = {"message": "How many?", "agent": "clerk"}
        turns = [host.client.post("/agent/chat", json=body).json() for _ in range(2)]
        found = read(host)
        assert total(found["agent_core_runs_total"], workflow="desk", status="completed") == 3
        assert total(found["agent_core_runs_total"], agent="clerk", status="completed") == 2
        assert total(found["agent_core_tool_calls_total"], tool="stock") == 5
        assert total(found["agent_core_tool_duration_seconds_count"], tool="stock") == 5
        assert total(found["agent_core_agent_runs_total"], finish_reason="final") == 5
        assert total(found["agent_core_agent_steps_sum"]) == 10
        assert total(found["agent_core_step_duration_seconds_count"]) == 10
        tokens = sum(turn["meta"]["total_tokens"] for turn in turns)
        assert total(found["agent_core_tokens_total"], agent="clerk") == tokens
        assert total(found["agent_core_waiting_runs"]) == 1
        assert total(found["agent_core_open_runs"]) == 1
        (tmp_path / "go").touch()


def test_operator_sees_how_runs_stand_and_what_has_failed_in_the_background(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        run = host.submit("buy", article="A-17")["run_id"]
        host.client.post(f"/runs/{run}/pause")
        overdue = host.submit("buy", article="A-18")["run_id"]
        for _ in range(5):  # the server has failed to resume it, and tries again later
            host.service.tenants[None].runs.driven.backoff.note_failure(overdue)
        host.store.save_due(overdue, "2020-01-01T00:00:00.000Z")
        host.service.store_failures = 3
        found = read(host)
    standing = {name: total(found[f"agent_core_{name}"], tenant="") for name in GAUGES}
    age = standing.pop("oldest_orphan_seconds")
    assert age == 0
    assert standing == {**dict.fromkeys(standing, 0), "waiting_runs": 1, "paused_runs": 1, "overdue_runs": 1}
    assert "agent_core_webhook_deliveries_total" not in found, "this host has no webhook"
    counted = {name: total(found[f"agent_core_{name}_total"], tenant="") for name in (*COUNTERS, "trigger_times")}
    assert counted == {**dict.fromkeys(counted, 0), "store_failures": 3}
    assert total(found["process_resident_memory_bytes"]) > 1e6
    assert 0 < total(found["process_open_fds"]) < total(found["process_max_fds"])


@pytest.mark.exhaustive
def test_waiting_runs_are_known_after_a_restart(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        host.submit("buy", article="A-17")
    with served(tmp_path) as host:
        assert total(read(host)["agent_core_waiting_runs"]) == 1
        assert "agent_core_runs_total" not in read(host)


def test_tenants_token_sees_its_own_runs_alone(host: Served) -> None:
    for name in TENANTS:
        header = host.issue(name, "admin", tenant=name)
        answer = host.client.post("/tools/stock/execute", json={"args": {"article": name}}, headers=header)
        assert answer.json()["success"], answer.text
    seen = {name: json.dumps([*map(list, _labels(host, name))]) for name in TENANTS}
    assert "globex" not in seen["acme"]
    assert "acme" not in seen["globex"]
    whole = read(host, host.issue("host", "admin"))["agent_core_runs_total"]
    assert {name: total(whole, tenant=name) for name in TENANTS} == {"acme": 1, "globex": 1}


def _labels(host: Served, tenant: str) -> Iterator[list[tuple[str, str]]]:
    for samples in read(host, host.issue(f"{tenant}-again", "admin", tenant=tenant)).values():
        for labels in samples:
            assert ("tenant", tenant) in labels
            yield sorted(labels)


@pytest.mark.sampled
@pytest.mark.parametrize("scope", ["read", "run", "decide"])
def test_other_scopes_see_nothing(host: Served, scope: str) -> None:
    assert host.client.get("/metrics", headers=host.issue(scope, scope)).status_code == 403
    assert host.client.get("/metrics").status_code == 401

"""The alarms and the dashboard of the example `cluster`: they read what a server exports, and fire when they should."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from support.optional import needs
from support.prometheus import PROMETHEUS, find_metrics, free_port, needs_prometheus, prometheus, promtool
from support.served_host import Served, served, write_host
from support.temporal_project import until

pytestmark = needs("fastapi", "prometheus_client")
SHIM = Path(__file__).parents[2] / "engine_shim"
CLUSTER = SHIM / "examples" / "cluster"
RULES: list[dict[str, Any]] = yaml.safe_load((CLUSTER / "alerts.yaml").read_text("utf-8"))["groups"][0]["rules"]
CASES: list[dict[str, Any]] = yaml.safe_load((CLUSTER / "alerts.test.yaml").read_text("utf-8"))["tests"]
DASHBOARD: dict[str, Any] = json.loads((CLUSTER / "dashboard.json").read_text("utf-8"))
ALARMS = [rule["alert"] for rule in RULES]
SCRAPES = """
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: agent-core
    authorization: {credentials_file: token}
    static_configs: [{targets: ["TARGET"]}]
"""


@needs_prometheus
def test_promtool_finds_no_fault_in_the_alarms() -> None:
    assert f"SUCCESS: {len(RULES)} rules found" in promtool("check", "rules", "alerts.yaml", folder=CLUSTER)
    promtool("check", "config", "--syntax-only", "prometheus.yaml", folder=CLUSTER)


@needs_prometheus
def test_each_alarm_fires_on_its_series_and_not_in_a_calm_hour() -> None:
    assert "SUCCESS" in promtool("test", "rules", "alerts.test.yaml", folder=CLUSTER)


def test_each_alarm_has_a_series_that_fires_it_and_a_calm_one() -> None:
    asked = [(each["alertname"], bool(each["exp_alerts"])) for case in CASES for each in case["alert_rule_test"]]
    assert sorted(name for name, fires in asked if fires) == sorted(ALARMS)
    assert {name for name, fires in asked if not fires} == set(ALARMS)


def expressions() -> Iterator[str]:
    """What the alarms and the panels and variables of the dashboard ask Prometheus."""
    yield from (rule["expr"] for rule in RULES)
    yield from (target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])
    yield from (each["query"] for each in DASHBOARD["templating"]["list"] if each["type"] == "query")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The labels of each metric that a server exports which has done something of everything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOOK_SECRET", "a secret of both")
        hook = {"url": "http://127.0.0.1:1/hook", "secret_env": "HOOK_SECRET"}
        folder = tmp_path_factory.mktemp("host")
        write_host(folder, webhooks=[hook])
        script = next(folder.rglob("desk-replies.json"))
        first, last = json.loads(script.read_text("utf-8"))
        usage = {
            "input_tokens": 90,
            "output_tokens": 9,
            "cached_tokens": 60,
            "cache_write_tokens": 9,
            "reasoning_tokens": 3,
        }
        script.write_text(json.dumps([first, {"content": json.dumps(last), "usage": usage}]), "utf-8")
        with served(folder) as host:
            host.submit("desk", message="How many?")
            text = host.client.get("/metrics").text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {"up": set(), **{sample.name: set(sample.labels) for sample in samples}}


@pytest.mark.exhaustive
def test_alarms_and_dashboard_read_what_a_server_exports(exported: dict[str, set[str]]) -> None:
    asked = [(expression, *metric) for expression in expressions() for metric in find_metrics(expression)]
    assert len(asked) > 40
    assert [(each, name) for each, name, _ in asked if name not in exported] == []
    assert [(each, name, labels) for each, name, labels in asked if labels - exported[name]] == []


@pytest.mark.exhaustive
def test_pages_name_metrics_that_a_server_exports(exported: dict[str, set[str]]) -> None:
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in exported}
    for page in (SHIM / "OPERATING.md", SHIM / "telemetry" / "README.md"):
        named = set(re.findall(r"`((?:agent_core|process)_\w+)[`{]", page.read_text("utf-8")))
        assert named
        assert named - families - {"agent_core_run_id"} == set(), page
    ours = {name for name in families if name.startswith("agent_core_") and not name.endswith("_created")}
    told = (SHIM / "telemetry" / "README.md").read_text("utf-8")
    assert [name for name in ours if f"`{name}`" not in told] == []


def test_the_page_has_a_row_for_each_alarm() -> None:
    rows = re.findall(r"^\| `(AgentCore\w+)` \|", (SHIM / "OPERATING.md").read_text("utf-8"), re.MULTILINE)
    assert rows == ALARMS


# ── a real Prometheus ────────────────────────────────────────────────────────────────────────────


def hold_up(host: Served, run: str) -> None:
    """Let the server find that it cannot resume a run, and try again later."""
    for _ in range(5):
        host.service.tenants[None].runs.driven.backoff.note_failure(run)


@needs_prometheus
@pytest.mark.exhaustive
def test_prometheus_reads_a_server_by_its_token_and_fires_until_the_cause_is_gone(tmp_path: Path) -> None:
    assert PROMETHEUS is not None
    rules = re.sub(r"for: \d+m", "for: 1s", (CLUSTER / "alerts.yaml").read_text("utf-8"))
    (tmp_path / "alerts.yaml").write_text(rules.replace("AgentCoreStandsStill", "Left out"))
    with served(tmp_path / "host", is_open=False) as host:
        header = host.issue("prometheus", "admin")
        (tmp_path / "token").write_text(header["Authorization"].removeprefix("Bearer ") + "\n")
        (tmp_path / "prometheus.yaml").write_text(SCRAPES.replace("TARGET", host.url.removeprefix("http://")))
        port = free_port()
        words = [f"--web.listen-address=127.0.0.1:{port}", "--config.file=prometheus.yaml"]
        with prometheus([PROMETHEUS, *words], tmp_path, port) as watching:
            until(lambda: watching.value('up{job="agent-core"}') == 1, "the server is read")
            host.client.headers.update(header)
            run = host.submit("buy", article="A-17")["run_id"]
            until(lambda: watching.value("agent_core_waiting_runs") == 1, "the waiting run is seen")
            assert watching.firing() == set()
            hold_up(host, run)
            host.store.save_due(run, "2020-01-01T00:00:00.000Z")
            until(lambda: watching.firing() == {"AgentCoreRunsOverdue"}, "the alarm fires")
            host.service.tenants[None].runs.driven.backoff.forget(run)
            until(lambda: watching.firing() == set(), "the alarm is over")

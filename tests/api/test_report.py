"""GET /report: what the command says, to those who may read, of their own tenant alone."""

from collections.abc import Iterator

import httpx2
import pytest

from engine_shim.report.report import Report
from support.served_host import Served, served

TENANTS = {"acme": {}, "globex": {}}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("host"), with_page=True, is_open=False, tenants=TENANTS) as found:
        yield found


@pytest.fixture(scope="module")
def run(host: Served) -> str:
    """A run of one tenant, in which a person has denied a call."""
    header = host.issue("acme", "admin", tenant="acme")
    body = {"external": {"article": "A-17"}}
    made = str(host.client.post("/workflows/buy/runs", json=body, headers=header).json()["run_id"])
    denied = {"decision": "deny", "message": "<b>no</b>"}
    host.client.post(f"/runs/{made}/decide", json=denied, headers=header)
    return made


def test_each_tenant_has_a_report_of_its_own_runs(host: Served, run: str) -> None:
    headers = {name: host.issue(name, "admin", tenant=name) for name in TENANTS}
    reports = {name: host.client.get("/report", headers=header).json() for name, header in headers.items()}
    acme, globex = reports["acme"], reports["globex"]
    assert list(acme) == list(Report.__annotations__)
    assert (acme["runs"], acme["tenant"], globex["runs"], globex["acts"]["rows"]) == (1, "acme", 0, [])
    (act,) = acme["acts"]["rows"]
    assert (act["run"], act["by"], act["decision"], act["said"]) == (run, "acme", "deny", "<b>no</b>")
    assert ("acme", "began") in [(each["by"], each["decision"]) for each in acme["people"]["rows"]]
    assert [(each["what"], each["reason"]) for each in acme["refused"]["rows"]] == [("order", "denied")]
    assert acme["acts"]["each"] == "agent-core show RUN"


def test_a_time_and_a_workflow_limit_it(host: Served) -> None:
    header = host.issue("reader", "read")

    def ask(**query: str) -> httpx2.Response:
        return host.client.get("/report", params=query, headers=header)

    assert ask(since="2100-01-01T00:00:00Z").json()["since"] == "2100-01-01T00:00:00+00:00"
    assert ask(workflow="nobody").json()["workflow"] == "nobody"
    for since in ("2026-01-01T00:00:00", "yesterday", "17"):
        answer = ask(since=since)
        assert (answer.status_code, answer.json()["errors"][0]["where"]) == (422, "query/since")


def test_it_is_a_page_without_a_script_as_well(host: Served, run: str) -> None:
    header = host.issue("pages", "read", tenant="acme")
    answer = host.client.get("/report/page", headers=header)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["content-disposition"].startswith("attachment; filename=report-20")
    assert "&lt;b&gt;no&lt;/b&gt;" in answer.text
    assert "<b>" not in answer.text
    assert "<script" not in answer.text
    assert host.client.get("/report/page").status_code == 401
    assert host.client.get("/report", headers=host.issue("runner", "run")).status_code == 403

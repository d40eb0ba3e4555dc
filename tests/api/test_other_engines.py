"""The sequence of OTHER_ENGINES.md: its workflow for n8n, executed by a stand-in, against a server of its own."""

import json
import re
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import httpx2
import pytest
from standardwebhooks import Webhook

from engine_shim.host.config import read_host_config
from support.n8n_standin import running_n8n
from support.programs import environment
from support.temporal_project import COMMAND, until

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(180)]
ROOT = Path(__file__).parents[2]
PAGE, API = (ROOT / "engine_shim" / "api" / name for name in ("OTHER_ENGINES.md", "README.md"))
FILE = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SECRETS = {"CALLBACK_SECRET": "a secret of both", "LINK_SECRET": "the key of the links"}


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    """The workflow that people paste into n8n."""
    files = dict(FILE.findall(PAGE.read_text("utf-8")))
    return dict(json.loads(files["n8n.json"]))


@pytest.fixture
def host(tmp_path: Path) -> "Host":
    for name, text in FILE.findall(API.read_text("utf-8")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return Host(tmp_path)


class Host:
    """A host on this machine, whose server is killed and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.folder, self.url = folder, f"http://127.0.0.1:{self.port}"
        (folder / "agent-core.yaml").write_text(
            json.dumps(
                {
                    "tools": ["shop.py:stock", "shop.py:order"],
                    "callbacks": {
                        "allowed_domains": ["127.0.0.1"],
                        "allow_cidrs": ["127.0.0.1/32"],
                        "secret_env": "CALLBACK_SECRET",
                        "decision_links": True,
                    },
                    "decision_links": {"public_url": self.url, "secret_env": "LINK_SECRET", "lifetime": 86400},
                }
            )
        )

    @contextmanager
    def serving(self) -> "Iterator[subprocess.Popen[bytes]]":
        """`agent-core serve`, which says all that it can in its log."""
        words = ["serve", "--port", str(self.port), "--store", "runs.db", "--verbose", "--log-level", "debug"]
        env = {**environment(), **SECRETS, "XDG_DATA_HOME": str(self.folder / "data")}
        for name in [name for name in env if name.startswith("AGENT_CORE_")]:
            del env[name]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen([COMMAND, *words], cwd=self.folder, env=env, stderr=log)
        try:
            until(lambda: process.poll() is not None or self.is_up(), "the server answers")
            assert process.poll() is None, self.log
            yield process
        finally:
            process.kill()
            process.wait()

    def is_up(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/health").status_code == 200
        except httpx2.TransportError:
            return False

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def hurry(self) -> None:
        """Let the time of the next attempts come."""
        with closing(sqlite3.connect(self.folder / "runs.db", timeout=30)) as db, db:
            db.execute("UPDATE webhook_deliveries SET due = 0 WHERE hook = 'callbacks' AND attempts > 0")


def test_what_is_to_be_pasted_can_be_read(tmp_path: Path) -> None:
    page = PAGE.read_text("utf-8")
    blocks = re.findall(r"^```(json|yaml)[^\n]*\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert [kind for kind, _ in blocks].count("json") == 4
    for kind, text in blocks:
        if kind == "json":
            json.loads(text)
        else:
            (tmp_path / "agent-core.yaml").write_text(text)
            assert read_host_config(tmp_path / "agent-core.yaml").decision_links is not None


def decide_twice_at_once(link: str) -> list[int]:
    def decide(_: int) -> int:
        return httpx2.post(link, json={"decision": "approve"}, timeout=30).status_code

    with ThreadPoolExecutor(2) as pool:
        return sorted(pool.map(decide, range(2)))


def test_run_waits_is_decided_by_a_link_and_ends_as_n8n_sees_it(host: Host, workflow: dict[str, Any]) -> None:
    late = Event()
    with running_n8n(workflow, host.url) as n8n:
        n8n.answers[:] = [409, 500, late]  # it does not wait yet; it fails; it takes the call, and answers too late
        with host.serving():
            execution = n8n.execute("231")  # starts it twice with one key
            until(lambda: len(n8n.received) == 1, "the first attempt")
        with host.serving():  # after a server that was killed
            until(lambda: (host.hurry(), len(n8n.received) >= 3)[1], "two more attempts")
            until(lambda: "the callback TimeoutError" in host.log or execution.doubles, "the sender waits no longer")
            until(lambda: (host.hurry(), execution.doubles)[1], "it is sent once more")
            late.set()
            assert [status for *_, status in n8n.received[:4]] == [409, 500, 200, 200]
            assert (len(execution.calls), execution.status, len(execution.mails)) == (1, "waiting", 1)

            (link,) = execution.mails
            assert link.startswith(f"{host.url}/decide/")
            for headers in ({"User-Agent": "a mail scanner", "Accept": "text/html"}, {}):
                assert httpx2.get(link, headers=headers).status_code == 200
            assert execution.status == "waiting"

            assert decide_twice_at_once(link) == [200, 410]
            until(lambda: execution.status == "success", "the execution ends")
            assert execution.result == "Ordered."
            assert [call["body"]["type"] for call in execution.calls] == ["run.waiting", "run.completed"]
            assert httpx2.get(link).status_code == 410

            (run,) = httpx2.get(f"{host.url}/runs").json()["runs"]
            journal = httpx2.get(f"{host.url}/runs/{run['run_id']}/journal").text
            assert httpx2.get(f"{host.url}/runs/{run['run_id']}/verify").json()["ok"]
    signer = Webhook(SECRETS["CALLBACK_SECRET"].encode())
    for headers, body, _ in n8n.received:
        signer.verify(body, headers)
    assert len({headers["webhook-id"] for headers, *_ in n8n.received}) == 2
    assert ['"tool":"order"' in journal, '"by":"link:' in journal] == [True, True]
    token = link.rpartition("/")[2]
    assert [secret in host.log for secret in (token, token.partition(".")[2], "0123456789abcdef")] == [False] * 3


def test_execution_that_begins_again_is_told_of_the_same_run(host: Host, workflow: dict[str, Any]) -> None:
    """With an order's number as its key, it finds the run of the first execution, which n8n has forgotten."""
    text = json.dumps(workflow).replace("=n8n-{{ $execution.id }}", "order-17")
    with running_n8n(json.loads(text), host.url) as n8n, host.serving():
        first = n8n.execute("231")
        until(lambda: first.mails, "the link is sent")
        n8n.executions.pop("231")
        second = n8n.execute("232")
        until(lambda: second.mails, "the link is sent once more")
        assert httpx2.post(second.mails[0], json={"decision": "deny", "message": "No."}).status_code == 200
        assert httpx2.post(first.mails[0], json={"decision": "approve"}).status_code == 410
        until(lambda: second.status == "success", "the second one ends")
        assert len(httpx2.get(f"{host.url}/runs").json()["runs"]) == 1

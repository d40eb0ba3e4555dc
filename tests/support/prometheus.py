"""Prometheus of Debian's package as a process, its promtool, and which metrics an expression of PromQL names."""

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.cluster import end_process
from support.temporal_project import until

PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
needs_prometheus = pytest.mark.skipif(PROMTOOL is None, reason="needs prometheus (Debian's package)")
METRIC = re.compile(r"\b((?:agent_core|process)_\w+|up)\b(?:\{([^}]*)\})?")
GROUPING = re.compile(r"\bby \(([^)]*)\)")
OF_TARGET = {"job", "instance"}
"""Labels that Prometheus adds itself."""


class Prometheus:
    """A running server, by its API."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def ask(self, path: str, **parameters: str) -> Any:
        answer = httpx2.get(f"{self._url}/{path}", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def value(self, expression: str) -> float | None:
        """The value of an expression that has one series."""
        found = self.ask("query", query=expression)["result"]
        return float(found[0]["value"][1]) if found else None

    def firing(self) -> set[str]:
        """The names of the alarms that fire."""
        return {each["labels"]["alertname"] for each in self.ask("alerts")["alerts"] if each["state"] == "firing"}


@contextmanager
def prometheus(words: list[str], folder: Path, port: int) -> Iterator[Prometheus]:
    """The server that these words start, until the end of the block."""
    log = folder / "prometheus.log"
    with log.open("wb") as file:
        process = subprocess.Popen(words, cwd=folder, stdout=file, stderr=file)

    def is_ready() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            return httpx2.get(f"http://127.0.0.1:{port}/-/ready").status_code == 200
        except httpx2.ConnectError:
            return False

    try:
        until(is_ready, "Prometheus is ready")
        yield Prometheus(port)
    finally:
        end_process(process)


def promtool(*words: str, folder: Path) -> str:
    """What promtool says; it has to succeed."""
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *words], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def find_metrics(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Each metric that an expression names, with the labels that it is asked for."""
    grouped = {label.strip() for labels in GROUPING.findall(expression) for label in labels.split(",")}
    for name, selector in METRIC.findall(expression):
        yield name, (grouped | set(re.findall(r"(\w+)\s*[=!]", selector))) - OF_TARGET


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

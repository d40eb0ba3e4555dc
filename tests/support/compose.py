"""The services of a compose file as processes of this machine: their commands and environment, at other addresses."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from support.temporal_project import COMMAND

VARIABLE = re.compile(r"\$\{(\w+):\?[^}]*\}")
IMAGE_COMMANDS = {"agent-core": [COMMAND], "prom/prometheus": ["prometheus"], "temporalio/temporal": ["temporal"]}
"""What the entry point of each image starts."""


@dataclass(frozen=True)
class Service:
    """A service: its command in full, and its own environment."""

    words: list[str]
    environment: dict[str, str]
    stop_seconds: float

    def start(self, folder: Path, log: Path, *more: str) -> "subprocess.Popen[bytes]":
        """Start it in a directory; `more` stands in place of its command's words after the first."""
        words = [self.words[0], *more] if more else self.words
        with log.open("ab") as file:
            return subprocess.Popen(words, cwd=folder, env=self._environment(), stdout=file, stderr=file)

    def run(self, folder: Path, *more: str) -> str:
        """What it prints until it ends, as a success."""
        words = [self.words[0], *more] if more else self.words
        done = subprocess.run(words, cwd=folder, env=self._environment(), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _environment(self) -> dict[str, str]:
        path = f"{Path(COMMAND).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, **self.environment}


def read_services(file: Path, variables: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The services of a compose file, each variable replaced by its value."""
    text = VARIABLE.sub(lambda found: variables[found[1]], file.read_text("utf-8"))
    services: dict[str, dict[str, Any]] = yaml.safe_load(text)["services"]
    return services


def order_services(services: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Their names, each after those that it depends on."""
    done: list[str] = []
    while len(done) < len(services):
        ready = [name for name in services if name not in done and set(services[name].get("depends_on", ())) <= {*done}]
        assert ready, "they depend on each other in a circle"
        done += ready
    yield from done


def localize(service: Mapping[str, Any], places: Mapping[str, str]) -> Service:
    """A service with each place in its words and environment replaced by one of this machine."""

    def move(text: object) -> str:
        moved = str(text)
        for place, here in places.items():
            moved = moved.replace(place, here)
        return moved

    begins = service.get("entrypoint") or IMAGE_COMMANDS[service["image"].partition(":")[0]]
    words = [*begins, *service.get("command", [])]
    environment = {name: move(value) for name, value in service.get("environment", {}).items()}
    seconds = float(str(service.get("stop_grace_period", "10s")).removesuffix("s"))
    return Service([move(word) for word in words], environment, seconds)

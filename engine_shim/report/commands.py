"""Commands: what a person enters to see the same as a table of the report."""

import shlex
from dataclasses import dataclass
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class Commands:
    """Composes commands for the store, the period, the workflow and the keys of a report."""

    store: str | None = None
    since: str | None = None
    workflow: str | None = None
    key: str | None = None

    def of_period(self, *words: str) -> str:
        """Return a command about the runs of the report."""
        return self._join(*words, since=self.since, workflow=self.workflow)

    def of_run(self, *words: str) -> str:
        """Return a command about one run, or about the store as a whole."""
        return self._join(*words)

    def verify(self, *words: str) -> str:
        return self._join("verify", *words, key=self.key)

    def replay(self, run: str, strand: str, settings: dict[str, Any]) -> str:
        """Return the command that replays a run under other settings of the agent in one strand."""
        pairs = [word for key, value in settings.items() for word in ("--set", f"{key}={orjson.dumps(value).decode()}")]
        return self._join("replay", run, "--strand", strand, *pairs)

    def _join(self, *words: str, **options: str | None) -> str:
        named = {**options, "store": self.store}
        more = [word for name, value in named.items() if value is not None for word in (f"--{name}", value)]
        return shlex.join(["agent-core", *words, *more])

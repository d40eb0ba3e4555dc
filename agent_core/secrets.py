"""Secrets: environment variables that the operator lets tools read, and the redactor that hides their values."""

import os
from collections.abc import Iterable, Mapping

from utools.errors import ToolError
from utools.guards.redaction import Redactor

VARIABLE = "AGENT_CORE_SECRET_ENV"
SHORTEST_KEY = 16


class Secrets:
    """The names that a tool may ask for, read at call time. `env` is the process's environment unless given."""

    def __init__(self, names: Iterable[str] = (), *, env: Mapping[str, str] | None = None) -> None:
        self._env = os.environ if env is None else env
        listed = self._env.get(VARIABLE, "").replace(",", " ").split()
        self.names = frozenset([*names, *listed])

    def __call__(self, name: str) -> str:
        """The value; ToolError when the operator does not allow the name, or has not set it."""
        if name not in self.names:
            raise ToolError(f"the secret {name} is not allowed; the operator lists allowed names in {VARIABLE}")
        value = self._env.get(name)
        if not value:
            raise ToolError(f"the secret {name} is not set in the environment of the host")
        return value

    def redactor(self) -> Redactor:
        """Hides the allowed secrets, and whatever the environment calls an API key and is as long as one.

        A stand-in such as OPENAI_API_KEY=ollama is a word, and would take every such word out of every text.
        """
        keys = {name for name, value in self._env.items() if name.endswith("_API_KEY") and len(value) >= SHORTEST_KEY}
        return Redactor({name: value for name in sorted(self.names | keys) if (value := self._env.get(name))})

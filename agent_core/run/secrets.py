"""Secrets: environment variables that the operator lets tools read, and the redactor that hides their values."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from agent_core.evidence.public_keys import Keyring, Signer
from agent_core.evidence.variables import KEY_VARIABLE, PUBLIC_VARIABLE, ROOTS_VARIABLE, URL_VARIABLE
from agent_core.journal.signature import VARIABLE as KEYS_VARIABLE
from agent_core.journal.signature import Keys
from agent_core.outputs import Json
from utools.errors import ToolError
from utools.secrets.key_formats import NAMES, check_format
from utools.secrets.patterns import check_patterns
from utools.secrets.redaction import Redactor

VARIABLE = "AGENT_CORE_SECRET_ENV"
KEY_ENDS = "_API_KEY"
SHORTEST_KEY = 16


class Secrets:
    """The names that a tool may ask for, read at call time. `env` defaults to the process's environment.

    `unmasked_formats` are formats of `utools.secrets.key_formats` that are not masked. `mask` are patterns by name of
    what is masked besides: `{"insurance": r"[A-Z]\\d{9}"}`. They are looked for in each line of a text. ValueError for
    an unknown format, and for a pattern that cannot be used. No tool gets what `is_own` says is the host's own.
    """

    def __init__(
        self,
        names: Iterable[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        unmasked_formats: Iterable[str] = (),
        mask: Mapping[str, str] | None = None,
        is_own: Callable[[str], bool] = lambda name: False,
    ) -> None:
        self._is_own = is_own
        self._env = os.environ if env is None else env
        listed = self._env.get(VARIABLE, "").replace(",", " ").split()
        self.names, self._hidden = frozenset([*names, *listed]), frozenset[str]()
        self._unmasked = frozenset(map(check_format, unmasked_formats))
        self._formats = tuple(name for name in NAMES if name not in self._unmasked)
        self._mask = check_patterns(mask or {})

    def __call__(self, name: str) -> str:
        """Return the value; ToolError when the operator does not allow the name, or has not set it."""
        if name not in self.names:
            raise ToolError(
                "the secret {name} is not allowed; "
                "the operator lists allowed names in {variable}, or in secret_env of agent-core.yaml",
                name=name,
                variable=VARIABLE,
            )
        if self._is_own(name):
            raise ToolError("the secret {name} is the host's own, and no tool gets it", name=name)
        value = self._env.get(name)
        if not value:
            raise ToolError("the secret {name} is not set in the environment of the host", name=name)
        return value

    def allows(self, name: str) -> bool:
        """Return whether a tool may ask for the name."""
        return name in self.names and not self._is_own(name)

    def hiding(self, names: Iterable[str]) -> "Secrets":
        """Return the same, with further keys by name that no tool may ask for and that are hidden."""
        more = Secrets(self.names, env=self._env, unmasked_formats=self._unmasked, mask=self._mask, is_own=self._is_own)
        more._hidden = self._hidden.union(names)
        return more

    def redactor(self) -> Redactor:
        """Hides the allowed secrets, what fits a pattern, and other keys of the environment that are long enough.

        A placeholder such as OPENAI_API_KEY=ollama is a word, and would be removed from every text.
        """
        found = [name for name in self._env if name.endswith(KEY_ENDS) or name in self._hidden]
        keys = {name for name in found if len(self._env.get(name, "")) >= SHORTEST_KEY}
        values = tuple([(name, value) for name in sorted(self.names | keys) if (value := self._env.get(name))])
        return _redactor(values, self._formats, tuple(self._mask.items()))


@lru_cache(maxsize=16)
def _redactor(
    secrets: tuple[tuple[str, str], ...], formats: tuple[str, ...], patterns: tuple[tuple[str, str], ...]
) -> Redactor:
    """Built once for the same secrets: every run needs it."""
    return Redactor(dict(secrets), formats=formats, patterns=dict(patterns))


def signing_keys() -> Keys | None:
    """Return the keys that sign journals, from the environment of this process; None where none does. DefinitionError
    where the one that signs is short, and for what cannot be read."""
    keys = verifying_keys()
    if keys is None or not keys.signer:
        return None
    keys.check_signer()
    return keys


def find_signer() -> Signer | None:
    """Return the key of this host whose signatures others can check; None without one."""
    keys = signing_keys()
    return None if keys is None or keys.keyring is None else keys.keyring.signer()


def verifying_keys() -> Keys | None:
    """Return the same keys for a reader of journals: old ones may be shorter than one that signs, and there may be
    public ones alone."""
    keyring: Keyring | None = None
    names = (KEY_VARIABLE, PUBLIC_VARIABLE, URL_VARIABLE, ROOTS_VARIABLE)
    key, trusted, authority, roots = (os.environ.get(name, "") for name in names)
    if key or trusted:
        from agent_core.evidence.key_files import KeyFiles  # which reads files, and runs commands

        keyring = KeyFiles(key, trusted, authority, roots, is_environment=True)
    return Keys.read(os.environ.get(KEYS_VARIABLE, ""), keyring)


def fill_secrets(config: Any, fills: Sequence[Json], secret: Callable[[str], str]) -> Any:
    """Return the config with secrets where the fills say, {at, parts}; ToolError for one that is not allowed or not
    set."""
    for fill in fills:
        parts = [part if isinstance(part, str) else secret(part["env"]) for part in fill["parts"]]
        config = _put(config, fill["at"], "".join(parts))
    return config


def _put(value: Any, at: Sequence[str | int], text: str) -> Any:
    """Return a copy of the value with the text at a path in it."""
    if not at:
        return text
    key, *rest = at
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = _put(value[key], rest, text)
    return copy

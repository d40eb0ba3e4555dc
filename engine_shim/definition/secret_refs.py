"""The secrets that a definition names, and where. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from engine_shim.definition.model import AGENT, Definition
from engine_shim.definition.uses import uses_of
from utools.schema.config_schema import author_keys

NAMES_A_SECRET = "_env"
"""How the name of an argument ends that only an author sets, and that names an environment variable."""


def secret_refs(
    definition: Definition, codes: Sequence[str], schema_of: Callable[[str], Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Yield each place that names a secret, and its name; `codes` are those of the tools, and `schema_of` gives the
    schema of the arguments of one.

    The key of a model's endpoint is none: only the model gets it.
    """
    secrets = definition.secrets
    for index, entry in enumerate(definition.env):
        name = entry if isinstance(entry, str) else entry.name
        if name in secrets:
            yield f"env/{index}", name
    for use in uses_of(definition, [code for code in codes if code != AGENT]):
        schema = dict(schema_of(use.tool))
        keys = [key for key in sorted(author_keys(schema)) if key.endswith(NAMES_A_SECRET)]
        known, of_host = use.known(), {key: schema["properties"][key].get("default") for key in keys}
        for key in keys:
            yield from _names_in(known.get(key) if key in use.config else of_host[key], f"{use.where}/{key}")


def _names_in(value: Any, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, list):
        yield from ((f"{where}/{index}", each) for index, each in enumerate(value) if isinstance(each, str))

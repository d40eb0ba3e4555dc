"""Arguments under names that Anthropic takes, and the tool's own names that they stand for. Pure.

For one property whose name is more than letters, digits, `_`, `.` and `-`, or longer than 64, Anthropic refuses all
tools of a request. Tools of OpenAPI documents have such: `filter[name]`, `$top`, names in other scripts.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from agent_core.outputs import Json, JsonValue
from agent_core.protocol.alternatives import flatten_alternatives
from utools.lazy_pattern import lazy_compile

PLAIN: Final = lazy_compile(r"[A-Za-z0-9_.-]{1,64}")
LONGEST: Final = 60
"""Characters of a name that is made; a number may follow."""

Names = Mapping[str, str]


def has_plain_names(models: Iterable[str]) -> bool:
    """Return whether one of these models, by its name, takes plain names alone."""
    return any(each.startswith("anthropic:") or "claude" in each.lower() for each in models)


def write_plain_names(parameters: Json) -> Json:
    """Return a function's parameters with plain names; the description of each that changed begins with its own."""
    own: Json = parameters["properties"]
    shown = _plain_names(own)
    if not shown:
        return parameters
    properties = {shown.get(name, name): _tell(name, rule) if name in shown else rule for name, rule in own.items()}
    required = [shown.get(name, name) for name in parameters.get("required", ())]
    return {**parameters, "properties": properties, **({"required": required} if required else {})}


def own_names(functions: Sequence[Json], codes: Names, tools: Mapping[str, Mapping[str, Any]]) -> dict[str, Names]:
    """Return by code what each name that a model was shown stands for, where it is not the tool's own."""
    found: dict[str, Names] = {}
    for each in functions:
        code, shown = codes.get(each["function"]["name"], ""), each["function"]["parameters"]["properties"]
        visible: Json = tools[code]["visible"] if code in tools else {}
        if code in tools and not shown.keys() <= visible.get("properties", {}).keys():
            own = flatten_alternatives(visible).get("properties", {})
            plain = {name: its for its, name in _plain_names(own).items()}  # an older run may have shown fewer of them
            found[code] = {name: plain[name] for name in shown if name in plain}
    return found


def _plain_names(own: Iterable[str]) -> dict[str, str]:
    """Return a plain name for each that is none."""
    taken, made = set(own), dict[str, str]()
    for name in own:
        if PLAIN.fullmatch(name):
            continue
        base = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_")[:LONGEST] or "argument"
        free = next(each for each in (base, *(f"{base}_{n}" for n in range(2, len(taken) + 3))) if each not in taken)
        taken.add(free)
        made[name] = free
    return made


def _tell(name: str, rule: JsonValue) -> Json:
    told: Json = rule if isinstance(rule, dict) else {}
    about = told.get("description")
    return {**told, "description": f"{name}: {about}" if about else name}

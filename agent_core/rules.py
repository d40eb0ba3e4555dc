"""The versions of the rules that a run's decisions depend on. Pure.

A recorded run is replayed under the rules it was driven by, so `run_started` names them. Whoever changes one of these
sets of rules adds a version here, keeps the old rules reachable, and lets the new ones apply to new runs alone.
"""

from collections.abc import Mapping
from typing import Any, Final, NotRequired

from typing_extensions import TypedDict


class RuleVersions(TypedDict):
    """The version of each set of rules.

    `cuts`: how a conversation is cut to size. `texts`: what code says to a model: faults, refusals, protocol
    errors. `comparison`: how values are compared: JSON Schema, narrowing, provenance, numbers. `prompts`:
    how a prompt is put together from its templates, and the templates that ship with the package. `flow`: how a
    workflow is walked: placeholders, conditions, the order of visits. `plans`: how a plan's references are read;
    runs before its second version do not name it.
    """

    cuts: int
    texts: int
    comparison: int
    prompts: int
    flow: int
    plans: NotRequired[int]


CURRENT: Final[RuleVersions] = {"cuts": 3, "texts": 5, "comparison": 2, "prompts": 5, "flow": 3, "plans": 2}
"""The rules that a new run follows.

cuts 1: observations of earlier turns were never shortened, and the digest after a cut left native calls out. cuts 2: a
run's own steps were never dropped, and its last observation was shortened like any other.
texts 1: English under every language, and without some values (agent_core/words/earlier.py). texts 2: without those of
the second comparison. texts 3: without those of plan mode. texts 4: in plan mode errors asked for an action, and calls
of earlier turns were shown as actions.
prompts 1: nothing told how to read on in what was cut. prompts 2: a small model's observations did not
repeat the request. prompts 3: none of plan mode. prompts 4: plan mode had no examples. A run holds its prompts
whole, so none is made anew.
comparison 1: provenance looked for a text in trusted texts, folded, and did not record where a value stands.
flow 1: placeholders had no quoted keys; `["` was a part of a name. flow 2: a sub-workflow gave its nodes' outputs
beside those that it declares.
plans 1: brackets were a part of a key, and what only looked like a reference was a text.
"""
EARLIEST: Final[RuleVersions] = {"cuts": 1, "texts": 1, "comparison": 1, "prompts": 1, "flow": 1, "plans": 1}
"""The rules of runs that name none."""


def rules_of(started: Mapping[str, Any]) -> RuleVersions:
    """The rules of a run, from its `run_started` record. Runs before `rules` named only `cuts`, or nothing."""
    named = started.get("rules") or {}
    return {
        "cuts": named.get("cuts", started.get("cuts", EARLIEST["cuts"])),
        "texts": named.get("texts", EARLIEST["texts"]),
        "comparison": named.get("comparison", EARLIEST["comparison"]),
        "prompts": named.get("prompts", EARLIEST["prompts"]),
        "flow": named.get("flow", EARLIEST["flow"]),
        "plans": named.get("plans", EARLIEST["plans"]),
    }


def unknown_rule(started: Mapping[str, Any]) -> str | None:
    """The first set of rules that this version does not know, as a sentence; None when it knows all."""
    named = started.get("rules") or {}
    if not isinstance(named, Mapping):
        return "it names no rules that can be read"
    for name, version in named.items():
        known = CURRENT.get(name)
        if not isinstance(known, int) or not isinstance(version, int) or version > known:
            return f"it follows version {version} of the rules {name!r}, this agent_core knows {known or 'none'}"
    return None

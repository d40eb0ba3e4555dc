"""The versions of the rules that a run's decisions depend on. Pure.

A recorded run is replayed under the rules it was driven by, so `run_started` names them. Whoever changes one of these
sets of rules adds a version here, keeps the old rules reachable, and lets the new ones apply to new runs alone.

An old version may be dropped in a new major release, two years after the release that replaced it at the earliest: so
long auditors can replay its runs with the newest program. From then on `unknown_rule` has to name these runs, so that a
replay refuses them in a sentence in place of a divergence; they verify as before, and the last minor release before
that major one still replays them.
"""

from collections.abc import Mapping
from typing import Any, Final, NotRequired, cast

from typing_extensions import TypedDict


class RuleVersions(TypedDict):
    """The version of each set of rules.

    `cuts`: how a conversation and a trace are cut to size. `texts`: what code says to a model: faults, refusals,
    protocol errors. `comparison`: how values are compared: JSON Schema, narrowing, provenance, numbers. `prompts`:
    how a prompt is put together from its templates, and the templates that ship with the package. `flow`: how a
    workflow is walked: placeholders, conditions, the order of visits, what a sub-workflow gives. `plans`: how a plan's
    references are read, and what ends it. `masking`: what becomes of a call whose arguments hold something masked.
    `replies`: how a model's reply is read, and whether there is room for another question. `usage`: what is counted.
    """

    cuts: int
    texts: int
    comparison: int
    prompts: int
    flow: int
    plans: int
    masking: int
    replies: int
    usage: int


class RecordedRules(TypedDict):
    """The rules that a run names. Runs before the second version of the last four do not name these."""

    cuts: int
    texts: int
    comparison: int
    prompts: int
    flow: int
    plans: NotRequired[int]
    masking: NotRequired[int]
    replies: NotRequired[int]
    usage: NotRequired[int]


CURRENT: Final[RuleVersions] = {
    "cuts": 5,
    "texts": 7,
    "comparison": 5,
    "prompts": 7,
    "flow": 4,
    "plans": 4,
    "masking": 2,
    "replies": 5,
    "usage": 2,
}
"""The rules that a new run follows.

cuts 1: observations of earlier turns were never shortened, and the digest after a cut left native calls out. cuts 2: a
run's own steps were never dropped, and its last observation was shortened like any other. cuts 3: the trace showed the
beginning and the end of long JSON, which was none any more. cuts 4: a cut made room for one question, so that each
later one was cut again, and nothing of it was in a vendor's cache.
texts 1: English under every language, and without some values (agent_core/words/earlier.py). texts 2: without those of
the second comparison. texts 3: without those of plan mode. texts 4: in plan mode errors asked for an action, and calls
of earlier turns were shown as actions. texts 5: without those of calls with something masked, left in a text, or
refused by a vendor. texts 6: arguments of a native call, or an answer with a schema, that were no JSON were asked for
as an action or a final.
prompts 1: nothing told how to read on in what was cut. prompts 2: a small model's observations did not
repeat the request. prompts 3: none of plan mode. prompts 4: plan mode had no examples. prompts 5: first
sentences alone were told of tools, and examples were made up from their schemas. prompts 6: small models read examples
of other tools before turns of their own, at most one a tool and three in all, none without a call. A run holds its
prompts whole, so none is made anew.
comparison 1: provenance looked for a text in trusted texts, folded, and did not record where a value stands.
comparison 2: a narrowing's pattern had to match the whole text under a negation too, and line ends were refused; no
question to a person named the value that is not proven. comparison 3: a number's text was what Python writes, 1e-05,
and not what a model reads of it, 0.00001. comparison 4: a multiple was told by binary fractions, and 19.99 was none of
0.01.
flow 1: placeholders had no quoted keys; `["` was a part of a name. flow 2: a sub-workflow gave its nodes' outputs
beside those that it declares, and the judge of an edge read all that an agent or a workflow gave. flow 3: no node
waited for a time or a signal, and no write in doubt was told its result.
plans 1: brackets were a part of a key, and what only looked like a reference was a text. plans 2: what a reference
led to kept its type where only a text may stand. plans 3: the calls of a nested run did not count against those that
the later steps of a plan may make.
masking 1: a tool was called with the marks of masked secrets as values.
replies 1: any finish reason but `length` and `content_filter` was that of a whole reply, a call left in a text was
known by a few marks, also where an answer quoted one, and a question was asked however little was left for it.
replies 2: what MiniMax M3 puts before each tag of a call hid the call that was left in a text, which was an answer.
replies 3: so was a call as JSON below what the model says that it does, or whose first marker is not in the text.
replies 4: so was a call in a code fence that is not closed.
usage 1: tokens from a vendor's cache, to it, and of a model's thoughts were not counted apart.
"""
BY_DECIMALS: Final = 5
"""The version of the comparison from which on a multiple is told by the decimals that are written."""
EARLIEST: Final = cast(RuleVersions, dict.fromkeys(CURRENT, 1))
"""The rules of runs that name none."""


def rules_of(started: Mapping[str, Any]) -> RuleVersions:
    """Return the rules of a run, from its `run_started` record. Runs before `rules` named only `cuts`, or nothing."""
    named = started.get("rules") or {}
    cuts = {"cuts": started["cuts"]} if "cuts" in started else {}
    versions: Mapping[str, Any] = {**EARLIEST, **cuts, **named}
    return cast(RuleVersions, {name: versions[name] for name in EARLIEST})


def unknown_rule(started: Mapping[str, Any]) -> str | None:
    """Return the first set of rules that this version does not know, as a sentence; None when it knows all."""
    named = started.get("rules") or {}
    if not isinstance(named, Mapping):
        return "its rules cannot be read"
    for name, version in named.items():
        known = CURRENT.get(name)
        if not isinstance(known, int) or not isinstance(version, int) or version > known:
            return f"it follows version {version} of the rules {name!r}, this agent_core knows {known or 'none'}"
    return None

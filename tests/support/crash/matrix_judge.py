"""Whether a disturbed run came out as an undisturbed one, and what its ledger says was done too often."""

from collections.abc import Sequence

from agent_core.outputs import Json
from support.crash.matrix_compare import timeless
from support.crash.matrix_workflows import Case


def differences(told: Json, usual: Json, case: Case) -> list[str]:
    """What a run's report says otherwise than that of an undisturbed run."""
    checks = {
        "not verified": told["verified"],
        "not replayed": told["replayed"],
        "another status in the store": told["status"] == usual["status"] == told["result"]["status"],
        "still claimed": told["driver"] is None,
        f"other strands: {apart(told['strands'], usual['strands'])}": told["strands"] == usual["strands"],
        "another result": timeless(told["result"]) == timeless(usual["result"]),
        "doubt where there can be none": case.doubtful or not told["in_doubt"],
    }
    return [wrong for wrong, right in checks.items() if not right]


def apart(now: Json, usual: Json) -> str:
    """Where two runs part, in short."""
    for path in sorted({*now, *usual}):
        mine, theirs = now.get(path, []), usual.get(path, [])
        for n, (a, b) in enumerate(zip(mine, theirs, strict=False)):
            if a != b:
                return f"{path}:{n} {a} instead of {b}"
        if len(mine) != len(theirs):
            return f"{path} has {len(mine)} records instead of {len(theirs)}"
    return ""


def done_again(lines: Sequence[Json], befores: Sequence[Json]) -> list[str]:
    """The acts that were done after an attempt had begun whose journal held their answer."""
    names = [line.get("question") or line["key"] for line in lines]
    return [name for before in befores for name in names[before["noted"] :] if name in set(before["answered"])]


def too_often(lines: Sequence[Json], attempts: int) -> list[str]:
    """The acts that were begun more often than there were attempts at the run."""
    names = [line.get("question") or line["key"] for line in lines]
    return sorted({name for name in names if names.count(name) > attempts})


def happened_again(lines: Sequence[Json]) -> list[str]:
    """Each further time that a write happened which must not happen twice."""
    writes = [line["deed"] for line in lines if line.get("effect") == "write" and not line["idempotent"]]
    return [write for n, write in enumerate(writes) if write in writes[:n]]


def many_keys(lines: Sequence[Json]) -> list[str]:
    """The idempotent writes that were tried under more than one key."""
    keys: dict[str, set[str]] = {}
    for line in lines:
        if line.get("idempotent"):
            keys.setdefault(line["deed"], set()).add(line["key"])
    return sorted(write for write, used in keys.items() if len(used) > 1)

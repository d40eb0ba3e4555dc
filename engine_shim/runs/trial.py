"""try_replay(): the replay of a recorded run, whatever is wrong with it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_core.audit.replay import Replay, replay_tape
from agent_core.errors import Damaged, DefinitionError, Unreadable
from agent_core.journal.chain import is_finished
from agent_core.journal.path import find_root
from agent_core.journal.record import Tape
from agent_core.journal.signature import split_own_strands
from agent_core.outputs import Json
from engine_shim.runs.loops import LOOPS
from utools.words.text import error_words


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a replay: `outcome` is identical, diverged, unfinished, damaged, unreadable or erased.

    Under another policy it may also be changed, outlived (the run would have gone on where its tape ends), or
    inapplicable: the policy allows a tool that the run did not have. `place` is {strand, n} of the first difference or
    damage; `replay` is None where there was none.
    """

    outcome: str
    place: Json | None
    why: str | None
    replay: Replay | None = None

    def as_json(self) -> Json:
        """Return all of it in one object."""
        found = self.replay or Replay(False, None, None, {}, 0)
        keys = ("identical", "divergence", "tape_ended", "steps")
        about = {key: getattr(found, key) for key in keys}
        return {
            "outcome": self.outcome,
            "place": self.place,
            "why": self.why,
            **about,
            "decisions": list(found.decisions),
        }


def try_replay(
    run: str, load: Callable[[str], Tape], policy: Mapping[str, Any] | None = None, strand: str | None = None
) -> Trial:
    """Replay one run; with a `strand`, under the policy in that agent alone. DefinitionError for a policy that no run
    can have, and for a strand that the run has not."""
    try:
        tape = load(run)
        found = replay_tape(run, tape, policy=policy, strand=strand, loops=LOOPS)
        outcome, place = _outcome(found, split_own_strands(tape)[0], policy is not None)
    except Damaged as error:
        return Trial("damaged", {"strand": error.path, "n": error.n}, str(error))
    except Unreadable as error:
        return Trial("erased" if error.erased else "unreadable", None, str(error))
    except Exception as error:  # a sound chain over nonsense may break a loop in any way: the other runs go on
        if isinstance(error, DefinitionError) and error.where == "strand":
            raise
        if isinstance(error, DefinitionError) and error.where.startswith("policy"):
            if not error.where.startswith("policy/allowed_tools/"):
                raise
            return Trial("inapplicable", None, error_words(error))
        return Trial("unreadable", None, error_words(error))
    return Trial(outcome, place, found.why, found)


def _outcome(found: Replay, own: Tape, varied: bool) -> tuple[str, Json | None]:
    """Return the outcome of a replay, and where it differs."""
    if found.identical:
        return "identical", None
    if found.divergence is not None:
        place = {"strand": found.divergence["strand"], "n": found.divergence["n"]}
        return ("changed" if varied else "diverged"), place
    root = find_root(own)
    return ("outlived" if varied and is_finished(own, root) else "unfinished"), None

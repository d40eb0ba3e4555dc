"""case_of_run(): a case made of a recorded run: its question, its tools with their answers, what it did. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from agent_core.audit.refusals import AWAITING, find_refused
from agent_core.config import OF_ITS_MODEL, AgentConfig
from agent_core.errors import DefinitionError
from agent_core.journal.facts import Fact, RecordedRun, Resolved, RunFinished, Waiting
from agent_core.journal.path import is_within
from agent_core.journal.reader import find_agents, leave_nested, read_run, read_strands
from agent_core.journal.record import Tape
from agent_core.loop.reading import READ_OBSERVATION
from agent_core.outputs import Json
from agent_core.protocol.messages import read_messages
from engine_shim.evals.cases import short_name
from engine_shim.evals.matching import NUMBER, numbers_in, plain, spaced
from engine_shim.evals.recorded import RecordedCall, find_calls

REFUSED_ENDINGS = ("policy_denied", "invalid_action", AWAITING)
"""Endings that a case can expect, but for an answer."""
NOT_KEPT = {
    *("model", *OF_ITS_MODEL, "prompt", "messages_json", "allowed_tools", "language"),
    *("max_steps", "deny_tools", "approval", "seed", "timeout", "single_call_timeout", "trace_max_bytes"),
}
"""Keys of the agent's config that a case has in another place, or that are the measurement's own."""
NARROWING = ("preset", "max_calls", "trusted", "args", "provenance")
DEFAULTS = AgentConfig.model_construct().model_dump(mode="json")


@dataclass(frozen=True, slots=True)
class KnownTool:
    """A tool that the case file has: its schema, and whether it may be called as it is."""

    schema: Json
    is_pure: bool = False


def case_of_run(tape: Tape, path: str, *, name: str | None, known: Mapping[str, KnownTool], with_agent: bool) -> Json:
    """Return the case as a case file has it. DefinitionError says why a run cannot be made into one.

    `path` is the agent's strand, `known` are the tools that the file has without the case. `with_agent` says that tools
    and config are to be written too, since no workflow says them.
    """
    strands = read_strands(tape)
    agent, (ending, answer) = read_run(tape, path), _find_ending(strands[path], path)
    made = [each for each in find_calls(strands, path) if each.tool != READ_OBSERVATION]
    _check_calls(strands, path, made)
    history, message = find_question(agent.config, path)
    canned = {code: _canned(code, each, made, known) for code, each in agent.tools.items()}
    case = {
        "name": name or short_name(message),
        "message": message,
        "history": history,
        "language": agent.config["language"].removeprefix("en"),
        **(_agent_keys(agent, ending) if with_agent else {}),
        "canned": {code: each for code, each in canned.items() if each},
        "calls": [_expected_call(each) for each in made],
        **(_expected_refusal(strands[path], path, ending) if ending != "final" else {}),
        **({"answer": _expected_answer(answer, made, message)} if ending == "final" else {}),
    }
    return {key: value for key, value in case.items() if value or key == "tools"}


# ── which run ────────────────────────────────────────────────────────────────────────────────────


def find_agent(tape: Tape, strand: str | None) -> str:
    """Return the strand of the agent whose run becomes a case."""
    agents = find_agents(read_strands(tape, {"run_started"}))
    outer = leave_nested(agents)
    if not agents:
        raise DefinitionError("no agent ran in this run, and a case is what an agent was asked", where="run")
    if strand is not None and strand not in agents:
        raise DefinitionError(f"no agent ran there; there are {', '.join(agents)}", where="--strand", value=strand)
    if strand is None and len(outer) > 1:
        raise DefinitionError(f"several agents ran; say which one by --strand: {', '.join(outer)}", where="run")
    return strand or outer[0]


def _find_ending(facts: Sequence[Fact], path: str) -> tuple[str, Any]:
    """Return how the run ended, if a case can expect it, and its answer."""
    ending, answer = find_end(facts)
    if ending not in ("final", *REFUSED_ENDINGS):
        why = "has not ended" if ending is None else f"ended by {ending}"
        raise DefinitionError(
            f"it {why}, so nothing says what is right; a case needs an answer or a refusal", where=path
        )
    return ending, answer


def find_end(facts: Sequence[Fact]) -> tuple[str | None, Any]:
    """Return why a run ended or waits, None while it does neither, and its answer."""
    match facts[-1]:
        case RunFinished(reason=reason, answer=answer):
            return reason, answer
        case Waiting(reason=reason):
            return reason, None
        case _:
            return None, None


def _check_calls(strands: Mapping[str, Sequence[Fact]], path: str, made: list[RecordedCall]) -> None:
    """What no canned answer can stand for."""
    for each in made:
        if each.effect == "nested":
            message = "this tool is a run of its own, which has no single answer; make a case of it by --strand"
            raise DefinitionError(message, where=path, value=each.tool)
        if each.answer is None:
            raise DefinitionError("this call has no recorded answer", where=path, value=each.tool)
    for strand, facts in strands.items():
        for fact in facts if is_within(strand, path) else ():
            if isinstance(fact, Resolved) and fact.decision not in ("approve", "batch"):
                message = "a person changed what the agent did, and an eval has nobody to decide"
                raise DefinitionError(message, where=strand, value=fact.decision)


def find_question(config: Json, path: str) -> tuple[list[Json], str]:
    """Return the history, and the user's message after it."""
    history = [] if config["messages_json"] is None else read_messages(config["messages_json"])
    if config["prompt"] is not None:
        return history, config["prompt"]
    *history, last = history
    if last["role"] != "user" or not last["content"]:
        raise DefinitionError("the conversation does not end with a user's message", where=path, value=last["role"])
    return history, last["content"]


# ── tools and config ─────────────────────────────────────────────────────────────────────────────


def _agent_keys(agent: RecordedRun, ending: str) -> Json:
    """Return what the agent was offered, and how it was configured."""
    tools = [_entry(code, each, ending) for code, each in agent.tools.items()]
    return {"tools": tools, "config": _find_config(agent), "max_steps": agent.config["max_steps"]}


def _entry(code: str, policy: Json, ending: str) -> str | Json:
    """Return the tool's entry in `tools`. Approval is left out where a person gave it: a canned tool does nothing."""
    bound = {key: policy[key] for key in NARROWING if policy.get(key)}
    if ending == AWAITING and policy["approval"] != "never":
        bound["approval"] = policy["approval"]
    return {"tool": code, **bound} if bound else code


def _find_config(agent: RecordedRun) -> Json:
    """Return the keys of the config that are not the usual ones; own prompts as texts."""
    given = {key: value for key, value in agent.config.items() if key not in NOT_KEPT and value != DEFAULTS.get(key)}
    if isinstance(own := given.get("prompts"), dict):
        given["prompts"] = {name: agent.texts[name] for name in own}
    return given


def _canned(code: str, policy: Json, made: list[RecordedCall], known: Mapping[str, KnownTool]) -> Json:
    """Return the tool with its recorded answers; nothing for one that the case file may call as it is."""
    there = known.get(code)
    is_same = there is not None and there.schema == policy["schema"]
    if is_same and there is not None and there.is_pure:
        return {}
    calls = [each for each in made if each.tool == code]
    answers = [{"args": _as_expected(each.args), **_answer(each)} for each in calls]
    if is_same:
        return {"answers": answers}
    effect = policy["effect"]
    if effect == "dynamic":
        effect = "read" if calls and all(each.effect == "read" for each in calls) else "write"
    described = {"description": policy["description"], "config_schema": policy["schema"], "effect": effect}
    return {**described, "answers": answers}


def _answer(made: RecordedCall) -> Json:
    return {"output": made.output} if made.succeeded else {"error": made.answer and made.answer.error}


# ── what is expected ─────────────────────────────────────────────────────────────────────────────


def _expected_call(made: RecordedCall) -> Json:
    """Return an expected call; one that failed need not be made."""
    optional = {} if made.succeeded else {"optional": True}
    return {"tool": made.tool, "args": _as_expected(made.args), **optional}


def _expected_refusal(facts: Sequence[Fact], path: str, ending: str) -> Json:
    """Return the refusal that the run ended by, which is the last one."""
    refusals = find_refused(facts)
    if not refusals or refusals[-1].tool == READ_OBSERVATION:
        raise DefinitionError("no call of a tool was refused in it, so a case could expect none", where=path)
    tool, args, reason = refusals[-1]
    expected = {"args": _as_expected(args)} if isinstance(args, dict) and args else {}
    return {"finish_reason": ending, "refused": [{"tool": tool, **expected, "reason": reason}]}


def _as_expected(args: Json) -> Json:
    """Arguments as a case expects them: an object would be read as a matcher."""
    return {name: {"equals": value} if isinstance(value, dict) else value for name, value in args.items()}


def _expected_answer(answer: Any, made: list[RecordedCall], message: str) -> Json:
    """Return what the answer has from the tools and not from the question; else the whole of it."""
    if not isinstance(answer, str):
        return {"equals": answer}
    outputs = [each.output for each in made]
    seen = set(numbers_in(spaced(orjson.dumps(outputs).decode()))) - set(numbers_in(message))
    numbers = [int(each) if each.is_integer() else each for each in dict.fromkeys(numbers_in(answer)) if each in seen]
    text, asked = plain(answer), plain(message)
    found = (each for each in _texts_in(outputs) if plain(each) in text and plain(each) not in asked)
    texts = [each for each in dict.fromkeys(found) if not NUMBER.fullmatch(each.strip())]
    number: Any = numbers[0] if len(numbers) == 1 else numbers
    expected = {**({"number": number} if numbers else {}), **({"contains": texts} if texts else {})}
    return {**expected, "example": answer} if expected else {"contains": [answer]}


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts of a JSON value that are long enough to say something."""
    match value:
        case str() if len(value.strip()) > 1:
            yield value
        case list():
            for each in value:
                yield from _texts_in(each)
        case dict():
            yield from _texts_in(list(value.values()))
        case _:
            pass

"""The command show --prompt: what a model read before a reply, word for word."""

from typing import Any

import typer

from agent_core.audit.questions import AskedQuestion, find_question, list_questions
from agent_core.journal.chain import check_chains
from agent_core.journal.facts import Question
from engine_shim.cli import output
from engine_shim.cli.records.recorded import find_recorded
from engine_shim.runs.loops import LOOPS
from utools.databases.store_address import StoreAddress


def show_prompt(run: str, place: str, store: StoreAddress | None, *, as_json: bool) -> int:
    """Write the messages of the question at a step, or at STRAND:N, and the options that went with them."""
    run_id, tape = find_recorded(run, store).load()
    check_chains(run_id, tape)
    asked = find_question(run_id, tape, _choose(place, list_questions(tape)), LOOPS)
    if as_json:
        output.document(asked._asdict())
        return output.OK
    output.line(f"{asked.strand}:{asked.n}  step {asked.step}, {asked.model}")
    for message in asked.messages:
        output.line()
        output.styled_line((f"── {message['role']} ──", "cyan"))
        output.line(_text_of(message))
    for name, value in _options_of(asked).items():
        output.line()
        output.styled_line((f"── {name} ──", "cyan"))
        output.line(output.as_text(value))
    return output.OK


def _choose(place: str, questions: list[Question]) -> Question:
    """Return the question that STEP or STRAND:N names. BadParameter where there is none, or several."""
    if place.isdecimal():
        found = [each for each in questions if each.step == int(place)]
    else:
        found = [each for each in questions if f"{each.strand}:{each.n}" == place]
    if len({each.strand for each in found}) > 1:
        named = ", ".join(_place_of(each) for each in found)
        raise typer.BadParameter(f"--prompt {place}: several agents have such a step; name one of {named}")
    if not found:
        known = ", ".join(f"{_place_of(each)} (step {each.step})" for each in questions) or "none: no model was asked"
        raise typer.BadParameter(f"--prompt {place}: there is no such question; there are {known}")
    return found[-1]


def _place_of(question: Question) -> str:
    return f"{question.strand}:{question.n}"


def _text_of(message: dict[str, Any]) -> str:
    """Return what a message says: its text, and the calls that a model made."""
    calls = message.get("tool_calls")
    return "\n".join(filter(None, (message.get("content"), output.as_text(calls) if calls else None)))


def _options_of(asked: AskedQuestion) -> dict[str, Any]:
    """Return the tools that went along, and all other options in one."""
    options = {name: value for name, value in asked.options.items() if value is not None and name != "tools"}
    tools = {"tools": asked.options["tools"]} if asked.options.get("tools") else {}
    return {**tools, **({"options": options} if options else {})}

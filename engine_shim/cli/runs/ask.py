"""ask_decision(): a person at the terminal decides on a call that waits."""

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_core.decisions import NAMES, Approve, Decision, Deny, Done, Edit, Fail, Retry, Skip, decode_decision
from agent_core.journal.path import parent_of, parse_segment, root_of, segments
from agent_core.journal.record import Tape
from engine_shim.cli.output import Options, list_origins
from engine_shim.cli.terminal import visible, visible_json
from utools.json_text import parse_json

Choices = Mapping[str, type[Decision]]
APPROVAL: Choices = {"y": Approve, "n": Deny, "edit": Edit}
IN_DOUBT: Choices = {"retry": Retry, "skip": Skip, "fail": Fail, "done": Done}
LONG_WORDS = {
    "yes": "y",
    "approve": "y",
    "no": "n",
    "deny": "n",
    "e": "edit",
    "r": "retry",
    "s": "skip",
    "f": "fail",
    "d": "done",
}

HOW_TO_EDIT = "(with EDITOR set, it opens there) "


class Left(Exception):
    """The person ended the input instead of deciding."""


def is_attended(options: Options) -> bool:
    """Return whether a person sits at the terminal, and may be asked."""
    return not options.as_json and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def ask_decision(call: Mapping[str, Any], tape: Tape, agent: str | None = None) -> Decision | None:
    """Return what the person decides about the call of this run; None when they end the input (Ctrl-D, Ctrl-C).

    `agent` is who calls; without it the call is named by its nodes.
    """
    in_doubt, place = call["reason"] == "in_doubt", describe_place(call["strand"], tape)
    of_several = place.partition(": ")[2] if agent else ""
    who = f"{agent} ({of_several})" if of_several else agent or place
    wants = f"{who} wants to call {call['tool']}, and waits for your yes or no"
    doubt = f"{call['tool']} may or may not have happened, in {place}"
    _write(f"? {doubt if in_doubt else wants}\n")
    _write(f"{_as_text(call['args'])}\n")
    _write("".join(f"{visible(told)}\n" for told in (*list_origins(call, "{}"), *_reason_of(call))))
    try:
        return _ask_choice(IN_DOUBT if in_doubt else APPROVAL, call["args"])
    except (Left, KeyboardInterrupt):
        _write("\n")
        return None


def _reason_of(call: Mapping[str, Any]) -> list[str]:
    """Return why the person is asked, where there is more to say than that the tool needs approval."""
    return [call["message"]] if call.get("message") else []


def ask_arguments(call: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the call's arguments as the person edits them; None when they end the input."""
    _write(f"{call['tool']} waits with\n{_as_text(call['args'])}\n")
    try:
        while (edited := _ask_args(call["args"])) is None:
            pass
    except (Left, KeyboardInterrupt):
        _write("\n")
        return None
    return edited


def describe_place(strand: str, tape: Tape) -> str:
    """Return the nodes and agents that a waiting call belongs to; of several calls at once, which it is."""
    parts = [parse_segment(segment) for segment in segments(strand)]
    place = visible(" › ".join(part.name for part in parts if part.name is not None)) or root_of(strand)
    if not parts or parts[-1].name is not None:
        return place
    number, asked = parts[-1].item + 1, tape[parent_of(strand)][parts[-1].number].record()
    return f"{place}: call {number} of {len(asked['tools'])}"


def _ask_choice(choices: Choices, args: dict[str, Any]) -> Decision:
    while True:
        word, _, rest = _read_line(f"[{'/'.join(choices)}] ").partition(" ")
        word = word.lower().rstrip(",.:")
        kind = choices.get(LONG_WORDS.get(word, word))
        if kind is None or (rest and kind is not Deny):
            _write(f"write one of {', '.join(choices)}\n")
        elif kind is Deny:
            return Deny(rest.strip() or _read_line("why? (the model reads it; may be empty) "))
        elif kind is Done:
            if (done := _ask_output()) is not None:
                return done
        elif kind is not Edit:
            return decode_decision({"decision": NAMES[kind]})
        elif (edited := _ask_args(args)) is not None:
            return Edit(edited)


def _ask_output() -> Done | None:
    """Return the result of a write that did happen; None, once it was said why, for what is no JSON."""
    try:
        return Done(parse_json(_read_line("what did it give? as JSON (null where there is nothing to say) ")))
    except ValueError as error:
        _write(f"this is not JSON: {error}\n")
        return None


def _ask_args(args: dict[str, Any]) -> dict[str, Any] | None:
    """Return the edited arguments; None, once it was said why, for what is no JSON object."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    try:
        text = _edit(editor, args) if editor else _read_line(f"{HOW_TO_EDIT}the arguments, as a JSON object: ")
        value = parse_json(text)
    except (OSError, subprocess.SubprocessError) as error:
        _write(f"the editor {editor!r} did not work: {error}\n")
        return None
    except ValueError as error:
        _write(f"this is not JSON: {error}\n")
        return None
    if not isinstance(value, dict):
        _write("this is not a JSON object\n")
        return None
    return value


def _edit(editor: str, args: dict[str, Any]) -> str:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "args.json")
        file.write_text(json.dumps(args, ensure_ascii=False, indent=2) + "\n", "utf-8")
        subprocess.run([*shlex.split(editor), str(file)], check=True, stdout=sys.stderr.fileno())
        return file.read_text("utf-8")


def _as_text(args: dict[str, Any]) -> str:
    text = json.dumps(args, ensure_ascii=False, indent=2)
    return "\n".join(f"    {line}" for line in visible_json(text).splitlines())


def _read_line(prompt: str) -> str:
    _write(prompt)
    _wait_for_line()
    line = sys.stdin.readline()
    if not line:
        raise Left
    return line.strip()


def _wait_for_line() -> None:
    """Wait until the terminal has a line, or a signal came: a read would not see one that came just before it."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    before = signal.set_wakeup_fd(wake)
    try:
        select.select([sys.stdin, woken], [], [])
    finally:
        signal.set_wakeup_fd(before)
        os.close(woken)
        os.close(wake)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()

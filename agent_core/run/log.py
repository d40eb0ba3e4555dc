"""LogListener: what happens in a run, as log records with fields; arguments and results only at DEBUG, and redacted."""

import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from agent_core.effects import Failed, ModelReply, ToolReply
from agent_core.journal.facts import Answered, Call, Decided, Question, RecordedRun, RunFinished, RunStarted, Waiting
from agent_core.journal.path import outermost_first
from agent_core.journal.reader import Reader
from agent_core.journal.record import Row, Tape
from agent_core.outputs import Json
from agent_core.protocol.clip import clip_value
from agent_core.records import AgentNote
from agent_core.run.row_listener import ActListener
from utools.secrets.redaction import Redactor

log = logging.getLogger("agent_core.run")
LONGEST_ERROR: Final = 300
"""Characters of an error in the log."""
LONGEST_OUTPUT: Final = 1000
"""Characters of a tool's result in the log."""
COUNTED: Final = ("input_tokens", "output_tokens")


@dataclass(slots=True)
class LogListener:
    """A driver's listener that logs `run_started`, `step`, `repair`, `tool_call`, `waiting`, `run_finished` at INFO.

    Each record has `event`, `run_id` and `fields` (see the README); where the run is traced, `trace_id` and `span_id`.
    """

    run: str
    redactor: Redactor
    observer: ActListener | None = None
    reader: Reader = field(default_factory=lambda: Reader(is_brief=True))

    def resume_from(self, tape: Tape) -> None:
        """Know the runs of a tape without logging them again; a run that has only begun was begun for this driver."""
        self.reader = Reader(is_brief=True)
        for path in outermost_first(tape):
            for row in tape[path]:
                self.reader.read(row)
        runs = self.reader.runs
        if len(tape) == len(runs) == 1 and all(len(rows) == 1 for rows in tape.values()):
            self._log_start(*runs.values())

    def _log_start(self, run: RecordedRun) -> None:
        about: Json = {} if run.definition else {"model": run.config["model"]}
        if run.max_steps is not None:
            about["max_steps"] = run.max_steps
        chosen: Json = {} if run.note is None else _chosen_tools(run.note)
        fields: Json = {"strand": run.path, **about, **chosen}
        self._log("run_started", run, **fields)

    def __call__(self, row: Row) -> None:
        fact = self.reader.read(row)
        match fact:
            case RunStarted(begun=run):
                self._log_start(run)
            case Answered(answer=ModelReply(usage=usage) as reply):
                tokens = {key: usage[key] for key in COUNTED}
                self._log("step", fact.run, model=reply.model, **tokens, seconds=round(reply.seconds, 3))
            case Answered(asked=Question(model=model), answer=Failed(reason=reason) as failed):
                fields: Json = {
                    "reason": reason,
                    "seconds": round(failed.seconds, 3),
                    "error": _in_line(failed.message),
                }
                self._log("step", fact.run, model=model, **fields)
            case Answered(answer=ToolReply() | Failed() as answer):
                self._log_call(fact, answer)
            case Decided():
                self._log_repairs(fact)
            case Waiting(tool=str(tool), reason=reason):
                event = {"until": fact.until, "signal": fact.signal}
                about: Json = {key: value for key, value in event.items() if value is not None}
                self._log("waiting", fact.run, tool=tool, reason=reason, **about)
            case RunFinished():
                self._log_end(fact)
            case _:
                pass

    def _log_repairs(self, decided: Decided) -> None:
        if problem := decided.unreadable or decided.refused:
            self._log("repair", decided.run, reason=problem["kind"])
            if log.isEnabledFor(logging.DEBUG):
                error = _in_line(self.redactor.text(problem["message"]))
                self._log("repair", decided.run, level=logging.DEBUG, reason=problem["kind"], error=error)
            return
        for call in decided.calls:
            if call["verdict"] == "refuse":
                self._log("repair", decided.run, tool=call["tool"], reason=call.get("reason"))

    def _log_call(self, answered: Answered, answer: ToolReply | Failed) -> None:
        call = answered.asked if isinstance(answered.asked, Call) else None
        tool = None if call is None else call.tool
        fields: Json = {"tool": tool, "success": answered.succeeded, "seconds": round(answer.seconds, 3)}
        if isinstance(answer, Failed):
            fields["reason"] = answer.reason
        if answered.error:
            fields["error"] = _in_line(answered.error)
        self._log("tool_call", answered.run, **fields)
        if log.isEnabledFor(logging.DEBUG):
            args = self.redactor.value(None if call is None else call.args)
            output = answer.output if isinstance(answer, ToolReply) else None
            result = {} if output is None else {"output": clip_value(self.redactor.value(output), LONGEST_OUTPUT)}
            self._log("tool_call", answered.run, level=logging.DEBUG, tool=tool, args=args, **result)

    def _log_end(self, ended: RunFinished) -> None:
        fields: Json = {"reason": ended.reason}
        if ended.usage is not None:
            fields["tokens"] = ended.usage["total_tokens"]
        if ended.error:
            fields["error"] = ended.error["kind"]
        if (run := ended.run) is not None:
            if run.step is not None:
                fields["steps"] = run.step
            passed = datetime.fromisoformat(ended.at) - datetime.fromisoformat(run.at)
            fields["seconds"] = round(passed.total_seconds(), 3)
        self._log("run_finished", run, **fields)
        self.reader.forget(ended.strand)

    def _log(self, event: str, run: RecordedRun | None, *, level: int = logging.INFO, **fields: Any) -> None:
        shown = {**({} if run is None else _fields_of(run)), **fields}
        step = f" {shown['step']}/{shown['max_steps']}" if event == "step" else ""
        hidden = ("step",) if event == "run_started" else ("step", "max_steps")
        rest = (f"{key}={value}" for key, value in shown.items() if key not in hidden)
        traced = {} if self.observer is None or run is None else self.observer.ids_of(run.path)
        extra = {"event": event, "run_id": self.run, "fields": shown, **traced}
        try:
            log.log(level, "%s%s run_id=%s %s", event, step, self.run, " ".join(rest), extra=extra)
        except Exception:  # of a handler of the host's: the run does not end by its log
            logging.Handler().handleError(logging.makeLogRecord({"msg": f"{event} run_id={self.run}"}))


def _fields_of(run: RecordedRun) -> Json:
    """Return the fields that each log record of a run has."""
    if run.definition:
        return {"workflow": run.name}
    step = {} if run.step is None else {"step": run.step, "max_steps": run.max_steps}
    return {"agent": run.name, **step}


def listen_for_log(run: str, redactor: Redactor, observer: ActListener | None) -> list[LogListener]:
    """Return what logs a run, if anything reads such a log; the `observer` knows the spans."""
    return [LogListener(run, redactor, observer)] if log.isEnabledFor(logging.INFO) else []


def _in_line(text: str) -> str:
    """Return an error in one line, without control characters."""
    flat = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return flat if len(flat) <= LONGEST_ERROR else f"{flat[: LONGEST_ERROR - 1]}…"


def _chosen_tools(note: AgentNote) -> Json:
    dropped = ", ".join(f"{code} ({why})" for code, why in note["dropped"].items())
    return {"tools": ", ".join(note["kept"]) or "none", "without": dropped or "none"}

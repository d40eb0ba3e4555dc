"""RunLog: what happens in a run, as log records with fields; values of arguments only at DEBUG, and redacted."""

import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from agent_core.effects import Json
from agent_core.journal.path import is_within, name_of
from agent_core.journal.record import Row, Tape
from agent_core.run.appender import Listener
from agent_core.run.events import EventSource
from agent_core.run.observer import Observer
from utools.secrets.redaction import Redactor

log = logging.getLogger("agent_core.run")
LONGEST_ERROR: Final = 300
"""Characters of an error in the log."""
COUNTED: Final = ("input_tokens", "output_tokens")


@dataclass(slots=True)
class LoggedRun:
    """A run in progress: its agent or workflow, when it began, and the step that it is in.

    `chosen` says which tools an agent of the catalogue has, and why it lacks the others of its host.
    """

    path: str
    about: Json
    began: str
    max_steps: int | None = None
    step: int | None = None
    model: str | None = None
    chosen: Json = field(default_factory=dict)

    def fields(self) -> Json:
        return {**self.about, **({} if self.step is None else {"step": self.step, "max_steps": self.max_steps})}


@dataclass(slots=True)
class RunLog:
    """A driver's listener that logs `run_started`, `step`, `repair`, `tool_call`, `waiting`, `run_finished` at INFO.

    Each record has `event`, `run_id` and `fields` (see the README); where the run is traced, `trace_id` and `span_id`.
    """

    run: str
    redactor: Redactor
    listener: Listener | None = None
    observer: Observer | None = None
    runs: dict[str, LoggedRun] = field(default_factory=dict)
    asked: dict[str, Json] = field(default_factory=dict)

    def resume_from(self, tape: Tape) -> None:
        """Know the runs of a tape without logging them again; a run that has only begun was begun for this driver."""
        if isinstance(self.listener, EventSource):
            self.listener.resume_from(tape)
        for path, rows in tape.items():
            for row in rows:
                self._follow(path, row.record())
        if len(tape) == len(self.runs) == 1 and all(len(rows) == 1 for rows in tape.values()):
            self._log_start(*tape)

    def _log_start(self, path: str) -> None:
        run = self.runs[path]
        model: Json = {} if run.model is None else {"model": run.model}
        limit: Json = {} if run.max_steps is None else {"max_steps": run.max_steps}
        self._log("run_started", run, strand=path, **model, **limit, **run.chosen)

    def __call__(self, row: Row) -> None:
        if self.listener is not None:
            self.listener(row)
        record = row.record()
        asked = self.asked.get(row.path, {})
        self._follow(row.path, record)
        owner = self._owner(row.path)
        match record:
            case {"kind": "run_started"}:
                self._log_start(row.path)
            case {"kind": "answered", "reply": "said", "usage": usage, "seconds": seconds}:
                tokens = {key: usage[key] for key in COUNTED}
                self._log("step", owner, model=record["model"], **tokens, seconds=round(seconds, 3))
            case {"kind": "answered", "reply": "failed", "reason": reason} if asked.get("ask") == "model":
                fields = {
                    "reason": reason,
                    "seconds": round(record["seconds"], 3),
                    "error": _in_line(record["message"]),
                }
                self._log("step", owner, model=asked["model"], **fields)
            case {"kind": "decided", "unreadable": {"kind": reason}} | {"kind": "decided", "refused": {"kind": reason}}:
                self._log("repair", owner, reason=reason)
            case {"kind": "decided", "calls": calls}:
                for call in calls:
                    if call["verdict"] == "refuse":
                        self._log("repair", owner, tool=call["tool"], reason=call["reason"])
            case {"kind": "answered", "reply": "did" | "failed"}:
                self._log_call(owner, asked, record)
            case {"kind": "waiting", "tool": tool, "reason": reason}:
                self._log("waiting", owner, tool=tool, reason=reason)
            case {"kind": "run_finished"}:
                self._log_end(owner, record)

    def _log_call(self, owner: LoggedRun | None, asked: Json, record: Json) -> None:
        success = record.get("success", False)
        fields = {"tool": asked.get("tool"), "success": success, "seconds": round(record["seconds"], 3)}
        if "reason" in record:
            fields["reason"] = record["reason"]
        if error := record.get("error") or record.get("message"):
            fields["error"] = _in_line(error)
        self._log("tool_call", owner, **fields)
        if log.isEnabledFor(logging.DEBUG):
            args = self.redactor.value(asked.get("args"))
            self._log("tool_call", owner, level=logging.DEBUG, tool=asked.get("tool"), args=args)

    def _log_end(self, owner: LoggedRun | None, record: Json) -> None:
        fields: Json = {"reason": record.get("finish_reason") or record.get("status")}
        if "usage" in record:
            fields["tokens"] = record["usage"]["total_tokens"]
        if record.get("error"):
            fields["error"] = record["error"]["kind"]
        if owner is not None:
            if owner.step is not None:
                fields["steps"] = owner.step
            passed = datetime.fromisoformat(record["at"]) - datetime.fromisoformat(owner.began)
            fields["seconds"] = round(passed.total_seconds(), 3)
        self._log("run_finished", owner, **fields)

    def _log(self, event: str, owner: LoggedRun | None, *, level: int = logging.INFO, **fields: Any) -> None:
        shown = {**(owner.fields() if owner else {}), **fields}
        step = f" {shown['step']}/{shown['max_steps']}" if event == "step" else ""
        hidden = ("step",) if event == "run_started" else ("step", "max_steps")
        rest = (f"{key}={value}" for key, value in shown.items() if key not in hidden)
        traced = {} if self.observer is None or owner is None else self.observer.ids_of(owner.path)
        extra = {"event": event, "run_id": self.run, "fields": shown, **traced}
        log.log(level, "%s%s run_id=%s %s", event, step, self.run, " ".join(rest), extra=extra)

    def _follow(self, path: str, record: Json) -> None:
        match record:
            case {"kind": "run_started"}:
                self.runs[path] = _logged_run(path, record)
            case {"kind": "asked"}:
                self.asked[path] = record
                owner = self.runs.get(path)
                if owner is not None and record["ask"] == "model":
                    owner.step = record["step"]

    def _owner(self, path: str) -> LoggedRun | None:
        owners = [run for run in self.runs if is_within(path, run)]
        return self.runs[max(owners, key=len)] if owners else None


def with_log(
    run: str, redactor: Redactor, listener: Listener | None, observer: Observer | None = None
) -> Listener | None:
    """The same listener, with a log around it where somebody listens to that; the observer knows the spans."""
    return RunLog(run, redactor, listener, observer) if log.isEnabledFor(logging.INFO) else listener


def _in_line(text: str) -> str:
    """An error in one line, without control characters."""
    flat = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return flat if len(flat) <= LONGEST_ERROR else f"{flat[: LONGEST_ERROR - 1]}…"


def _logged_run(path: str, record: Json) -> LoggedRun:
    if "definition" in record:
        return LoggedRun(path, {"workflow": record["definition"]["id"]}, record["at"])
    note = record.get("agent")
    about = {"agent": name_of(path) if note is None else note["name"]}
    chosen = {} if note is None else _chosen_tools(note)
    return LoggedRun(path, about, record["at"], record["limits"]["steps"], None, record["config"]["model"], chosen)


def _chosen_tools(note: Json) -> Json:
    dropped = ", ".join(f"{code} ({why})" for code, why in note["dropped"].items())
    return {"tools": ", ".join(note["kept"]) or "none", "without": dropped or "none"}

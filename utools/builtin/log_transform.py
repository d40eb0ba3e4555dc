"""`log_transform`: log lines parsed into fields, filtered and counted. It runs no expression of a model."""

import io
import json
import os
from collections import Counter, deque
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TextIO

from utools.calls.deadline import Check, deadline_check
from utools.errors import DefinitionError, ToolError
from utools.files.sandbox import Sandbox
from utools.json_text import to_text
from utools.lazy_pattern import lazy_compile
from utools.schema.json_value import NotJson, as_json
from utools.tool import Args, Tool, ToolContext

MAX_BYTES = 32 * 2**20
MAX_LINE = 8192
"""Characters of a line that are read."""
MAX_VALUES = 100_000
"""Different values of one field that are counted."""
LINES_PER_CHECK = 100
"""After so many lines the deadline is checked."""
DEPTH_OF_LINE = 2
"""How deep the fields of a line are in the tool's output."""
LEVELS = ["trace", "debug", "info", "warning", "error", "critical"]
LEVEL_NAMES = {"warn": "warning", "err": "error", "fatal": "critical", "panic": "critical", "notice": "info"}
TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
PLAIN = lazy_compile(rf"\[?(?P<time>{TIME})\]?\s+\[?(?P<level>[A-Za-z]{{3,8}})\]?:?\s+(?P<message>.*)")
ACCESS = lazy_compile(
    r'(?P<host>\S{1,255}) \S{1,255} (?P<user>\S{1,255}) \[(?P<time>[^\]]{1,40})\] "(?P<method>[A-Z]{1,10}) '
    r'(?P<path>(?:[^\s"\\]|\\.){1,4096}+)[^"]{0,20}" (?P<status>\d{3}) (?P<size>\d{1,15}|-)'
)
WEB = "%d/%b/%Y:%H:%M:%S %z"
PAIR = lazy_compile(r'(?<![\w.\-])([A-Za-z_][\w.\-]{0,63}+)=(?:"((?:[^"\\]|\\.)*+)"|(\S*))')
ESCAPED = lazy_compile(r'\\(["\\])')


def log_transform(root: str | os.PathLike[str] = ".") -> Tool:
    """Return the tool `log_transform`, which sees no file outside `root`."""

    def execute(args: Args, context: ToolContext) -> dict[str, Any]:
        if ("path" in args) == ("text" in args):
            raise ToolError("give either the path of a log file, or the text of its lines")
        if "text" in args:
            return transform(io.StringIO(args["text"], newline=None), args, deadline_check(context))
        return transform(_open(Sandbox(root), args["path"]), args, deadline_check(context))

    return Tool(
        code="log_transform",
        description="Parse log lines (plain, JSON, key=value, web server), filter them, and count them by a field.",
        config_schema=SCHEMA,
        output_schema=OUTPUT,
        examples=[
            {
                "user": "How many errors are in logs/web.log?",
                "args": {"path": "logs/web.log", "level": "error"},
                "output": {"total": 40, "matched": 3, "lines": []},
                "answer": "3 errors.",
            }
        ],
        execute=execute,
        effect="read",
        check=_check,
        inward=True,
    )


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "description": "A log file."},
        "text": {"type": "string", "description": "Log lines, instead of a file."},
        "level": {"enum": LEVELS, "description": "Only lines of this level or above."},
        "contains": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_LINE,
            "description": "Only lines that hold this text, ignoring case.",
        },
        "where": {
            "type": "object",
            "additionalProperties": {"type": ["string", "number", "boolean"]},
            "maxProperties": 20,
            "description": "Only lines whose fields have these values.",
        },
        "since": {"type": "string", "description": "ISO 8601; only lines from then on."},
        "until": {"type": "string", "description": "ISO 8601; only lines before then."},
        "count_by": {"type": "string", "minLength": 1, "description": "Count the lines by this field."},
        "limit": {"type": "integer", "minimum": 0, "maximum": 1000, "default": 50, "description": "Lines to give."},
    },
}
OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "total": {"type": "integer"},
        "matched": {"type": "integer"},
        "lines": {"type": "array", "items": {"type": "object"}},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "additionalProperties": False,
}


def transform(file: TextIO, args: Args, check: Check = lambda: None) -> dict[str, Any]:
    """Return the last `limit` lines that fit, as fields; how many fit, how many there are; and the counts.

    Only these lines are held in memory. `check` is called now and then, and may raise.
    """
    args = {**args, "contains": args["contains"].casefold()} if "contains" in args else args
    since, until = (_required_time(args[name], name) if name in args else None for name in ("since", "until"))
    total, matched = 0, 0
    last: deque[dict[str, Any]] = deque(maxlen=args.get("limit", 50))
    counts = _Counts(args["count_by"]) if "count_by" in args else None
    for line in _lines(file):
        if total % LINES_PER_CHECK == 0:
            check()
        total += 1
        fields = parse_line(line)
        if _fits(fields, args, since, until):
            matched += 1
            last.append(fields)
            if counts is not None:
                counts.add(fields)
    output: dict[str, Any] = {"total": total, "matched": matched, "lines": list(last)}
    return output if counts is None else {**output, "counts": dict(counts.counter.most_common(100))}


class _Counts:
    """How often each value of a field occurs; ToolError if there are too many values."""

    def __init__(self, field: str) -> None:
        self.field = field
        self.counter: Counter[str] = Counter()

    def add(self, fields: dict[str, Any]) -> None:
        if self.field in fields:
            self.counter[to_text(fields[self.field])] += 1
        if len(self.counter) > MAX_VALUES:
            raise ToolError(
                "the field {field!r} has more than {most} different values; count by one that has fewer, "
                "or choose fewer lines, by level, contains, where, since or until",
                field=self.field,
                most=MAX_VALUES,
            )


def _lines(file: TextIO) -> Iterator[str]:
    """Yield each line that is not blank, up to MAX_LINE characters; the rest of a longer one is never held."""
    while line := file.readline(MAX_LINE):
        rest = line
        while rest and not rest.endswith("\n"):
            rest = file.readline(MAX_LINE)
        if line.strip():
            yield line.rstrip("\n")


def parse_line(line: str) -> dict[str, Any]:
    """Return the fields of a line: at least `message`; `time` and `level` if it has them, levels with one name each."""
    fields = _json_fields(line) or _text_fields(line)
    level = str(fields.get("level", fields.get("severity", ""))).lower()
    level = LEVEL_NAMES.get(level, level)
    return {**fields, "level": level} if level in LEVELS else fields


def _json_fields(line: str) -> dict[str, Any] | None:
    """Return the fields of a line that is a JSON object; None for any other line."""
    if not line.startswith("{"):
        return None
    try:
        fields: dict[str, Any] = as_json(json.loads(line), depth=DEPTH_OF_LINE)
    except (NotJson, ValueError, RecursionError):
        return None
    for name, other in (("message", "msg"), ("time", "timestamp"), ("time", "ts")):
        if name not in fields and other in fields:
            fields[name] = fields.pop(other)
    return {"message": "", **fields}


def _text_fields(line: str) -> dict[str, Any]:
    if access := ACCESS.match(line):
        return {**access.groupdict(), "message": line}
    plain = PLAIN.match(line)
    fields: dict[str, Any] = plain.groupdict() if plain else {"message": line}
    pairs = {name: ESCAPED.sub(r"\1", quoted) or bare for name, quoted, bare in PAIR.findall(fields["message"])}
    if plain is None and "msg" in pairs:
        pairs["message"] = pairs.pop("msg")
    return {**fields, **pairs}


def _fits(fields: dict[str, Any], args: Args, since: datetime | None, until: datetime | None) -> bool:
    level = fields.get("level")
    if "level" in args and (level not in LEVELS or LEVELS.index(level) < LEVELS.index(args["level"])):
        return False
    if "contains" in args and args["contains"] not in to_text(fields).casefold():
        return False
    if any(to_text(fields.get(name)) != to_text(value) for name, value in args.get("where", {}).items()):
        return False
    if since is None and until is None:
        return True
    at = _time(fields.get("time"))
    return at is not None and (since is None or at >= since) and (until is None or at < until)


def _time(value: Any) -> datetime | None:
    """Return a line's time, in UTC if it names no offset; None if it has no time that can be read."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.strptime(value, WEB) if "/" in value else datetime.fromisoformat(value.replace(",", "."))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _check(args: Args) -> None:
    for name in ("since", "until"):
        try:
            if name in args:
                _required_time(args[name], name)
        except ToolError as error:
            raise DefinitionError(str(error), where=name) from None


def _required_time(value: str, name: str) -> datetime:
    at = _time(value)
    if at is None:
        raise ToolError(
            "{name} must be a time in ISO 8601, such as 2026-01-31T08:00:00Z; you gave {value!r}",
            name=name,
            value=value,
        )
    return at


def _open(sandbox: Sandbox, path: str) -> TextIO:
    """Return a file as it is now; lines that are written to it later are not read."""
    with sandbox.open(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_BYTES:
            raise ToolError(
                "{path!r} has {size} bytes, and at most {most} are read; give a smaller file",
                path=path,
                size=size,
                most=MAX_BYTES,
            )
        raw = file.read(size)
    return io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8", errors="replace")

"""`wait`: holds a branch of a workflow until a time, or until somebody sends its run a signal."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from utools.errors import DefinitionError, ToolError
from utools.signal_name import SIGNAL_NAME
from utools.tool import Args, Tool, ToolContext

LONGEST_S: Final = 315_360_000
"""The longest wait in seconds: ten years."""
EVENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "signal": {"type": ["string", "null"]},
        "data": {},
        "by": {"type": ["string", "null"]},
        "at": {"type": "string"},
        "until": {"type": ["string", "null"]},
    },
    "required": ["signal"],
    "additionalProperties": False,
}
"""What came: the `signal` with its `data`, and the caller who sent it `by` their name; the three are null where the
time has come. `at` is when, `until` the end of the wait."""


def wait() -> Tool:
    """Return the tool `wait`. Its result says for what a node waits; the workflow's run then waits for that."""

    async def execute(args: Args, context: ToolContext) -> Args:
        now = datetime.now(UTC) if context.clock is None else datetime.fromtimestamp(context.clock(), UTC)
        return {"signal": args.get("signal"), "until": _find_end(args, now)}

    return Tool(
        code="wait",
        description="Wait for seconds, until a time, or for a signal that somebody sends to the run.",
        config_schema={
            "type": "object",
            "properties": {
                "seconds": {
                    "type": "number",
                    "minimum": 0,
                    "maximum": LONGEST_S,
                    "description": "How long; with a signal, how long at most.",
                },
                "until": {"type": "string", "description": "A time with its zone, as in 2026-12-01T08:00:00Z."},
                "signal": {
                    "type": "string",
                    "pattern": SIGNAL_NAME,
                    "description": "The name of a signal: POST /runs/{id}/signals/{name}, `agent-core signal`.",
                },
            },
            "minProperties": 1,
            "additionalProperties": False,
        },
        output_schema=EVENT,
        execute=execute,
        effect="read",
        check=_check,
        node_only=True,
        awaits=True,
    )


def _check(args: Args) -> None:
    """DefinitionError for a time that cannot be read, and for two ends of one wait."""
    if "seconds" in args and "until" in args:
        raise DefinitionError("wait takes seconds or until, not both", where="until", value=args["until"])
    if isinstance(text := args.get("until"), str):
        try:
            _read_time(text)
        except ToolError as error:
            raise DefinitionError(str(error), where="until") from None


def _find_end(args: Args, now: datetime) -> str | None:
    """Return when a wait that begins now ends, in ISO 8601, UTC; None where a signal alone ends it."""
    if "seconds" in args and "until" in args:
        raise ToolError("wait takes seconds or until, not both")
    if "seconds" in args:
        return _write_time(now + timedelta(seconds=args["seconds"]))
    return _write_time(_read_time(args["until"])) if "until" in args else None


def _read_time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ToolError("{text!r} is no time; write it with its zone, as in 2026-12-01T08:00:00Z", text=text) from None
    if time.tzinfo is None:
        raise ToolError("{text!r} has no time zone; write 2026-12-01T08:00:00Z, or +01:00 in place of Z", text=text)
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ToolError("{text!r} is not within the years 1 to 9999, in UTC", text=text) from None


def _write_time(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")

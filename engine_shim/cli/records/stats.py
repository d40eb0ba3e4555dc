"""The command stats: how workflows, agents and tools fared over many runs, and what models cost."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from agent_core.audit.totals import ModelTotals, Totals
from agent_core.errors import JournalError
from agent_core.journal.signature import split_own_strands
from engine_shim.cli import output
from engine_shim.cli.store import open_named_store
from engine_shim.store.entries import RunFilter
from engine_shim.store.journal_runs import list_runs
from utools.databases.store_address import StoreAddress


def show_stats(wanted: RunFilter, path: StoreAddress | None, *, as_json: bool) -> int:
    """Count these runs of the store, one after another, and write the sums."""
    store = open_named_store(path)
    totals, unreadable = Totals(), list[str]()
    for entry in list_runs(store, wanted):
        try:
            tape = split_own_strands(store.journal.load(entry.run))[0]
            totals.add_run(entry.workflow, entry.status, tape)
        except (JournalError, KeyError, TypeError, ValueError):  # a damaged run; `verify` says what is wrong with it
            unreadable.append(entry.run)
    store.close()
    if as_json:
        output.document({**_as_data(totals), "unreadable": unreadable})
        return output.OK
    for line in _tables(totals):
        output.line(line)
    if unreadable:
        output.line(f"{output.count(len(unreadable), 'run')} cannot be read, such as {unreadable[0]}")
    return output.OK


def _as_data(totals: Totals) -> dict[str, Any]:
    workflows = {
        name: {
            "runs": each.runs,
            "statuses": dict(each.statuses),
            "errors": dict(each.errors),
            "failure_rate": each.failure_rate,
        }
        for name, each in sorted(totals.workflows.items())
    }
    tools = {
        name: {"calls": each.calls, "failed": each.failed, "average_seconds": _average(each.seconds, each.answered)}
        for name, each in sorted(totals.tools.items())
    }
    agents = {
        name: {
            "runs": each.runs,
            "finish_reasons": dict(each.reasons),
            "steps": each.models.replies,
            "tool_calls": each.tool_calls,
            "tokens": each.models.tokens,
            "cost": each.models.cost if each.models.priced else None,
            "average_seconds": _average(each.seconds, each.runs),
        }
        for name, each in sorted(totals.agents.items())
    }
    by_model = {name: _model_as_data(each) for name, each in sorted(totals.by_model.items())}
    models = {**_model_as_data(totals.models), "by_model": by_model}
    return {"workflows": workflows, "agents": agents, "tools": tools, "models": models}


def _model_as_data(model: ModelTotals) -> dict[str, Any]:
    tokens = {
        "input": model.input_tokens,
        "output": model.output_tokens,
        "cached": model.cached_tokens,
        "cache_write": model.cache_write_tokens,
        "reasoning": model.reasoning_tokens,
    }
    return {"replies": model.replies, "tokens": tokens, "cost": model.cost if model.priced else None}


def _list_parts(model: ModelTotals) -> str:
    """Return the tokens that are counted apart."""
    parts = {
        "cached": model.cached_tokens,
        "written to a cache": model.cache_write_tokens,
        "thought": model.reasoning_tokens,
    }
    return ", ".join(f"{count:,} {what}" for what, count in parts.items() if count) or "-"


def _average(total: float, number: int) -> float | None:
    return total / number if number else None


def _tables(totals: Totals) -> list[str]:
    """Return a line for each workflow, for each agent, for each tool, for each model, and one for all models."""
    workflows = [
        (name, f"{each.runs:,}", _percent(each.failure_rate), _list_counts(each.statuses), _list_counts(each.errors))
        for name, each in sorted(totals.workflows.items(), key=lambda item: -item[1].runs)
    ]
    tools = [
        (name, f"{each.calls:,}", f"{each.failed:,}", _seconds(_average(each.seconds, each.answered)))
        for name, each in sorted(totals.tools.items(), key=lambda item: -item[1].calls)
    ]
    agents = [
        (
            *(name, f"{each.runs:,}", _list_counts(each.reasons) or "-", f"{each.models.replies:,}"),
            *(f"{each.tool_calls:,}", f"{each.models.tokens:,}", _cost(each.models)),
            _seconds(_average(each.seconds, each.runs)),
        )
        for name, each in sorted(totals.agents.items(), key=lambda item: -item[1].runs)
    ]
    lines = _table(("workflow", "runs", "failure rate", "statuses", "errors"), workflows)
    lines += _table(("agent", "runs", "ended by", "steps", "calls", "tokens", "cost", "average"), agents)
    lines += _table(("tool", "calls", "failed", "average"), tools)
    models = [
        (name, f"{each.replies:,}", f"{each.input_tokens:,} + {each.output_tokens:,}", _list_parts(each), _cost(each))
        for name, each in sorted(totals.by_model.items(), key=lambda item: -item[1].replies)
    ]
    lines += _table(("model", "replies", "tokens", "of these", "cost"), models)
    if (both := totals.models).replies:
        cost = f"; {both.cost:.4f} USD for the {both.priced:,} with a price" if both.priced else ""
        tokens = f"{both.input_tokens:,} + {both.output_tokens:,} tokens"
        lines += ["", f"models: {both.replies:,} replies, {tokens}{cost}"]
    return lines[1:] if lines else ["no runs"]


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return an empty line, the head, and the rows; nothing without rows."""
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return ["", *("  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows))]


def _list_counts(counts: Counter[Any]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in counts.most_common())


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1%}"


def _cost(model: ModelTotals) -> str:
    return f"{model.cost:.4f} USD" if model.priced else "-"


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.3f} s"

"""canned_tool(): a tool that answers from a list, in place of a real one or all by itself."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

from engine_shim.definition.errors import Problem
from engine_shim.evals.cases import CannedAnswer, CannedTool
from engine_shim.evals.matching import fits
from utools.schema.config_schema import ConfigSchema
from utools.tool import Args, Tool, ToolContext, ToolResult

NOTHING_FITS = "no answer is known for these arguments"
DESCRIPTION = "Answers from what was recorded."


def canned_tool(code: str, canned: CannedTool, real: Tool | None) -> Tool:
    """Return the tool with these answers. To a model it looks as the real one does, but for what `canned` says of
    itself.

    Without a real one it is what `canned` says alone.
    """
    execute = _answering(canned.answers)
    if real is None:
        return Tool(
            code=code,
            description=canned.description or DESCRIPTION,
            config_schema=canned.config_schema or {},
            execute=execute,
            effect=canned.effect or "read",
            foreign=True,
        )
    given = {"description": canned.description, "config_schema": canned.config_schema, "effect": canned.effect}
    effect = "read" if real.effect == "nested" else real.effect
    changes: dict[str, Any] = {"effect": effect, **{key: value for key, value in given.items() if value is not None}}
    return replace(real, execute=execute, check=None, cache=None, **changes)


def find_misfits(code: str, canned: CannedTool, real: Tool) -> list[Problem]:
    """Return the outputs that the real tool could not give."""
    if real.output_schema is None:
        return []
    schema = ConfigSchema(real.output_schema, foreign=True, where="output_schema", known_good=True)
    return [
        Problem(
            f"canned/{code}/answers/{index}/output{fault.pointer}",
            f"the tool {code} gives no such output: {fault.message}",
        )
        for index, answer in enumerate(canned.answers)
        if answer.error is None
        for fault in schema.faults(answer.output)
    ]


def _answering(answers: list[CannedAnswer]) -> Any:
    """Return what executes the tool. Each run counts for itself which answers it has had."""
    given: defaultdict[str, set[int]] = defaultdict(set)

    async def execute(args: Args, context: ToolContext) -> ToolResult:
        fitting = [index for index, answer in enumerate(answers) if fits(answer.args, args)]
        if not fitting:
            return ToolResult(False, error=NOTHING_FITS)
        used = given[context.run_id]
        index = next((each for each in fitting if each not in used), fitting[-1])
        used.add(index)
        answer = answers[index]
        return ToolResult(answer.error is None, answer.output, answer.error)

    return execute

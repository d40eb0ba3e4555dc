"""find_problems(): unknown tools that cases name, and impossible canned tools."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from agent_core.config import AllowedTool
from agent_core.errors import DefinitionError
from agent_core.policy import has_wildcard
from engine_shim.definition.errors import Problem, problems_in
from engine_shim.evals.canned import find_misfits
from engine_shim.evals.cases import Case, CaseFile
from engine_shim.evals.suite import FIXED, Suite
from utools.registry import ToolRegistry

TOOLS_OF_THE_AGENT = "tools are those of the workflow's agent; leave them out"


def find_problems(file: CaseFile, suite: Suite, indexes: Sequence[int]) -> Iterator[Problem]:
    """Yield what is wrong with the cases of a file, once the tools are known.

    `suite` has them as they are run, `indexes` are their places in the file.
    """
    yield from _file_problems(file)
    real = suite.build_registry({})
    names = set[str]()
    for index, written, case in zip(indexes, file.cases, suite.cases, strict=True):
        where = f"cases/{index}"
        if case.name in names:
            yield Problem(f"{where}/name", f"the name {case.name!r} is given twice")
        names.add(case.name)
        yield from _workflow_problems(written, where, has_workflow=file.workflow is not None)
        yield from _key_problems(case, where, suite)
        yield from _unfilled(case, where, suite)
        try:
            registry = suite.build_registry(case.canned)
        except DefinitionError as error:
            for each in problems_in(error):
                code = each.where.split("/")[1] if each.where.startswith("canned/") else ""
                yield Problem(each.where if code in file.canned else f"{where}/{each.where}", each.message)
            continue
        yield from _misfits(written, file, where, real)
        yield from _unknown_tools(written, file, where, registry, suite)


def _file_problems(file: CaseFile) -> Iterator[Problem]:
    if file.workflow is None and file.node is not None:
        yield Problem("node", "node belongs to a workflow; name that too")
    if file.workflow is not None and file.tools is not None:
        yield Problem("tools", TOOLS_OF_THE_AGENT)


def _workflow_problems(case: Case, where: str, *, has_workflow: bool) -> Iterator[Problem]:
    """Yield what a case says for a workflow that is not there, or in place of it."""
    if not has_workflow and (case.inputs or case.nodes):
        key = "inputs" if case.inputs else "nodes"
        yield Problem(f"{where}/{key}", "inputs and nodes belong to a workflow; give message")
    if has_workflow and case.tools is not None:
        yield Problem(f"{where}/tools", TOOLS_OF_THE_AGENT)


def _key_problems(case: Case, where: str, suite: Suite) -> Iterator[Problem]:
    for key in sorted({*FIXED, "max_steps"} & case.config.keys()):
        yield Problem(f"{where}/config/{key}", "does not belong here: the case or --model decides it")
    if suite.tools is not None and suite.agent is None and case.tools is None:
        yield Problem("tools", "name the host's tools that are offered, once for all cases or in each case")


def _unfilled(case: Case, where: str, suite: Suite) -> Iterator[Problem]:
    """Yield what is missing for the placeholders of the measured agent."""
    try:
        if suite.agent is not None:
            suite.agent.config_for(case)
    except DefinitionError as error:
        for each in problems_in(error):
            yield Problem(where, f"{each}; the case's inputs and nodes fill placeholders")


def _misfits(case: Case, file: CaseFile, where: str, real: ToolRegistry) -> Iterator[Problem]:
    """Canned outputs that the tools they stand for could not give."""
    tools = {tool.code: tool for tool in real.all()}
    for at, canned in ((f"{where}/", case.canned), ("", file.canned)):
        for code, each in canned.items():
            if code in tools:
                yield from (
                    Problem(f"{at}{found.where}", found.message) for found in find_misfits(code, each, tools[code])
                )


def _unknown_tools(case: Case, file: CaseFile, where: str, registry: ToolRegistry, suite: Suite) -> Iterator[Problem]:
    """Yield each tool that is named and not there. Those that are offered may be globs."""
    codes = [tool.code for tool in registry.for_models()]
    offered = file.tools if case.tools is None else case.tools
    for place, name in _offered(offered or (), "" if case.tools is None else f"{where}/"):
        if has_wildcard(name):
            if not any(fnmatchcase(code, name) for code in codes):
                yield Problem(place, f"no tool fits this pattern (got {name!r})")
        elif name not in codes:
            yield Problem(place, suite.explain_unknown(name, codes))
    for place, name in _expected(case, where):
        if name not in codes:
            yield Problem(place, suite.explain_unknown(name, codes))


def _offered(tools: Sequence[str | AllowedTool], where: str) -> Iterator[tuple[str, str]]:
    for index, entry in enumerate(tools):
        yield f"{where}tools/{index}", entry if isinstance(entry, str) else entry.tool


def _expected(case: Case, where: str) -> Iterator[tuple[str, str]]:
    for key, named in (("calls", case.calls), ("refused", case.refused), ("forbidden", case.forbidden)):
        for index, each in enumerate(named):
            yield f"{where}/{key}/{index}/tool", each.tool

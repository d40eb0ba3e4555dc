"""load_tests(): a test file and the workflow that it tests, read and checked; every fault has its place."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agent_core.errors import DefinitionError
from engine_shim.definition.errors import Problem, refuse
from engine_shim.definition.load import Workflow, load_workflow
from engine_shim.definition.model import AGENT
from engine_shim.evals.canned import find_misfits
from engine_shim.evals.read import different_name, find_faults
from engine_shim.host.config import HostConfig
from engine_shim.host.find import find_host_config, open_host
from engine_shim.host.registry import build_registry
from engine_shim.testing.cases import FlowCase, FlowCases, Made, Mock
from engine_shim.testing.mark import MARK, is_test_file
from engine_shim.testing.mocks import as_canned
from utools.document import read_document
from utools.registry import ToolRegistry
from utools.schema.faults import hint

SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class FlowTests:
    """The cases of a file with the workflow that they test, its host, and the host's tools."""

    path: Path
    workflow: Workflow
    host: HostConfig
    tools: ToolRegistry
    cases: tuple[FlowCase, ...]


def find_tests(path: Path) -> Path:
    """Return the test file of a path: itself, or the one that tests the workflow there. DefinitionError without
    one."""
    if is_test_file(path):
        return path
    if path.is_dir():
        raise DefinitionError("is a directory; name the file of a workflow, or of its tests", where=str(path))
    beside = [path.with_name(f"{path.stem}{MARK}{suffix}") for suffix in SUFFIXES]
    for each in beside:
        if each.is_file():
            return each
    raise DefinitionError(f"there are no tests of it; write them into {beside[0].name}", where=str(path))


def load_tests(path: Path, config: Path | None = None) -> FlowTests:
    """Return the tests in a file. DefinitionErrors for each fault of it, with its line, and for those of the
    workflow."""
    document = read_document(path, "the test file")
    refuse(map(document.locate, find_faults(FlowCases, document.data)))
    written = _name_cases(FlowCases.model_validate(document.data))
    flow = _find_workflow(written, path)
    workflow = load_workflow(flow)
    host = open_host(find_host_config(config, flow))
    tools = build_registry(host)
    refuse(map(document.locate, _unknown_names(written, workflow, tools)))
    cases = [each.model_copy(update={"mock": {**written.mock, **each.mock}}) for each in written.cases]
    return FlowTests(path, workflow, host, tools, tuple(cases))


def _name_cases(written: FlowCases) -> FlowCases:
    """Return the cases so that two without a name, which are given the same, have different ones."""
    taken, cases = {case.name for case in written.cases if "name" in case.model_fields_set}, []
    for case in written.cases:
        name = case.name if "name" in case.model_fields_set else different_name(case.name, taken)
        taken.add(name)
        cases.append(case.model_copy(update={"name": name}))
    return written.model_copy(update={"cases": cases})


def _find_workflow(written: FlowCases, path: Path) -> Path:
    if written.workflow is not None:
        return path.parent / written.workflow
    stem = path.stem.removesuffix(MARK)
    for suffix in SUFFIXES:
        if stem != path.stem and (found := path.with_name(stem + suffix)).is_file():
            return found
    raise DefinitionError("name the workflow that is tested: workflow: FLOW.yaml", where=str(path))


def _unknown_names(written: FlowCases, workflow: Workflow, tools: ToolRegistry) -> Iterator[Problem]:
    """Yield each node and tool that the file names and the workflow lacks, and each name that two cases have."""
    nodes = [*workflow.nodes]
    known = [*nodes, *(tool.code for tool in tools.all())]
    yield from _unknown(written.mock, "mock", known)
    yield from _misfits(written.mock, "mock", workflow, tools)
    seen = set[str]()
    for index, case in enumerate(written.cases):
        where = f"cases/{index}"
        if case.name in seen:
            yield Problem(f"{where}/name", f"the name {case.name!r} is given twice")
        seen.add(case.name)
        yield from _unknown(case.mock, f"{where}/mock", known)
        yield from _misfits(case.mock, f"{where}/mock", workflow, tools)
        if isinstance(case.replies, dict):
            askers = [name for name, node in workflow.nodes.items() if node.tool == AGENT]
            yield from _unknown((key for key in case.replies if "/" not in key), f"{where}/replies", askers)
        for key, calls in (("calls", case.calls), ("not_called", case.not_called)):
            yield from _unknown_calls(calls, f"{where}/{key}", nodes, known)


def _unknown_calls(calls: list[Made], where: str, nodes: list[str], known: list[str]) -> Iterator[Problem]:
    for index, call in enumerate(calls):
        if call.node is not None and call.node not in nodes:
            yield Problem(f"{where}/{index}/node", f"there is no node {call.node!r}; {hint(call.node, nodes)}")
        if call.tool is not None and call.tool not in (*known, AGENT):
            yield Problem(f"{where}/{index}/tool", f"there is no tool {call.tool!r}; {hint(call.tool, known)}")


def _unknown(names: Iterable[str], where: str, known: list[str]) -> Iterator[Problem]:
    for name in names:
        if name not in known:
            yield Problem(f"{where}/{name}", f"there is no such node or tool; {hint(name, known)}")


def _misfits(mocks: Mapping[str, Mock], where: str, workflow: Workflow, tools: ToolRegistry) -> Iterator[Problem]:
    """Yield each output that the real tool could not give."""
    for name, mock in mocks.items():
        code = workflow.nodes[name].tool if name in workflow.nodes else name
        for each in find_misfits(name, as_canned(mock), tools.get(code)) if code in tools else ():
            place = each.where.removeprefix(f"canned/{name}")
            yield replace(each, where=f"{where}/{name}{place if mock.answers else place.removeprefix('/answers/0')}")

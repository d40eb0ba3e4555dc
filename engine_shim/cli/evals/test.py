"""The command test: runs the cases of a workflow offline, and says of each what came otherwise."""

import asyncio
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from engine_shim.cli import output
from engine_shim.cli.terminal import visible
from engine_shim.errors import DefinitionError
from engine_shim.testing.load import FlowTests, find_tests, load_tests
from engine_shim.testing.run_case import CaseResult, run_case

Tested = tuple[FlowTests, list[CaseResult]]


def test_flows(
    paths: Sequence[Path], only: Sequence[str], junit: Path | None, config: Path | None, *, as_json: bool
) -> int:
    """Run the cases of these files, or of the workflows there, and write what came of each."""
    files = [load_tests(find_tests(path), config) for path in paths]
    names = [case.name for each in files for case in each.cases]
    for word in only:
        if not any(fnmatchcase(name, word) for name in names):
            raise DefinitionError(f"no case has this name; there are {', '.join(names)}", where="--only", value=word)
    tested = [(each, asyncio.run(_run_all(each, only, as_json=as_json))) for each in files]
    if junit is not None:
        _write_junit(tested, junit)
    results = [each for _, results in tested for each in results]
    failed = sum(not each.passed for each in results)
    if as_json:
        output.document({"passed": len(results) - failed, "failed": failed, "cases": _as_data(tested)})
    else:
        output.line(f"{output.count(len(results), 'case')}, {failed or 'none'} failed")
    return output.FAILED if failed else output.OK


async def _run_all(tests: FlowTests, only: Sequence[str], *, as_json: bool) -> list[CaseResult]:
    results = []
    for case in tests.cases:
        if only and not any(fnmatchcase(case.name, word) for word in only):
            continue
        results.append(result := await run_case(tests, case))
        if not as_json:
            for line in _describe(result):
                output.line(line)
    return results


def _describe(result: CaseResult) -> list[str]:
    path = "" if result.result is None else f"  {' → '.join(result.result.path)}"
    if result.passed:
        return [f"✓ {result.name}{path}"]
    return [f"✗ {result.name}{path}", *(f"    {each}" for each in result.mismatches)]


def _as_data(tested: Sequence[Tested]) -> list[dict[str, Any]]:
    return [
        {
            "file": str(tests.path),
            "name": each.name,
            "passed": each.passed,
            "mismatches": each.mismatches,
            "run": None if each.result is None else each.result.as_json(),
        }
        for tests, results in tested
        for each in results
    ]


def _write_junit(tested: Sequence[Tested], path: Path) -> None:
    """Write the results in the XML that CI servers read. DefinitionError where the file cannot be written."""
    root = ElementTree.Element("testsuites")
    for tests, results in tested:
        failed = sum(not each.passed for each in results)
        seconds = f"{sum(each.seconds for each in results):.3f}"
        about = {"name": _as_xml(str(tests.path)), "tests": str(len(results)), "failures": str(failed), "time": seconds}
        suite = ElementTree.SubElement(root, "testsuite", about)
        for each in results:
            about = {
                "classname": tests.workflow.definition.id,
                "name": _as_xml(each.name),
                "time": f"{each.seconds:.3f}",
            }
            case = ElementTree.SubElement(suite, "testcase", about)
            if not each.passed:
                failure = ElementTree.SubElement(case, "failure", {"message": _as_xml(each.mismatches[0])})
                failure.text = _as_xml("\n".join(each.mismatches))
    try:
        ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise DefinitionError(f"cannot be written: {error.strerror}", where="--junit", value=str(path)) from None


def _as_xml(text: str) -> str:
    """Return a text with an escape in place of each character that no XML may have, such as those of an output."""
    return visible(text).translate({0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"})

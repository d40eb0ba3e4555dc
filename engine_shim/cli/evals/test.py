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
    tested: list[Tested] = [(each, []) for each in files]
    interrupted = None
    try:
        for tests, results in tested:
            asyncio.run(_run_all(tests, only, results, as_json=as_json))
    except KeyboardInterrupt:
        chosen = sum(_is_chosen(name, only) for name in names)
        ended = sum(len(results) for _, results in tested)
        interrupted = f"interrupted after {ended} of {output.count(chosen, 'case')}"
    if junit is not None:
        _write_junit(tested, interrupted, junit)
    _write(tested, interrupted, str(paths[0]), as_json=as_json)
    if interrupted:
        return output.INTERRUPTED
    return output.OK if all(each.passed for _, results in tested for each in results) else output.FAILED


def _is_chosen(name: str, only: Sequence[str]) -> bool:
    return not only or any(fnmatchcase(name, word) for word in only)


async def _run_all(tests: FlowTests, only: Sequence[str], results: list[CaseResult], *, as_json: bool) -> None:
    """Run the chosen cases of a file; `results` gets what came of each as it ends."""
    for case in tests.cases:
        if not _is_chosen(case.name, only):
            continue
        results.append(result := await run_case(tests, case))
        if not as_json:
            for line in _describe(result):
                output.line(line)


def _write(tested: Sequence[Tested], interrupted: str | None, where: str, *, as_json: bool) -> None:
    results = [each for _, results in tested for each in results]
    failed = sum(not each.passed for each in results)
    if as_json:
        error = {"error": {"kind": "interrupted", "message": interrupted, "where": where}} if interrupted else {}
        output.document({"passed": len(results) - failed, "failed": failed, "cases": _as_data(tested), **error})
        return
    if results or not interrupted:
        output.line(f"{output.count(len(results), 'case')}, {failed or 'none'} failed")
    if interrupted:
        output.error(interrupted, kind="interrupted", where=where, as_json=False)


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


def _write_junit(tested: Sequence[Tested], interrupted: str | None, path: Path) -> None:
    """Write the results in the XML that CI servers read. DefinitionError where the file cannot be written.

    An interruption is an error there: or the cases that had ended would pass for all.
    """
    root = ElementTree.Element("testsuites")
    if interrupted:
        suite = ElementTree.SubElement(root, "testsuite", {"name": "interrupted", "tests": "1", "errors": "1"})
        case = ElementTree.SubElement(suite, "testcase", {"classname": "agent-core", "name": "interrupted"})
        ElementTree.SubElement(case, "error", {"message": interrupted})
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

"""Drafts: definitions as somebody writes them, which no file has yet: checked, and made ready to run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

from agent_core.agents.catalog import AgentCatalog
from agent_core.outputs import Json
from engine_shim.definition.errors import Problem, problems_in, refuse
from engine_shim.definition.load import Workflow, load_parts
from engine_shim.definition.validate import CheckedWorkflow, Examination
from engine_shim.errors import DefinitionError
from engine_shim.runs.definition_faults import find_faults
from engine_shim.runs.grant import Grant
from engine_shim.runs.host_check import HostCheck
from engine_shim.service.draft_view import clean_problem, describe_parts, describe_problem
from utools.document import Document, parse_document
from utools.near_names import few_looks

Format = Literal["yaml", "json"]
NAME: Final = "draft"
MOST_FAULTS: Final = 50
"""Faults that are told of one text."""
MOST_NODES, MOST_EDGES = 1000, 2000
MOST_VALUES: Final = 20_000
"""Values that a text may have: it is checked while somebody waits."""


def at_most(problems: Sequence[Problem]) -> Sequence[Problem]:
    """Return the first problems, and one that says how many more there are."""
    more = len(problems) - MOST_FAULTS
    return problems if more <= 0 else [*problems[:MOST_FAULTS], Problem("", f"and {more:,} more")]


class _Read(NamedTuple):
    """A text as far as it can be read, and what is wrong with it; `form` are the faults of its form alone."""

    problems: Sequence[Problem]
    warnings: Sequence[Problem] = ()
    form: Sequence[Problem] = ()
    document: Document | None = None
    workflow: Workflow | None = None
    examination: Examination | None = None


@dataclass(frozen=True, slots=True)
class Drafts:
    """The drafts of one tenant, whose relative paths start from the `directory` of its workflows.

    `grant` is what the operator gives to those who write them: they do not rule the host.
    """

    directory: Path
    grant: Grant
    catalog: AgentCatalog

    def check(self, text: str, form: Format) -> Json:
        """Return what is wrong with a text, and what it defines, as far as it can be read."""
        with few_looks(MOST_FAULTS):
            read = self._read(text, form, NAME)
        about = describe_parts(read.document, read.workflow, read.form, read.examination)
        lists = {"problems": at_most(read.problems), "warnings": at_most(read.warnings)}
        found = {
            key: [describe_problem(each, read.document, self.directory) for each in faults]
            for key, faults in lists.items()
        }
        return {**about, **found}

    def load(self, text: str, form: Format, name: str = NAME) -> CheckedWorkflow:
        """Return the workflow of a text, which is called `name` in errors. DefinitionErrors for all that is wrong with
        it."""
        with few_looks(MOST_FAULTS):
            read = self._read(text, form, name)
        refuse(clean_problem(each, self.directory) for each in at_most(read.problems))
        checked = None if read.examination is None else read.examination.checked
        assert checked is not None  # nothing is wrong with it
        return checked

    def _read(self, text: str, form: Format, name: str) -> _Read:
        document, workflow = None, None
        faults: list[Problem] = []
        try:
            document = parse_document(text, Path(f"{name}.{form}"))
            if (values := _count_values(document.data)) > MOST_VALUES:
                return _Read([Problem("", f"it has {values:,} values, and a draft may have up to {MOST_VALUES:,}")])
            workflow, faults = load_parts(document, base=self.directory)
            if workflow is None:
                return _Read(faults, (), faults, document)
            if too_many := [workflow.locate(each) for each in _find_excess(workflow)]:
                return _Read(too_many, (), faults, document)
            workflow = self.grant.bind(workflow)
            found = find_faults(workflow, faults, HostCheck(self.grant), self.catalog)
        except DefinitionError as error:
            return _Read([*faults, *problems_in(error)], (), faults, document, workflow)
        return _Read(found.problems, found.warnings, faults, document, workflow, found.examination)


def _count_values(data: object) -> int:
    """Return how many values there are in a document; one that stands in several places counts in each, up to the
    limit."""
    waiting, found = [data], 0
    while waiting and found <= MOST_VALUES:
        value = waiting.pop()
        found += 1
        waiting += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return found + len(waiting)


def _find_excess(workflow: Workflow) -> Iterator[Problem]:
    """Parts of which there are too many to be checked while somebody waits."""
    definition = workflow.definition
    for key, parts, most in (("nodes", definition.nodes, MOST_NODES), ("edges", definition.edges or (), MOST_EDGES)):
        if len(parts) > most:
            yield Problem(key, f"there are {len(parts):,}, and a draft may have up to {most:,}")

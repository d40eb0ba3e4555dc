"""read_cases(): what is written in a case file: the cases that can be read, and the faults of the others."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from engine_shim.definition.errors import Problem, problems_of
from engine_shim.evals.cases import CASE_NAME, USUAL_CATEGORY, CaseFile, name_of
from utools.document import Document
from utools.schema.model_faults import keys_of

FORMS = ("AllowedTool", "AnyOf", "Matches", "Equals", "value")
"""What pydantic calls the forms of a value that may have several."""


class Label(NamedTuple):
    """What a case is chosen by. Two cases without a name that ask the same have different ones."""

    name: str
    category: str


@dataclass(frozen=True, slots=True)
class WrittenCases:
    """`file` has the cases that can be read, `indexes` their places in the document, `labels` are those of all."""

    document: Document
    file: CaseFile
    indexes: Sequence[int]
    labels: Sequence[Label]
    problems: Sequence[Problem]

    def locate(self, problem: Problem) -> Problem:
        """Return the problem with its file, its line and the name of its case."""
        return locate(problem, self.document, self.labels)

    def place(self, index: int) -> str:
        """Return where a case stands, as an error names it."""
        return self.locate(Problem(f"cases/{index}", "")).place


def read_cases(document: Document) -> WrittenCases:
    """Return the cases of a document. The file has no case where a fault is not in one of them."""
    data, labels = document.data or {}, label_cases(document.data)
    problems = list(find_faults(CaseFile, data))
    faulty = {case_at(each.where) for each in problems}
    indexes = [] if None in faulty else [n for n in range(len(labels)) if n not in faulty]
    if None in faulty:
        data = {}
    elif faulty:
        data = {**data, "cases": [data["cases"][n] for n in indexes]}
    located = [locate(each, document, labels) for each in problems]
    return WrittenCases(document, CaseFile.model_validate(data), indexes, labels, located)


def locate(problem: Problem, document: Document, labels: Sequence[Label]) -> Problem:
    if problem.file:
        return problem
    n = case_at(problem.where)
    return replace(document.locate(problem), node="" if n is None else labels[n].name)


def case_at(where: str) -> int | None:
    """Return the index of the case that a place is in; None for a place outside of the cases."""
    first, _, rest = where.partition("/")
    index = rest.partition("/")[0]
    return int(index) if first == "cases" and index.isdecimal() else None


def label_cases(data: Any) -> list[Label]:
    """Return the labels of all cases that are written, faulty ones too."""
    written = data.get("cases") if isinstance(data, Mapping) else None
    cases = [each if isinstance(each, dict) else {} for each in written] if isinstance(written, list) else []
    taken = {name for case in cases if isinstance(name := case.get("name"), str)}
    labels = []
    for case in cases:
        name, category = case.get("name"), case.get("category")
        if not isinstance(name, str):
            name = different_name(name_of(case), taken)
            taken.add(name)
        labels.append(Label(name, category if isinstance(category, str) else USUAL_CATEGORY))
    return labels


def different_name(name: str, taken: Container[str]) -> str:
    """Return a name that none of the others is: itself, or with a number."""
    different, number = name, 1
    while different in taken:
        number += 1
        different = f"{name}-{number}"
    return different


def find_faults(model: type[BaseModel], data: Any) -> Iterator[Problem]:
    """Yield what pydantic finds in a file of cases, each by its place in the document."""
    try:
        model.model_validate(data)
    except ValidationError as error:
        for each in problems_of(error, keys_of(model), {CASE_NAME: "must be letters, digits, _ and -"}):
            yield replace(each, where="/".join(part for part in each.where.split("/") if part not in FORMS))

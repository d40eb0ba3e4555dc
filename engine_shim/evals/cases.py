"""CaseFile: tasks with the calls and answers that are right, what must not happen, and the world of the tools."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Scalar = str | int | float | bool


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


def _relative_path(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/") or not path:
        raise ValueError("must be a relative path without ..")
    return path


Pattern = Annotated[str, AfterValidator(_pattern)]
RelativePath = Annotated[str, AfterValidator(_relative_path)]


class AnyOf(_Strict):
    """One of several values is right."""

    any: list[Scalar] = Field(min_length=1)


class Matches(_Strict):
    """A text in which the pattern occurs, ignoring case."""

    matches: Pattern


Expected = Scalar | AnyOf | Matches


class Call(_Strict):
    """A call that is expected: the `args` that matter, and what the tool's output must contain, `gives`.

    A number is looked for among the numbers of the observation, a text anywhere in it. `args` of an `example` show
    one right way where matchers stand for many; an `optional` call may be left out.
    """

    tool: str
    args: dict[str, Expected] = {}
    gives: float | str | None = None
    example: dict[str, Any] | None = None
    optional: bool = False


class Answer(_Strict):
    """A right answer: it has all of `contains` (one of a list), the match, the number, and nothing of `lacks`."""

    contains: list[str | list[str]] = []
    matches: Pattern | None = None
    number: float | None = None
    lacks: list[str] = []
    example: str | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.contains and self.matches is None and self.number is None:
            raise ValueError("must say what a right answer is: contains, matches or number")
        return self


class Forbidden(_Strict):
    """A call that must not happen; without `args`, any of the tool."""

    tool: str
    args: dict[str, Expected] = {}


class Case(_Strict):
    """One task. `tools` are offered, by default all of the world's."""

    id: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    category: str = Field(min_length=1)
    language: Literal["en", "zh"] = "en"
    message: str = Field(min_length=1)
    tools: list[str] | None = None
    calls: list[Call] = []
    answer: Answer
    forbidden: list[Forbidden] = []
    max_steps: int = Field(default=6, ge=1)

    @property
    def required(self) -> list[Call]:
        return [call for call in self.calls if not call.optional]


class Document(_Strict):
    """A document that a search may find."""

    title: str
    text: str


class World(_Strict):
    """All that the eval's tools know."""

    files: dict[RelativePath, str] = Field(default={}, description="Text by path below data/")
    documents: list[Document] = []
    pages: dict[str, Any] = Field(default={}, description="Body by URL; all others are 404")
    unreachable: list[str] = Field(default=[], description="URLs that cannot be connected to")
    orders: dict[str, dict[str, Any]] = {}
    weather: dict[str, dict[str, Any]] = {}


class CaseFile(_Strict):
    """The whole file."""

    world: World = World()
    cases: list[Case] = Field(min_length=1)

    @model_validator(mode="after")
    def _ids_differ(self) -> Self:
        ids = [case.id for case in self.cases]
        if twice := sorted({each for each in ids if ids.count(each) > 1}):
            raise ValueError(f"the id {twice[0]!r} is given twice")
        return self

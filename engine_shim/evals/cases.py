"""CaseFile: tasks, the calls and answers that are right, what must not happen, and the tools. Pure."""

from collections.abc import Mapping
from itertools import accumulate
from typing import Annotated, Any, Literal, Self, get_args
from unicodedata import category, east_asian_width

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from agent_core.audit.refusals import AWAITING
from agent_core.config import AllowedTool
from agent_core.outputs import FinishReason
from engine_shim.evals.matching import Expected, Pattern

Language = Literal["en", "zh"]
RefusalReason = Literal["policy_denied", "invalid_action", "awaiting_approval"]
REFUSALS = get_args(RefusalReason)
USUAL_CATEGORY = "cases"
CASE_NAME = r"^[\w-]+$"
LONGEST_FILE_NAME = 255
"""Bytes of a name that file systems take."""
WIDEST_NAME = 40
"""Columns of a name that is made of a question; a Chinese character has two."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part not in ("", "."))


def _relative_path(path: str) -> str:
    parts = _parts(path)
    if path.startswith("/") or ".." in parts or not parts:
        raise ValueError("must be a relative path without ..")
    if "\0" in path or any(len(part.encode()) > LONGEST_FILE_NAME for part in parts):
        raise ValueError("no file has such a name")
    return path


def _no_file_in_a_file(files: dict[str, str]) -> dict[str, str]:
    paths = {_parts(path): path for path in files}
    for parts, path in paths.items():
        if above := next((paths[parts[:end]] for end in range(1, len(parts)) if parts[:end] in paths), None):
            raise ValueError(f"{above} is a file, so there is no {path} in it")
    return files


RelativePath = Annotated[str, AfterValidator(_relative_path)]


# ── what is expected ─────────────────────────────────────────────────────────────────────────────


class CallPattern(_Strict):
    """Calls of a tool with these `args`; without any, all of its calls."""

    tool: str
    args: dict[str, Expected] = {}


class Call(CallPattern):
    """A call that is expected: the `args` that matter, and what the tool's output must contain, `gives`.

    A number is looked for among the numbers of the observation, a text anywhere in it. `args` of an `example` show
    one right way where matchers stand for many; an `optional` call may be left out.
    """

    gives: float | str | None = None
    example: dict[str, Any] | None = None
    optional: bool = False


class Answer(_Strict):
    """A right answer: all of `contains` (one of a list), the match, the numbers, nothing of `lacks`.

    `equals` is the whole of it, as for an agent with an `answer_schema`.
    """

    contains: list[str | list[str]] = []
    matches: Pattern | None = None
    number: float | list[float] | None = None
    lacks: list[str] = []
    equals: Any = None
    example: str | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        said = (self.contains, self.matches is not None, self.number is not None, "equals" in self.model_fields_set)
        if not any(said):
            raise ValueError("must say what a right answer is: contains, matches, number or equals")
        return self


class Forbidden(CallPattern):
    """A call that must not even be tried."""


class Refused(CallPattern):
    """A call that has to be tried and refused: by the tool's schema, the policy, or for want of a person's approval."""

    reason: RefusalReason | None = None


# ── canned answers ───────────────────────────────────────────────────────────────────────────────


class CannedAnswer(_Strict):
    """What a tool answers to calls with these `args`: an `output`, or the `error` with which it fails."""

    args: dict[str, Expected] = {}
    output: Any = None
    error: str | None = None


class CannedTool(_Strict):
    """A tool that answers from a list and does nothing else.

    The first answer fits that no call has had; the last that fits is given again. A tool that the host does not have
    needs a `config_schema`.
    """

    answers: list[CannedAnswer] = []
    description: str | None = None
    config_schema: dict[str, Any] | None = None
    effect: Literal["read", "write"] | dict[str, Any] | None = None


# ── cases ────────────────────────────────────────────────────────────────────────────────────────


def short_name(question: str) -> str:
    """Return a name made of the first words of a question."""
    name = "-".join("".join(char if _is_of_word(char) else " " for char in question.casefold()).split())
    widths = accumulate(2 if east_asian_width(char) in "WF" else 1 for char in name)
    end = sum(width <= WIDEST_NAME for width in widths)
    if end == len(name):
        return name or "case"
    whole_words = name[: end + 1].rpartition("-")[0]
    return whole_words if len(whole_words) > end // 2 else name[:end]


def _is_of_word(char: str) -> bool:
    """Return whether CASE_NAME takes a character as part of a word: a letter, one of its marks, a digit; not ² or ½."""
    kind = category(char)
    return kind[0] in "LM" or kind == "Nd"


def name_of(data: Mapping[str, Any]) -> str:
    """Return the name of a case that is written without one."""
    inputs = data.get("inputs")
    texts = [data.get("message"), *(inputs.values() if isinstance(inputs, Mapping) else ())]
    return short_name(next((each for each in texts if isinstance(each, str) and each), ""))


class Case(_Strict):
    """One task. Without a name it is named by what it asks.

    `message` is what the user says, after the `history`. The agent of a workflow may take `inputs` instead, which are
    the workflow's, and `nodes`, the outputs of those before it. `tools` are offered, by default those of the file.
    `config` has more keys of the agent's config.
    """

    message: str | None = Field(default=None, min_length=1)
    history: list[dict[str, Any]] = []
    inputs: dict[str, Any] = {}
    nodes: dict[str, Any] = {}
    name: str = Field(default_factory=name_of, pattern=CASE_NAME, max_length=100)
    category: str = Field(default=USUAL_CATEGORY, min_length=1)
    language: Language = "en"
    tools: list[str | AllowedTool] | None = None
    canned: dict[str, CannedTool] = {}
    config: dict[str, Any] = {}
    max_steps: int | None = Field(default=None, ge=1)
    calls: list[Call] = []
    answer: Answer | None = None
    finish_reason: FinishReason = "final"
    refused: list[Refused] = []
    forbidden: list[Forbidden] = []
    no_write: bool = False

    @property
    def required(self) -> list[Call]:
        return [call for call in self.calls if not call.optional]

    @property
    def endings(self) -> frozenset[str]:
        """The finish reasons that are right.

        Where none is given, a call that waits for a person ends the run; after any other refusal the model may answer,
        or try until the run ends by the refusal.
        """
        if "finish_reason" in self.model_fields_set or self.answer is not None or not self.refused:
            return frozenset({self.finish_reason})
        reasons = {each.reason for each in self.refused}
        if AWAITING in reasons:
            return frozenset({AWAITING})
        return frozenset({"final", *(REFUSALS if None in reasons else filter(None, reasons))})

    @model_validator(mode="after")
    def _asks_and_expects(self) -> Self:
        if self.message is None and not self.inputs:
            raise ValueError("must ask something: give message, or the inputs of the workflow")
        if self.history and self.message is None:
            raise ValueError("history needs the message that follows it")
        if self.finish_reason != "final" and self.answer is not None:
            raise ValueError(f"a run that ends by {self.finish_reason} has no answer; leave out one of the two")
        if self.answer is not None and any(each.reason == AWAITING for each in self.refused):
            raise ValueError(f"a run that ends by {AWAITING} has no answer; leave out one of the two")
        if self.finish_reason == "final" and self.answer is None and not (self.calls or self.refused):
            raise ValueError("must say what is right: answer, calls or refused")
        return self


class Document(_Strict):
    """A document that a search may find."""

    title: str
    text: str


class Fixtures(_Strict):
    """All that the eval's tools know."""

    files: Annotated[dict[RelativePath, str], AfterValidator(_no_file_in_a_file)] = Field(
        default={}, description="Text by path below data/"
    )
    documents: list[Document] = []
    pages: dict[str, Any] = Field(default={}, description="Body by URL; all others are 404")
    unreachable: list[str] = Field(default=[], description="URLs that cannot be connected to")
    orders: dict[str, dict[str, Any]] = {}
    weather: dict[str, dict[str, Any]] = {}
    output_schemas: bool = Field(default=True, description="Whether the tools say by a schema what they give")


class CaseFile(_Strict):
    """The whole file. `host` and `workflow` are paths from its directory.

    Without either, the eval's own tools are offered. `host` is a host configuration, whose tools `tools` names.
    `workflow` is a definition: its agent, the one of `node` if there are several, is measured as it is configured, the
    model aside. `canned` tools answer in place of those of the host.
    """

    host: str | None = Field(default=None, min_length=1)
    workflow: str | None = Field(default=None, min_length=1)
    node: str | None = None
    tools: list[str | AllowedTool] | None = None
    canned: dict[str, CannedTool] = {}
    world: Fixtures = Fixtures()
    cases: Annotated[list[Case], BeforeValidator(lambda cases: [] if cases is None else cases)] = []

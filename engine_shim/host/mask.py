"""What a host masks besides keys, by patterns of its own."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from utools.secrets.patterns import check_name, check_pattern

MarkName = Annotated[str, AfterValidator(check_name)]
Pattern = Annotated[str, AfterValidator(check_pattern)]


class MaskPattern(BaseModel):
    """What a host masks besides keys: what fits the pattern in a line becomes `[redacted:NAME]`."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: MarkName
    pattern: Pattern


def check_names(patterns: list[MaskPattern]) -> list[MaskPattern]:
    names = [each.name for each in patterns]
    if twice := [name for index, name in enumerate(names) if name in names[:index]]:
        raise ValueError(f"two patterns are called {twice[0]!r}; use a name for each")
    return patterns

"""Which models think, by their names, and how much they are asked to. Pure."""

from collections.abc import Mapping
from typing import Final, Literal

from utools.lazy_pattern import lazy_compile

Family = Literal["plain", "o", "gpt-5", "later"]
EFFORTS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": ("none", "minimal", "low", "medium", "high"),
    "low": ("low", "medium", "high"),
    "medium": ("medium", "high", "low"),
    "high": ("high", "medium", "low"),
}
"""Words for what is asked for, the nearest first: some models take one of them alone."""
_UNKNOWN_WORDS: Final[Mapping[Family | None, tuple[str, ...]]] = {
    "o": ("none", "minimal"),
    "gpt-5": ("none",),
    "later": ("minimal",),
}
"""`none` came with gpt-5.1, in place of gpt-5's `minimal`."""
_NAME: Final = lazy_compile(
    r"(?:^|[/:])(?:o(?P<o>\d+)(?!\w)|gpt-(?P<major>35|\d+)(?:\.(?P<minor>\d+))?(?P<chat>-chat)?)"
)
_FIRST_THINKING: Final = 5


def find_family(model: str) -> Family | None:
    """Return how a model thinks, by its name, also behind a gateway's prefix; None for a name that is not OpenAI's."""
    name = _NAME.search(model)
    if name is None:
        return None
    if name["o"]:
        return "o"
    if name["major"] == "35" or int(name["major"]) < _FIRST_THINKING:  # Azure writes gpt-35
        return "plain"
    if int(name["major"]) > _FIRST_THINKING or int(name["minor"] or 0):
        return "later"
    return "plain" if name["chat"] else "gpt-5"


def choose_effort(model: str, asked: str | None, refused: frozenset[str]) -> str | None:
    """Return the word to send for how much the model thinks; None to leave it to the vendor.

    `refused` has `effort:WORD` for each word that the endpoint refuses, and `reasoning` where it takes none.
    """
    family = find_family(model)
    if asked is None or family == "plain" or "reasoning" in refused:
        return None
    unknown = _UNKNOWN_WORDS.get(family, ())
    words = (word for word in EFFORTS.get(asked, (asked,)) if word not in unknown and f"effort:{word}" not in refused)
    return next(words, None)


def returns_thoughts(model: str, effort: str | None) -> bool:
    """Return whether encrypted thoughts are asked for: of a model that thinks, or that is asked to."""
    family = find_family(model)
    return family != "plain" if effort not in (None, "none") else family in ("o", "gpt-5", "later")


def takes_sampling(model: str, effort: str | None) -> bool:
    """Return whether temperature and top_p are sent: a model that thinks refuses them."""
    family = find_family(model)
    return family in (None, "plain") or (family == "later" and effort == "none")

"""Urls: where a URL stands in a text that may have hundreds of others. Pure."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal

from agent_core.origins.addresses import Url, find_bare_urls, find_url_spans, read_url_at

UpTo = Literal["host", "path"]
"""How much of a URL has to be proven, where it is not all of it."""


class Urls:
    """The URLs of a text, of which only those are read that may be the one that is looked for: those with what it must
    hold to the letter. `small` is the text in small letters."""

    def __init__(self, text: str, small: str) -> None:
        self._text, self._small = text, small

    def find(self, wanted: Url, up_to: UpTo | None, host: str | None) -> Iterator[int]:
        """Yield where a URL begins, or one that is the same up to a part of it. `host` is what it must hold in small
        letters; None when nothing can be said."""
        part, needle = _cut_url(wanted, up_to), _write_needle(wanted, up_to)
        spans, may_be_bare = self._find_holders(needle, self._text)
        for start, end in spans:
            if host is None or self._small.find(host, start, end) >= 0:
                url = read_url_at(self._text, start, end)
                if url is not None and _cut_url(url, up_to) == part:
                    yield start
        if may_be_bare and (host is None or self._find_holders(host, self._small)[1]):
            yield from (start for start, url in self._bare if _cut_url(url, up_to) == part)

    def _find_holders(self, needle: str, text: str) -> tuple[Sequence[tuple[int, int]], bool]:
        """Return where the URLs with a scheme are that hold a text, and whether it stands outside of them, too."""
        if not needle:
            return self._spans, True
        found, is_outside, at = list[tuple[int, int]](), False, text.find(needle)
        while at >= 0:
            index = bisect_right(self._spans, (at, len(text))) - 1
            if index >= 0 and at < self._spans[index][1]:
                found.append(self._spans[index])
                at = text.find(needle, self._spans[index][1])
            else:
                is_outside, at = True, text.find(needle, at + 1)
        return found, is_outside

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        return find_url_spans(self._text)

    @cached_property
    def _bare(self) -> list[tuple[int, Url]]:
        return list(find_bare_urls(self._text))


def _cut_url(url: Url, up_to: UpTo | None) -> tuple[object, ...]:
    """Return the part of a URL that has to be proven: all of it, its host, or its path as well."""
    return url if up_to is None else url[: 4 if up_to == "host" else 5]


def _write_needle(url: Url, up_to: UpTo | None) -> str:
    """Return what a text must hold to the letter to be this URL: its path, and what is behind it. `read_url` changes
    nothing of them, but for the path of a host alone, which may be written or not."""
    path, rest = url[4:]
    return "" if up_to == "host" else f"{'' if path == '/' else path}{'' if up_to == 'path' else rest}"

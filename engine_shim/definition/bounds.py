"""Bounds: where a definition came from, and where the workflows lie that it may invoke."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Bounds:
    """`from_http` says that the definition came over HTTP. What it invokes lies in a directory `within`, unless that is
    None, and in none `without`."""

    from_http: bool = False
    within: Sequence[Path] | None = None
    without: Sequence[Path] = ()


UNBOUND: Final = Bounds()

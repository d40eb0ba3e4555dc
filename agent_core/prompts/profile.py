"""Which models need the prompts of small ones. Pure."""

import re

from utools.lazy_pattern import lazy_compile

SIZE = lazy_compile(r"(?<![\d.])(\d+(?:\.\d+)?)([mb])(?![a-z0-9])", re.IGNORECASE)
"""How names tell a model's parameters: 0.5b, 135M."""
SMALL = 4.0
"""Billions of parameters up to which a model calls tools only after it has seen them called, in turns like its own."""


def is_small(model: str) -> bool:
    """Return whether the model's name tells that it is small, as in `ollama:qwen2.5:0.5b`."""
    sizes = [float(number) / (1000 if unit in "mM" else 1) for number, unit in SIZE.findall(model)]
    return bool(sizes) and max(sizes) <= SMALL

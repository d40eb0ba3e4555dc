"""How the work of a function grows with its input, measured in one run: a ratio, which no busy machine changes much."""

import time
from collections.abc import Callable
from math import inf
from typing import Any

ROUNDS, CLEAR = 3, 8.0
"""A measurement that is not clear is made again, so many times in all: something else may have been in between."""
LEAST = 0.002
"""Seconds of processor time below which a measurement says nothing."""


def growth(work: Callable[[Any], Any], small: Any, large: Any) -> float:
    """How much longer `large`, of 4 times the size, takes than `small`: about 4 when linear, 16 when quadratic."""
    found = inf
    for _ in range(ROUNDS):
        found = min(found, _least(work, large) / max(_least(work, small), LEAST))
        if found < CLEAR:
            break
    return found


def _least(work: Callable[[Any], Any], value: Any) -> float:
    return min(_once(work, value) for _ in range(2))


def _once(work: Callable[[Any], Any], value: Any) -> float:
    began = time.process_time()
    work(value)
    return time.process_time() - began

"""How many examples of a property are tried: the profiles `dev` and `ci`, and a share of them for one test.

A failing example is printed with a line `@reproduce_failure(…)` that runs it again anywhere.
"""

import os
from typing import Any

from hypothesis import HealthCheck, settings

SLOW_MACHINE = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
"""Checks of Hypothesis that tell of a busy machine rather than of a property."""


def load_profile() -> None:
    """`ci` where CI is set, else `dev`; HYPOTHESIS_PROFILE names another one."""
    usual: Any = {"deadline": None, "print_blob": True, "suppress_health_check": SLOW_MACHINE}
    settings.register_profile("dev", max_examples=20, **usual)
    settings.register_profile("ci", max_examples=40, derandomize=True, database=None, **usual)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


def examples(factor: float = 1.0, **options: Any) -> settings:
    """So many times the examples of the profile; `options` are those of Hypothesis' settings."""
    checks = [*SLOW_MACHINE, *options.pop("suppress_health_check", ())]
    count = max(1, round(settings().max_examples * factor))
    return settings(max_examples=count, suppress_health_check=checks, **options)

"""The Python and the package that run, and the extras: what each gives, and whether it is installed."""

import platform
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final

from engine_shim.cli.doctor.finding import Finding
from utools.lazy_pattern import lazy_compile

PACKAGE: Final = "agent-core"
GIVES: Final = {
    "web": "`agent-core serve`: the HTTP API, schedules and webhooks",
    "mcp": "tools of MCP servers, and `agent-core mcp`",
    "templates": "templates in the tool `formatter`",
    "prices": "the prices of more models, for `cost_budget`",
    "telemetry": "spans and metrics for OpenTelemetry",
    "email": "the tool `email`",
    "evidence": "signatures of runs that everybody can check: `agent-core key`",
    "anthropic": "Anthropic's own API: prompt caching, thinking kept across calls",
    "gemini": "Gemini's own API: thoughts kept across calls, verdicts of its filters",
    "local": "models on this machine: `local:FILE.gguf`",
    "temporal": "runs on Temporal: `engine: temporal`, and `agent-core worker`",
    "postgres": "runs and conversations in PostgreSQL",
    "celery": "the node as a task of Celery",
    "airflow": "the node as a task of Airflow",
    "dagster": "the node as an op of Dagster",
    "prefect": "the node as a task of Prefect",
    "docs": "the API reference: `python -m engine_shim.reference`",
}
"""What a person has of an extra."""
SHARED: Final = frozenset({"opentelemetry-api"})
"""Distributions that other packages bring, too: alone they are no extra that is half installed."""
FOR_TESTS: Final = ("test", "test-all")
REQUIREMENT: Final = lazy_compile(r"([\w.-]+).*;.*\bextra == ['\"]([\w-]+)['\"]")
FindVersion = Callable[[str], str | None]
"""The version of a distribution that is installed; None for one that is not."""


def find_version(distribution: str) -> str | None:
    """Return the version of a distribution in this Python."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def check_versions() -> Iterator[Finding]:
    """Yield which Python runs which version of the package."""
    own = find_version(PACKAGE) or "unknown"
    yield Finding(PACKAGE, "ok", own, facts={"version": own})
    running = platform.python_version()
    yield Finding("Python", "ok", f"{running} on {platform.system()}", facts={"version": running})


def check_extras(requirements: Sequence[str] | None = None, find: FindVersion = find_version) -> Iterator[Finding]:
    """Yield each extra: the versions of what it installs, or what is missing of it and what it would give."""
    wanted = read_extras(requires(PACKAGE) or () if requirements is None else requirements)
    for extra in [*(name for name in GIVES if name in wanted), *sorted(wanted.keys() - GIVES.keys())]:
        yield _judge(extra, {name: find(name) for name in wanted[extra]})


def read_extras(requirements: Sequence[str]) -> dict[str, list[str]]:
    """Return the distributions of each extra but those for tests, as the package's metadata has them."""
    found: dict[str, list[str]] = {}
    for requirement in requirements:
        if (match := REQUIREMENT.match(requirement)) and match[2] not in FOR_TESTS and match[1] != PACKAGE:
            found.setdefault(match[2], []).append(match[1])
    return found


def _judge(extra: str, versions: dict[str, str | None]) -> Finding:
    name, facts = f"extra {extra}", {"installed": all(versions.values()), "versions": versions}
    missing = [each for each, found in versions.items() if found is None]
    if not missing:
        return Finding(name, "ok", ", ".join(f"{each} {found}" for each, found in versions.items()), facts=facts)
    install = f"pip install '{PACKAGE}[{extra}]'"
    gives = GIVES.get(extra, "")
    if set(missing) >= versions.keys() - SHARED:
        return Finding(name, "ok", "not installed" + (f"; it gives {gives}" if gives else ""), install, facts)
    lack = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    return Finding(name, "warning", f"{lack}; it gives {gives}", install, facts)

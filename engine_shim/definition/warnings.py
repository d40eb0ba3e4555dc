"""What a definition may do that its author may not mean: told by `validate`, and no reason not to run. Pure."""

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Any

from engine_shim.definition.errors import Problem
from engine_shim.definition.model import AGENT, Node, Workflow
from engine_shim.definition.model_refs import asked_by
from engine_shim.errors import DefinitionError
from utools.sources.http_call import ORIGIN

Priced = Callable[[str, Mapping[str, Any]], bool]
"""Whether the price of a model is known, by its name and the options it is reached by."""
NETWORK, HOSTS = "http_request", "allowed_domains"
EVERY_HOST = f"{NETWORK} may reach every public host; set {HOSTS} to those that are meant"
WRITER = "write_file"
EVERYWHERE = (
    f"{WRITER} may write in all of the host's root, also what other programs run; give it a directory of its own"
)


def warnings(workflow: Workflow, priced: Priced) -> Iterator[Problem]:
    """Each tool that may do more than somebody wrote down, each budget in USD that cannot be counted."""
    for index, node in enumerate(workflow.definition.nodes):
        where = f"nodes/{index}/config"
        if node.tool == NETWORK and not _is_bound(node):
            yield Problem(f"{where}/{HOSTS}", EVERY_HOST)
        entries = node.config.get("allowed_tools") if node.tool == AGENT else None
        for place, entry in enumerate(entries if isinstance(entries, list) else ()):
            for message in _open(entry):
                yield Problem(f"{where}/allowed_tools/{place}", message)
        if node.config.get("cost_budget"):
            yield from _unpriced(node, where, priced)


def _is_bound(node: Node) -> bool:
    """Whether the author said which host a plain node asks: by the key that bounds it, or in its URL."""
    return HOSTS in node.config or ORIGIN.match(str(node.config.get("url"))) is not None


def _unpriced(node: Node, where: str, priced: Priced) -> Iterator[Problem]:
    """The models of a node with a budget whose replies may not count towards it."""
    for _, model, options in asked_by(node, where):
        if not _is_priced(model, options, priced):
            message = f"is no limit where {model} is asked and does not say what it costs: its price is not known"
            yield Problem(f"{where}/cost_budget", f"{message}; set total_token_budget as well")


def _is_priced(model: str, options: Mapping[str, Any], priced: Priced) -> bool:
    try:
        return priced(model, options)
    except DefinitionError:  # that there is no such model is told as a problem
        return True


def _open(entry: Any) -> Iterator[str]:
    """What an entry of the whitelist leaves to a model that its author may not mean."""
    pattern = entry.get("tool") if isinstance(entry, Mapping) else entry
    preset = entry.get("preset") if isinstance(entry, Mapping) else None
    bound: Mapping[str, Any] = preset if isinstance(preset, Mapping) else {}
    if isinstance(pattern, str) and fnmatchcase(NETWORK, pattern) and HOSTS not in bound:
        yield f"{EVERY_HOST}, in its preset"
    if isinstance(pattern, str) and fnmatchcase(WRITER, pattern) and normpath(str(bound.get("root"))) == ".":
        yield EVERYWHERE

"""What a definition allows that its author may not mean: shown by `validate`, and no reason not to run. Pure."""

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Any

from agent_core.policy import has_wildcard
from engine_shim.definition.errors import Problem
from engine_shim.definition.inputs import misspelt_keywords
from engine_shim.definition.model import AGENT, Definition, Node
from engine_shim.definition.model_refs import model_refs_of
from engine_shim.definition.template import BRACES, is_foreign
from engine_shim.definition.uses import ToolUse, uses_of_node
from engine_shim.errors import DefinitionError
from utools.lazy_pattern import lazy_compile
from utools.net.address import ORIGIN
from utools.schema.loose_patterns import LoosePattern, find_loose_patterns

IsPriced = Callable[[str, Mapping[str, Any]], bool]
"""Whether the price of a model is known, by its name and the options that it is reached by."""
HasTool = Callable[[str], bool]
"""Whether the host may have a tool that fits a glob of codes."""
NETWORK, HOSTS = "http_request", "allowed_domains"
EVERY_HOST = f"{NETWORK} may reach every public host; set {HOSTS} to those that are meant"
WRITER = "write_file"
SINGLE = lazy_compile(r"(?<!\{)\$?\{((?:external|nodes|env)\.\w[\w.]*)\}(?!\})")
EVERYWHERE = (
    f"{WRITER} may write in all of the host's root, also what other programs run; give it a directory of its own"
)

Presets = Mapping[str, Mapping[str, Any]]


def find_warnings(
    definition: Definition, is_priced: IsPriced, presets: Presets, has_tool: HasTool
) -> Iterator[Problem]:
    """Yield each tool that may do more than somebody wrote down, and each budget in USD that cannot be counted.

    `presets` are the host's own, by tool.
    """
    if definition.model is not None and not any(edge.ask and edge.model is None for edge in definition.edges or ()):
        yield Problem("model", "no edge asks it: it judges `ask` edges alone, and an agent has the model of its config")
    for place, value in definition.templates():
        yield from _left_as_they_are(value, place)
    for index, node in enumerate(definition.nodes):
        where = f"nodes/{index}/config"
        if node.tool == NETWORK and HOSTS not in presets.get(NETWORK, {}) and not _names_host(node):
            yield Problem(f"{where}/{HOSTS}", EVERY_HOST)
        for use in uses_of_node(node, where, (AGENT,)):
            if use.by_name:
                yield from _warnings_of_entries(use, presets)
                yield from _idle_keys(use, has_tool)
        if node.config.get("cost_budget"):
            yield from _unpriced_models(node, where, is_priced)


def _left_as_they_are(value: Any, where: str) -> Iterator[Problem]:
    """Yield each text that has a placeholder's path in one pair of braces, and each key that has a placeholder."""
    if isinstance(value, str):
        for found in SINGLE.finditer(value):
            yield Problem(where, f"{found[0]} stays as it is: a placeholder has two braces, {{{{{found[1]}}}}}")
    elif isinstance(value, Mapping | list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            if BRACES in str(key):
                yield Problem(where, f"the key {key!r} stays as it is: placeholders are filled in values alone")
            if not is_foreign(str(key), inner):
                yield from _left_as_they_are(inner, f"{where}/{key}")


def _warnings_of_entries(agent: ToolUse, presets: Presets) -> Iterator[Problem]:
    """Yield what the entries of an agent's whitelist leave to its model, and patterns that are meant otherwise."""
    entries, where = agent.config.get("allowed_tools"), f"{agent.where}/allowed_tools"
    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
        for message in _open_permissions(entry, presets):
            yield Problem(f"{where}/{number}", message)
        for loose in _loose_patterns(entry):
            yield Problem(f"{where}/{number}/args{loose.pointer}", _explain(loose.pattern))


def _idle_keys(agent: ToolUse, has_tool: HasTool) -> Iterator[Problem]:
    """Yield what of an agent's config has no effect: keys of its `answer_schema` that check nothing, and globs of its
    `deny_tools` that deny nothing, such as one that is misspelt; an unknown code is a fault."""
    denied, schema = agent.config.get("deny_tools"), agent.config.get("answer_schema")
    for pattern in denied if isinstance(denied, list) else ():
        if isinstance(pattern, str) and has_wildcard(pattern) and not has_tool(pattern):
            message = f"{pattern!r} denies nothing: no tool of this host fits this pattern"
            yield Problem(f"{agent.where}/deny_tools", message)
    yield from misspelt_keywords(schema, f"{agent.where}/answer_schema") if isinstance(schema, dict) else ()


def _loose_patterns(entry: Any) -> Iterator[LoosePattern]:
    narrowing = entry.get("args") if isinstance(entry, Mapping) else None
    if isinstance(narrowing, dict):
        yield from find_loose_patterns(narrowing)


def _explain(pattern: str) -> str:
    core = pattern.removeprefix("^").removesuffix("$")
    return (
        f"{pattern!r} must match the whole text, from its first character to its last; write '^{core}$' to show "
        f"that this is meant, or '^.*{core}.*$' to allow a text that holds it; to forbid one, put it under not"
    )


def _names_host(node: Node) -> bool:
    """Return whether the author said which host a plain node asks: by the key that bounds it, or in its URL."""
    return HOSTS in node.config or ORIGIN.match(str(node.config.get("url"))) is not None


def _unpriced_models(node: Node, where: str, is_priced: IsPriced) -> Iterator[Problem]:
    """Yield the models of a node with a budget whose replies may not count towards it."""
    for _, model, options in model_refs_of(node, where):
        if not _has_price(model, options, is_priced):
            message = f"does not limit the replies of {model} that state no cost: its price is not known"
            yield Problem(f"{where}/cost_budget", f"{message}; set total_token_budget as well")


def _has_price(model: str, options: Mapping[str, Any], is_priced: IsPriced) -> bool:
    try:
        return is_priced(model, options)
    except DefinitionError:  # that the model cannot be asked is reported as a problem
        return True


def _open_permissions(entry: Any, presets: Presets) -> Iterator[str]:
    """Yield what an entry of the whitelist leaves to a model that its author may not mean."""
    pattern = entry.get("tool") if isinstance(entry, Mapping) else entry
    preset = entry.get("preset") if isinstance(entry, Mapping) else None
    bound: Mapping[str, Any] = preset if isinstance(preset, Mapping) else {}
    if not isinstance(pattern, str):
        return
    if fnmatchcase(NETWORK, pattern) and HOSTS not in {**presets.get(NETWORK, {}), **bound}:
        yield f"{EVERY_HOST}, in its preset"
    if fnmatchcase(WRITER, pattern) and normpath(str({**presets.get(WRITER, {}), **bound}.get("root"))) == ".":
        yield EVERYWHERE

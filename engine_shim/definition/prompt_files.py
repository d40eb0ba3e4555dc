"""find_prompt_files(): the templates of an agent's config that are files, which no definition from HTTP may name."""

from collections.abc import Iterator, Mapping
from typing import Any

from agent_core.prompts.render import is_file
from engine_shim.definition.errors import Problem


def find_prompt_files(config: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """A problem for each; the same whether there is such a file or not."""
    prompts = config.get("prompts")
    for name, template in prompts.items() if isinstance(prompts, Mapping) else ():
        if is_file(template):
            place = f"{where}/prompts/{name}" if where else f"prompts/{name}"
            yield Problem(place, "a definition over HTTP gives the text of a template, not the name of a file")

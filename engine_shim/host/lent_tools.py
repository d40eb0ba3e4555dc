"""lend_tools(): the policy of a host for definitions of others: they reach what the operator has named, and no more."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from utools.host_policy import HostPolicy

NOTHING: Final[Mapping[str, Mapping[str, Any]]] = {
    "http_request": {"allow_cidrs": []},
    "feishu_bot": {"allow_cidrs": []},
    "health": {"allow_cidrs": [], "allowed_domains": []},
}
"""Keys that lead into the network of the host, bound to nothing where the operator presets nothing."""
NEEDS: Final = {"email": "host", "redis_context": "prefix"}
"""Tools of servers, each with the key that says whose: they are off until the operator presets it."""
OF_FILES: Final = ("read_file", "write_file", "file_search", "log_transform", "shell_command")


def lend_tools(policy: HostPolicy) -> HostPolicy:
    """Return the same policy, with what others have not been given taken away."""
    presets = {code: {**NOTHING.get(code, {}), **policy.presets.get(code, {})} for code in {*NOTHING, *policy.presets}}
    return replace(policy, presets=presets, needs={**policy.needs, **NEEDS})


def without_files(policy: HostPolicy) -> HostPolicy:
    """Return the same policy without the tools of files, where there is no root for them."""
    why = "there is no root for its files; the operator gives one"
    return replace(policy, off={**policy.off, **dict.fromkeys(OF_FILES, why)})

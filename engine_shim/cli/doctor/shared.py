"""check_shared(): whether a host can be shared by tenants who do not trust each other: the checklist of SECURITY.md."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final

from agent_core.run.secrets import VARIABLE as SECRET_ENV
from agent_core.run.secrets import verifying_keys
from engine_shim.cli.doctor.finding import Finding, keep_going
from engine_shim.host.config import HostConfig
from engine_shim.host.environment import NAME as DOT_ENV
from engine_shim.service.tokens import Tokens
from engine_shim.store.database import Database
from utools.databases.store_address import StoreAddress, is_url, of_tenant

WRITABLE: Final = stat.S_IWGRP | stat.S_IWOTH
READABLE: Final = stat.S_IRGRP | stat.S_IROTH
Check = Callable[[HostConfig], Iterator[str]]


def check_shared(config: HostConfig, address: StoreAddress, database: Database | None) -> Iterator[Finding]:
    """Yield a finding for each line of the checklist, in its order. `database` is the host's store, if it can be
    read."""
    yield from _judge("tokens", _find_open(database), "the server asks for a token", "`agent-core token new`")
    for name, check, sound, advice in CHECKS:
        yield from _judge(name, check(config), sound, advice)
    stores = list(_find_files(config, address))
    yield from _judge("stores", _find_within_roots(config, stores), "no file tool reaches a store", "move it out")
    yield from _judge("files", _find_readable(config, stores), "only their owner reads them", "`chmod go-rwx` them")


def _judge(name: str, faults: Iterator[str], sound: str, advice: str) -> Iterator[Finding]:
    """Yield what the faults come to; where they cannot be looked for, why."""
    part = f"shared: {name}"
    yield from keep_going(part, _join(part, faults, sound, advice))


def _join(part: str, faults: Iterator[str], sound: str, advice: str) -> Iterator[Finding]:
    told = "; ".join(faults)
    yield Finding(part, "problem", told, advice) if told else Finding(part, "ok", sound)


def _find_open(database: Database | None) -> Iterator[str]:
    if database is None or not Tokens(database).any_existed():
        yield "there is no token, so the server is open, or refuses to start"


def _find_shared_directories(config: HostConfig) -> Iterator[str]:
    """Workflows, agents and triggers that more than one reads."""
    for part in ("workflows", "agents", "triggers"):
        owners: dict[Path, str] = {}
        for name, each in _all_of(config):
            directory = (config.base / getattr(each, part)).resolve()
            if directory in owners:
                yield f"{name} and {owners[directory]} share the directory of their {part}"
            owners.setdefault(directory, name)


def _find_overlapping_roots(config: HostConfig) -> Iterator[str]:
    """Roots of tenants that lie in one another, or that hold definitions."""
    roots = {name: _root_of(each) for name, each in _all_of(config)}
    tenants = [(name, root) for name, root in roots.items() if root is not None and name != HOST]
    for (one, first), (other, second) in combinations(tenants, 2):
        if first.is_relative_to(second) or second.is_relative_to(first):
            yield f"the roots of {one} and {other} overlap"
    for name, root in tenants:
        for owner, each in _all_of(config):
            for part in ("workflows", "agents", "triggers"):
                if (config.base / getattr(each, part)).resolve().is_relative_to(root):
                    yield f"the root of {name} holds {part} of {owner}"


def _find_given_variables(config: HostConfig) -> Iterator[str]:
    """Variables of the host's own that a list gives away."""
    lists = {"secret_env": config.secret_env, "env": config.env, SECRET_ENV: os.environ.get(SECRET_ENV, "").split()}
    lists |= {f"env of {name}": each.env for name, each in config.tenants.items()}
    lists |= {f"secret_env of {name}": each.secret_env or [] for name, each in config.tenants.items()}
    for where, names in lists.items():
        yield from (f"{where} lists {name}, which is the host's own" for name in names if config.is_own(name))


def _find_shared_secrets(config: HostConfig) -> Iterator[str]:
    for name, each in config.tenants.items():
        if each.secret_env is None and config.secret_env:
            yield f"{name} has every secret of the host"


def _find_open_endpoints(config: HostConfig) -> Iterator[str]:
    for name, each in config.tenants.items():
        if each.model_endpoints is None and config.model_endpoints is None:
            yield f"the configuration does not say which models {name} may ask"


def _find_commands(config: HostConfig) -> Iterator[str]:
    """Tenants who run programs on this machine."""
    for name in config.tenants:
        tenant = config.for_tenant(name)
        allowed = tenant.policy().presets.get("shell_command", {}).get("allow")
        if tenant.root is not None and allowed and tenant.policy().admits("shell_command"):
            yield f"{name} has shell_command"


def _find_unsigned(config: HostConfig) -> Iterator[str]:
    keys = verifying_keys()
    if keys is None or not keys.signer:
        yield "no key seals runs, so anyone who can write to the store can rewrite them"


def _find_files(config: HostConfig, address: StoreAddress) -> Iterator[Path]:
    """Yield the files that runs are stored in."""
    if not is_url(address):
        path = Path(str(address))
        yield from (path, *(of_tenant(path, name) for name in config.tenants))


def _find_within_roots(config: HostConfig, stores: Sequence[Path]) -> Iterator[str]:
    for name, each in _all_of(config):
        root = _root_of(each)
        within = [path.name for path in stores if root is not None and path.resolve().is_relative_to(root)]
        yield from (f"{path} lies in the root of {name}" for path in within)


def _find_readable(config: HostConfig, stores: Sequence[Path]) -> Iterator[str]:
    """Files that other users of the machine read, or write."""
    if config.file is not None and config.file.stat().st_mode & WRITABLE:
        yield f"others may write {config.file}"
    for path in (config.base / DOT_ENV, *stores):
        if path.is_file() and path.stat().st_mode & (READABLE | WRITABLE):
            yield f"others may read {path}"


HOST: Final = "the host"
CHECKS: Final[tuple[tuple[str, Check, str, str], ...]] = (
    ("directories", _find_shared_directories, "each has its own", "give each tenant its own in agent-core.yaml"),
    ("roots", _find_overlapping_roots, "each tenant's files are its own", "give each tenant a separate root"),
    ("variables", _find_given_variables, "no list gives away the host's own", "take it off the list"),
    ("secrets", _find_shared_secrets, "each has its own list", "give each tenant its secret_env"),
    ("models", _find_open_endpoints, "each tenant's endpoints are named", "name them in model_endpoints"),
    ("commands", _find_commands, "no tenant runs programs", "deny_tools: [shell_command]"),
    ("seals", _find_unsigned, "runs are sealed", "set AGENT_CORE_SIGNING_KEY, or AGENT_CORE_JOURNAL_KEYS"),
)


def _all_of(config: HostConfig) -> list[tuple[str, HostConfig]]:
    return [(HOST, config), *((name, config.for_tenant(name)) for name in config.tenants)]


def _root_of(config: HostConfig) -> Path | None:
    return None if config.root is None else (config.base / config.root).resolve()

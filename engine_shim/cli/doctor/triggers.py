"""The triggers, webhooks, callbacks and links of a host: whether they are sound, and their secrets set."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from engine_shim.cli.doctor.finding import Finding, find_faults
from engine_shim.errors import DefinitionError
from engine_shim.host.config import HostConfig
from engine_shim.service.changed_files import FileStamps
from engine_shim.service.workflows import WorkflowCatalog, WorkflowNotFound

NEEDED = ("cronsim", "standardwebhooks")
LINKS = "decision links"


def check_triggers(config: HostConfig, workflows: WorkflowCatalog, *, part: str, hooks: str) -> Iterator[Finding]:
    """Yield what is said of the files in the directory of triggers, as `part`, and of webhooks, as `hooks`."""
    files = FileStamps(config.base / config.triggers).find_changed() or []
    if (files or config.webhooks or config.callbacks) and not all(map(find_spec, NEEDED)):
        message = "triggers and webhooks need the extra web, which is not installed"
        yield Finding(part, "problem", message, "pip install 'agent-core[web]'")
        return
    yield from _check_files(files, workflows, part)
    yield from _check_webhooks(config, hooks)
    yield from _check_links(config)


def _check_files(files: Sequence[Path], workflows: WorkflowCatalog, part: str) -> Iterator[Finding]:
    sound: list[str] = []
    for file in files:
        from engine_shim.service.triggers import check_trigger

        try:
            check_trigger(file, workflows)
            sound.append(file.stem)
        except WorkflowNotFound as error:
            yield Finding(part, "problem", f"{file}: {error}")
        except DefinitionError as error:
            yield from find_faults(part, error)
    if sound or not files:
        yield Finding(part, "ok", ", ".join(sound) or "none")


def _check_webhooks(config: HostConfig, part: str) -> Iterator[Finding]:
    """Yield the secret of each webhook, and that of callbacks; no URL is shown or called."""
    named = [(f"webhooks/{at}", hook.secret_env) for at, hook in enumerate(config.webhooks)]
    if config.callbacks is not None:
        named.append(("callbacks", config.callbacks.secret_env))
    for where, variable in named:
        from engine_shim.service.secrets import read_secret

        try:
            read_secret(variable, config.at(f"{where}/secret_env"))
            yield Finding(part, "ok", f"{where}: {variable} is set")
        except DefinitionError as error:
            yield from find_faults(part, error)


def _check_links(config: HostConfig) -> Iterator[Finding]:
    """Yield whether links can be made, as the host has them for all tenants."""
    if config.tenant is not None:
        return
    from engine_shim.service.decision_links import open_links

    try:
        links = open_links(config)
    except DefinitionError as error:
        yield from find_faults(LINKS, error)
        return
    if links is not None:
        yield Finding(LINKS, "ok", f"{links.public_url}/decide/…, for {links.lifetime:,} seconds at most")

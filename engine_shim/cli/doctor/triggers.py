"""The triggers and webhooks of a host: whether their definitions are sound, and their secrets set."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from engine_shim.cli.doctor.finding import Finding, find_faults
from engine_shim.errors import DefinitionError
from engine_shim.host.config import HostConfig
from engine_shim.service.changed_files import FileStamps
from engine_shim.service.workflows import WorkflowCatalog, WorkflowNotFound

NEEDED = ("cronsim", "standardwebhooks")


def check_triggers(config: HostConfig, workflows: WorkflowCatalog, *, part: str, hooks: str) -> Iterator[Finding]:
    """Yield what is said of the files in the directory of triggers, as `part`, and of webhooks, as `hooks`."""
    files = FileStamps(config.base / config.triggers).find_changed() or []
    if (files or config.webhooks) and not all(map(find_spec, NEEDED)):
        message = "triggers and webhooks need the extra web, which is not installed"
        yield Finding(part, "problem", message, "pip install 'agent-core[web]'")
        return
    yield from _check_files(files, workflows, part)
    yield from _check_webhooks(config, hooks)


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
    """Yield the secret of each webhook; its URL is not shown, and not called."""
    for at, hook in enumerate(config.webhooks):
        from engine_shim.service.secrets import read_secret

        try:
            read_secret(hook.secret_env, config.at(f"webhooks/{at}/secret_env"))
            yield Finding(part, "ok", f"webhooks/{at}: {hook.secret_env} is set")
        except DefinitionError as error:
            yield from find_faults(part, error)

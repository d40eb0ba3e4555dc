"""The command dev: serve with the page, started again whenever the host's own files change."""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Final

from agent_core.agents.catalog import SUFFIXES
from engine_shim.cli import output, terminal
from engine_shim.errors import DefinitionError
from engine_shim.host.find import find_host_config
from engine_shim.intervals import FILES_INTERVAL_S
from utools.databases.store_address import StoreAddress
from utools.document import read_document

WATCHED: Final = ("*.py", "*/*.py", "agent-core.*", ".env", "manifests/*")
"""Files that a server reads once, beside its configuration and its agents; it takes up changed workflows by itself."""
ENDS_S: Final = 10.0
"""How long a server may take to end before it is killed."""
PROGRAM: Final = "from engine_shim.cli.main import main; main()"
Stamps = dict[Path, int]


def serve_while_writing(words: Sequence[str], config: Path | None, store: StoreAddress | None) -> int:
    """Serve until Ctrl-C, by a process that is started again whenever a file of the host changes. A server that cannot
    start says why, and the next change starts another one."""
    file = find_host_config(config)
    base = Path.cwd() if file is None else file.absolute().parent
    named = {"AGENT_CORE_CONFIG": config, "AGENT_CORE_STORE": store}  # no password of a URL on a command line
    environment = {**os.environ, **{name: str(value) for name, value in named.items() if value is not None}}
    stamps, server = find_stamps(base, file), _start(words, environment)
    try:
        while True:
            time.sleep(FILES_INTERVAL_S)
            if (now := find_stamps(base, file)) != stamps:
                _tell(name_changes(stamps, now))
                stamps = now
                _end(server)
                server = _start(words, environment)
    except KeyboardInterrupt:
        return output.OK
    finally:
        _end(server)


def find_stamps(base: Path, config: Path | None = None) -> Stamps:
    """Return when each watched file of a host was last written, in nanoseconds; its configuration may have any name."""
    found = _stamps_of([] if config is None else [config.absolute()])
    agents = _find_agents(base, config, tuple(found.values()))
    beside = (path for each in agents for path in each.glob("*") if path.suffix in SUFFIXES)  # no store kept there
    return found | _stamps_of(chain(beside, *map(base.glob, WATCHED)))


def _stamps_of(paths: Iterable[Path]) -> Stamps:
    found: Stamps = {}
    for path in paths:
        with suppress(OSError):  # it went just now
            found[path] = path.stat().st_mtime_ns
    return found


@lru_cache(1)
def _find_agents(base: Path, config: Path | None, stamps: tuple[int, ...]) -> list[Path]:
    """Return the directories of the agents of the host and of its tenants, by a configuration that was last written at
    `stamps`."""
    try:
        data = None if config is None else read_document(config, "the host configuration").data
    except DefinitionError:  # the server says what is wrong with it
        data = None
    host = data if isinstance(data, dict) else {}
    tenants = host.get("tenants")
    owners = [{"agents": "agents", **host}, *(tenants.values() if isinstance(tenants, dict) else ())]
    named = (each.get("agents") for each in owners if isinstance(each, dict))
    return [base / each for each in named if isinstance(each, str)]


def name_changes(before: Stamps, now: Stamps) -> list[str]:
    """Return the names of the files that are new, changed or gone."""
    return sorted(path.name for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def _start(words: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-P", "-c", PROGRAM, "serve", *words], env=environment)


def _end(server: subprocess.Popen[bytes]) -> None:
    """End a server as Ctrl-C does; its unfinished runs continue at the next start."""
    server.terminate()
    try:
        server.wait(ENDS_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _tell(names: Iterable[str]) -> None:
    terminal.err().write(f"agent-core: {', '.join(names)} changed; the server starts again\n")
    terminal.err().flush()

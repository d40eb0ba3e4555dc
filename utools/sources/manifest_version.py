"""Which version of a tool a manifest makes: by what the manifest says, and the program that it names beside itself."""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from utools.sources.manifest import Manifest

SCRIPTS = (".py", ".sh", ".js", ".mjs", ".ts", ".rb", ".pl", ".php", ".lua", ".jar", ".sql", ".jq", ".awk")


def fingerprint(manifest: "Manifest", programs: Iterable[Path]) -> str:
    """SHA-256 over the manifest, whatever the order of its keys, and the files that do what it says.

    It is the same wherever the manifest lies. What such a file reads or imports in turn does not count.
    """
    said = manifest.model_dump(mode="json", by_alias=True, exclude_unset=True)
    contents = [_content(path) for path in programs]
    text = json.dumps([said, contents], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def programs_of(manifest: "Manifest", base: Path, root: Path) -> Iterator[Path]:
    """A program or a Python file named by its path, a script that an interpreter is given, the file of a module."""
    if manifest.command is not None:
        if os.sep in manifest.command.argv[0]:
            yield base / manifest.command.argv[0]
        scripts = (word for word in manifest.command.argv[1:] if word.endswith(SCRIPTS))
        yield from filter(os.path.isfile, (root / manifest.command.cwd / word for word in scripts))
    if manifest.python is not None:
        module = manifest.python.rpartition(":")[0]
        file = base / module if module.endswith(".py") else getattr(sys.modules.get(module), "__file__", None)
        if file is not None:
            yield Path(file)


def _content(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:  # a program that is not there yet, or may only be run
        return None

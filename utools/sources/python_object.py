"""The object that `module:name` or `file.py:name` names: the host's own Python, which its configuration loads."""

import importlib
import importlib.util
import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from utools.error_text import describe, raised_at
from utools.errors import DefinitionError
from utools.words.text import error_words


def load_object(reference: str, base: Path, where: str) -> Any:
    """Return the object; DefinitionError, naming the reference, whatever goes wrong in the author's own code.

    The file may import modules of its own directory; `module` may itself lie in `base`.
    """
    module_name, colon, name = reference.rpartition(":")
    if not colon or not module_name or not name:
        raise DefinitionError("must be module:name or file.py:name", where=where, value=reference)
    module = load_module(module_name, base, where, reference)
    if not hasattr(module, name):
        raise DefinitionError(f"there is no {name!r} in {module_name}", where=where)
    return getattr(module, name)


def load_module(module_name: str, base: Path, where: str, reference: str) -> ModuleType:
    """Return the module, or the file, that a reference names; DefinitionError for what goes wrong in it."""
    try:
        return _load_module(module_name, base)
    except DefinitionError as error:
        raise DefinitionError(f"cannot be loaded: {error_words(error)}{raised_at(error)}", where=where) from error
    except (Exception, SystemExit) as error:  # the author's own code runs here, and may fail in any way
        text = f"cannot be loaded: {describe(error)}{raised_at(error)}"
        raise DefinitionError(text, where=where, value=reference) from error


def _load_module(name: str, base: Path) -> ModuleType:
    directory = str((base / name).parent.resolve() if name.endswith(".py") else base.resolve())
    if directory not in sys.path:
        sys.path.append(directory)  # last, so that nothing there hides a library
    return _load_file(base / name) if name.endswith(".py") else importlib.import_module(name)


def _load_file(path: Path) -> ModuleType:
    """Return the file as a module: run once, and again only for another file of the same name."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    digest = sha256(bytes(path.resolve())).hexdigest()
    name = f"agent_core_host_{path.stem}_{digest[:8]}"
    if (loaded := sys.modules.get(name)) is not None:
        return loaded
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that annotations in it can be resolved
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module

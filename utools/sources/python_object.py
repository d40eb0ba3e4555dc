"""What `module:name` or `file.py:name` stands for: the host's own Python, loaded when the host says so."""

import importlib
import importlib.util
import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from utools.errors import DefinitionError


def loaded(reference: str, base: Path, where: str) -> Any:
    """The object; DefinitionError, naming the reference, whatever goes wrong in the author's own code.

    It may import modules that stand beside it; `module` may itself stand in `base`.
    """
    module_name, colon, name = reference.rpartition(":")
    if not colon or not module_name or not name:
        raise DefinitionError("must be module:name or file.py:name", where=where, value=reference)
    try:
        module = _module(module_name, base)
    except DefinitionError as error:
        raise DefinitionError(f"cannot be loaded: {error}", where=where) from error
    except Exception as error:  # the author's own code runs here, and may fail in any way
        told = f"cannot be loaded: {type(error).__name__}: {error}"
        raise DefinitionError(told, where=where, value=reference) from error
    if not hasattr(module, name):
        raise DefinitionError(f"there is no {name!r} in {module_name}", where=where)
    return getattr(module, name)


def _module(name: str, base: Path) -> ModuleType:
    place = str((base / name).parent.resolve() if name.endswith(".py") else base.resolve())
    if place not in sys.path:
        sys.path.append(place)  # last: what stands there hides no library
    return _from_file(base / name) if name.endswith(".py") else importlib.import_module(name)


def _from_file(path: Path) -> ModuleType:
    """The file as a module, run once, and once more when it is another file of the same name."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    place = str(path.resolve())
    name = f"agent_core_host_{path.stem}_{sha256(place.encode()).hexdigest()[:8]}"
    if (known := sys.modules.get(name)) is not None:
        return known
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

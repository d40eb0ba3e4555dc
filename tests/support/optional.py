"""Marks for tests that need more than Python and the extra `test`."""

from importlib.util import find_spec
from shutil import which

import pytest


def needs(*modules: str, extra: str = "test-all") -> pytest.MarkDecorator:
    """Skips where one of these modules is not installed."""
    missing = [module for module in modules if not _is_installed(module)]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)} (extra `{extra}`)")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it is in is not there either
        return False


NODE = which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs the program node")

"""The headers that tell another system which span a request belongs to (W3C Trace Context). Pure."""

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Final

NONE: Final[Mapping[str, str]] = MappingProxyType({})
TRACE_HEADERS: ContextVar[Mapping[str, str]] = ContextVar("utools_trace_headers", default=NONE)
"""Of the call that is under way, by lower-case name; empty where nothing is traced. A thread that is started for the
call has them too."""

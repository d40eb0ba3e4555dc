"""Signatures and annotations as they are written. From Python 3.14 on a name that is not there fails where they are
read, in place of where the function is defined; those that read them leave it as a forward reference."""

import inspect
import sys
from typing import Any

if sys.version_info >= (3, 14):
    from annotationlib import Format

    def read_signature(function: Any) -> inspect.Signature:
        """Return the signature of what is called."""
        return inspect.signature(function, annotation_format=Format.FORWARDREF)

    def read_annotations(function: Any) -> dict[str, Any]:
        """Return the annotations of what is called, by the names of its parameters and `return`."""
        return inspect.get_annotations(function, format=Format.FORWARDREF)

else:

    def read_signature(function: Any) -> inspect.Signature:
        """Return the signature of what is called."""
        return inspect.signature(function)

    def read_annotations(function: Any) -> dict[str, Any]:
        """Return the annotations of what is called, by the names of its parameters and `return`."""
        return inspect.get_annotations(function)


def find_annotated(called: Any) -> Any:
    """Return what has the annotations of what is called: of an object its `__call__`, also if the object has a name,
    unless it wraps a function."""
    is_written = inspect.isroutine(called) or inspect.isclass(called) or hasattr(called, "__wrapped__")
    return called if is_written else getattr(type(called), "__call__", called)  # noqa: B004

"""The context window of a GGUF file, read from its head (ggml/docs/gguf.md) without loading the model."""

import struct
from pathlib import Path
from typing import BinaryIO

from agent_core.errors import DefinitionError

MAGIC = b"GGUF"
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
MAX_LENGTH = 1 << 24
"""The largest plausible text in bytes, and array in entries."""
MAX_ENTRIES = 1 << 16


class _Broken(Exception):
    """The head breaks its format."""


def read_context_length(path: Path) -> int | None:
    """Return the window that the model was trained with, in tokens; None when the file does not say.

    DefinitionError for a file that cannot be read or is not GGUF.
    """
    try:
        with path.open("rb") as file:
            return _read_context_length(file)
    except OSError as error:
        message = f"the model cannot be read: {error.strerror}"
        raise DefinitionError(message, where="model", value=path.name) from None
    except (_Broken, UnicodeDecodeError):
        raise DefinitionError("is not a sound GGUF file", where="model", value=path.name) from None


def _read_context_length(file: BinaryIO) -> int | None:
    if file.read(4) != MAGIC:
        raise _Broken
    _version, _tensors, entries = _read_numbers(file, "<IQQ")
    if entries > MAX_ENTRIES:
        raise _Broken
    for _ in range(entries):
        key, value = _read_text(file), _read_value(file, _read_numbers(file, "<I")[0])
        if key.endswith(".context_length") and isinstance(value, int):
            return value
    return None


def _read_value(file: BinaryIO, kind: int) -> object:
    """Return a value; an array is skipped and gives None."""
    if kind == STRING:
        return _read_text(file)
    if kind in SCALARS:
        return _read_numbers(file, SCALARS[kind])[0]
    if kind != ARRAY:
        raise _Broken
    inner, count = _read_numbers(file, "<IQ")
    if count > MAX_LENGTH:
        raise _Broken
    if inner in SCALARS:
        file.seek(count * struct.calcsize(SCALARS[inner]), 1)
        return None
    if inner != STRING:
        raise _Broken
    for _ in range(count):
        file.seek(_read_length(file), 1)
    return None


def _read_text(file: BinaryIO) -> str:
    return _read_bytes(file, _read_length(file)).decode()


def _read_length(file: BinaryIO) -> int:
    length: int = _read_numbers(file, "<Q")[0]
    if length > MAX_LENGTH:
        raise _Broken
    return length


def _read_numbers(file: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, _read_bytes(file, struct.calcsize(form)))


def _read_bytes(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise _Broken
    return data

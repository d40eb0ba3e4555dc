"""What a GGUF file says of its model, read from its head (ggml/docs/gguf.md) without loading it."""

import struct
from pathlib import Path
from typing import BinaryIO

from agent_core.errors import DefinitionError

MAGIC = b"GGUF"
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
LONGEST = 1 << 24
"""Bytes of a text and entries of an array beyond which a head is not a head."""
MOST = 1 << 16


class _Broken(Exception):
    """The head is not what its format says."""


def context_length(path: Path) -> int | None:
    """The window that the model was trained with, in tokens; None when the file does not say.

    DefinitionError for a file that cannot be read or is no GGUF.
    """
    try:
        with path.open("rb") as file:
            return _context_length(file)
    except OSError as error:
        told = f"the model cannot be read: {error.strerror}"
        raise DefinitionError(told, where="model", value=path.name) from None
    except (_Broken, UnicodeDecodeError):
        raise DefinitionError("is not a sound GGUF file", where="model", value=path.name) from None


def _context_length(file: BinaryIO) -> int | None:
    if file.read(4) != MAGIC:
        raise _Broken
    _version, _tensors, entries = _numbers(file, "<IQQ")
    if entries > MOST:
        raise _Broken
    for _ in range(entries):
        key, value = _text(file), _value(file, _numbers(file, "<I")[0])
        if key.endswith(".context_length") and isinstance(value, int):
            return value
    return None


def _value(file: BinaryIO, kind: int) -> object:
    """A value; arrays are passed over and give None."""
    if kind == STRING:
        return _text(file)
    if kind in SCALARS:
        return _numbers(file, SCALARS[kind])[0]
    if kind != ARRAY:
        raise _Broken
    inner, count = _numbers(file, "<IQ")
    if count > LONGEST:
        raise _Broken
    if inner in SCALARS:
        file.seek(count * struct.calcsize(SCALARS[inner]), 1)
        return None
    if inner != STRING:
        raise _Broken
    for _ in range(count):
        file.seek(_length(file), 1)
    return None


def _text(file: BinaryIO) -> str:
    return _bytes(file, _length(file)).decode()


def _length(file: BinaryIO) -> int:
    length: int = _numbers(file, "<Q")[0]
    if length > LONGEST:
        raise _Broken
    return length


def _numbers(file: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, _bytes(file, struct.calcsize(form)))


def _bytes(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise _Broken
    return data

"""read_secret(): the key that a variable of the environment holds, by which a server signs or checks."""

import os
from base64 import b64decode
from typing import Final

from engine_shim.errors import DefinitionError

PREFIX: Final = "whsec_"


def read_secret(variable: str, where: str) -> bytes:
    """Return the key in a variable: `whsec_` and base64, or a text that is taken as it is. DefinitionError without
    one."""
    text = os.environ.get(variable, "")
    if not text:
        told = f"{variable} is not set: set it, or put {variable}=… into .env beside the configuration"
        raise DefinitionError(told, where=where)
    if not text.startswith(PREFIX):
        return text.encode()
    try:
        return b64decode(text.removeprefix(PREFIX), validate=True)
    except ValueError:
        raise DefinitionError("holds no base64 after whsec_", where=where, value=variable) from None

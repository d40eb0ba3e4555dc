"""StoreAddress: where a store is: the path of a file, or as text the URL of a PostgreSQL database."""

import os
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

SCHEMES: Final = ("postgresql://", "postgres://")
StoreAddress = Path | str
LONGEST_SCHEMA: Final = 63
"""Bytes of a name in PostgreSQL; it cuts what is longer."""


def is_url(address: StoreAddress | os.PathLike[str]) -> bool:
    """Whether it is the URL of a database."""
    return isinstance(address, str) and address.startswith(SCHEMES)


def read_address(text: str, base: Path | None = None) -> StoreAddress:
    """The address that a text gives; a path starts from `base`."""
    if is_url(text):
        return text
    return Path(text) if base is None else base / text


def of_tenant(path: Path, tenant: str) -> Path:
    """The file of a tenant beside the host's own."""
    return path.with_name(f"{path.stem}.{tenant}{path.suffix}")


def schema_of(tenant: str | None) -> str | None:
    """The schema of a tenant in the host's database; one whose name is too long for PostgreSQL ends in a digest of it.
    The host itself has none of its own."""
    if tenant is None:
        return None
    name = f"tenant_{tenant}"
    return name if len(name) <= LONGEST_SCHEMA else f"{name[:46]}_{sha256(name.encode()).hexdigest()[:16]}"


def describe_address(address: StoreAddress) -> str:
    """The address without a password, which may be in a URL."""
    if not is_url(address) or not has_password(address):
        return str(address)
    parts = urlsplit(str(address))
    user = quote(parts.username or "", safe="%")
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{user}@{host}" if user else host, query="").geturl()


def has_password(address: StoreAddress) -> bool:
    """Whether a URL has a password in it."""
    if not is_url(address):
        return False
    parts = urlsplit(str(address))
    return ":" in parts.netloc.rpartition("@")[0] or "password=" in parts.query

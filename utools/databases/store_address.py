"""StoreAddress: where a store is: the path of a file, or as text the URL of a PostgreSQL database."""

import os
import re
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from utools.errors import DefinitionError
from utools.lazy_pattern import lazy_compile

SCHEMES: Final = ("postgresql", "postgres")
URL: Final = lazy_compile(r"([A-Za-z][A-Za-z0-9.\-]+)(\+[A-Za-z0-9]+)?:/+(.*)", re.DOTALL)
"""What looks like a URL: a scheme, perhaps with a driver's name as SQLAlchemy has it, and a slash. A scheme of one
letter is a drive of Windows."""
OF_FILES: Final = ("sqlite", "sqlite3", "file")
StoreAddress = Path | str
LONGEST_SCHEMA: Final = 63
"""Bytes of a name in PostgreSQL; it cuts what is longer."""


def is_url(address: StoreAddress | os.PathLike[str]) -> bool:
    """Return whether it is the URL of a database."""
    return isinstance(address, str) and address.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def is_same(one: StoreAddress, other: StoreAddress) -> bool:
    """Return whether two addresses are of one store; a file may have several paths."""
    if isinstance(one, Path) and isinstance(other, Path):
        return one.exists() and other.exists() and one.samefile(other)
    return one == other


def read_address(text: str, base: Path | None = None, *, where: str = "store") -> StoreAddress:
    """Return the address that a text gives; a path starts from `base`.

    A URL may name a driver of SQLAlchemy (`postgresql+psycopg://`), which is left out. DefinitionError, which names
    `where`, for what looks like a URL and is none of PostgreSQL.
    """
    url = URL.match(text)
    if url is None:
        return Path(text) if base is None else base / text
    if url[1].lower() in SCHEMES and text[url.end(2) if url[2] else url.end(1) :].startswith("://"):
        return f"{url[1].lower()}{text[text.index(':') :]}"
    raise DefinitionError(_explain(url), where=where, value=_without_login(text))


def check_file(path: str | os.PathLike[str], *, where: str = "store") -> None:
    """DefinitionError for a file's path that looks like a URL."""
    if (url := URL.match(os.fspath(path))) is not None:
        message = f"is a URL, and a file is wanted here. {_explain(url)}"
        raise DefinitionError(message, where=where, value=_without_login(os.fspath(path)))


def _explain(url: re.Match[str]) -> str:
    """Return which store a URL of another scheme may mean."""
    scheme = url[1].lower()
    if scheme in OF_FILES:
        path = url[0][len(scheme) + 1 :].removeprefix("//")
        return f"A store in a file is named by its path alone: {path[scheme != 'file' :] or 'runs.db'}"
    near = get_close_matches(scheme, SCHEMES, n=1)
    meant = f"; did you mean {near[0]}://?" if near else ""
    return f"There are stores in a SQLite file, by its path, and in PostgreSQL, by a URL: postgresql://HOST/NAME{meant}"


def _without_login(text: str) -> str:
    """Return a URL without what stands before its host, which may be a password."""
    scheme, slashes, rest = text.partition("/")
    login, at, host = rest.rpartition("@")
    return f"{scheme}{slashes}{'/' if login.startswith('/') else ''}…@{host}" if at else text


def of_tenant(path: Path, tenant: str) -> Path:
    """Return the file of a tenant beside the host's own."""
    return path.with_name(f"{path.stem}.{tenant}{path.suffix}")


def schema_of(tenant: str | None) -> str | None:
    """Return the schema of a tenant in the host's database; one whose name is too long for PostgreSQL ends in a digest
    of it. The host itself has none of its own."""
    if tenant is None:
        return None
    name = f"tenant_{tenant}"
    return name if len(name) <= LONGEST_SCHEMA else f"{name[:46]}_{sha256(name.encode()).hexdigest()[:16]}"


def describe_address(address: StoreAddress) -> str:
    """Return the address without a password, which may be in a URL."""
    if not is_url(address) or not has_password(address):
        return str(address)
    parts = urlsplit(str(address))
    user = quote(parts.username or "", safe="%")
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{user}@{host}" if user else host, query="").geturl()


def has_password(address: StoreAddress) -> bool:
    """Return whether a URL has a password in it."""
    if not is_url(address):
        return False
    parts = urlsplit(str(address))
    return ":" in parts.netloc.rpartition("@")[0] or "password=" in parts.query

"""Where the store is that a connection of Airflow names. Pure."""

from typing import Any, Final, cast
from urllib.parse import quote, urlencode

from agent_core.errors import DefinitionError

PORT: Final = 5432
OWN_EXTRAS: Final = ("file", "page")


def read_address(name: str, connection: Any) -> str:
    """Return the file that a connection names in its extra, else the URL of its PostgreSQL database. DefinitionError
    for one that names neither."""
    extra: dict[str, Any] = connection.extra_dejson
    if file := extra.get("file"):
        return cast(str, file)
    if not connection.host:
        told = 'names no store; set a file in the extra, {"file": "/shared/runs.db"}, or the host of a PostgreSQL'
        raise DefinitionError(f"the connection {name!r} {told}", where="store_conn_id")
    login = quote(connection.login or "", safe="")
    if connection.password:
        login += f":{quote(connection.password, safe='')}"
    host = f"[{connection.host}]" if connection.host.count(":") > 1 else connection.host  # an address of IPv6
    place = f"{login}{'@' if login else ''}{host}:{connection.port or PORT}/{connection.schema or ''}"
    more = urlencode({key: value for key, value in extra.items() if key not in OWN_EXTRAS})
    return f"postgresql://{place}{'?' if more else ''}{more}"

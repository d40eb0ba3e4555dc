"""StoreIdentity: which store a journal is, so that a seal says where its run is at home."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

STORE: Final = "store_identity"
COPIES: Final = "store_copies"
_READ: Final = f"SELECT store, tenant FROM {STORE}"
_READ_COPIES: Final = f"SELECT store, kid, mac FROM {COPIES}"
Select = Callable[[str, str], list[Any]]
"""What a query finds in a table; nothing where there is no such table."""
_Signed = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """A store's own id, made with it, and the tenant whose runs it holds; None for those of the host. The id is empty
    before the first write, and where somebody has taken it away.

    `copies` are the stores whose runs were copied here, by their ids: who signed that, {kid, mac}, each None where
    there was no key.
    """

    store: str
    tenant: str | None = None
    copies: Mapping[str, _Signed] = field(default_factory=dict[str, _Signed])


def read_identity(select: Select) -> StoreIdentity:
    """Return the identity of the store in a database."""
    found = select(STORE, _READ)
    store, tenant = found[0] if found else ("", None)
    copies = {source: (kid, mac) for source, kid, mac in select(COPIES, _READ_COPIES)} if found else {}
    return StoreIdentity(str(store or ""), tenant, copies)

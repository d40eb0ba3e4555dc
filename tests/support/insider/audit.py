"""What a careful auditor does with what was kept: whether anything is found."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from agent_core.errors import JournalError
from agent_core.evidence.key_files import KeyFiles
from agent_core.evidence.tiles import Tile
from agent_core.evidence.variables import KEY_VARIABLE
from agent_core.journal.signature import Keys
from engine_shim.cli.evidence.cosign import _look
from engine_shim.cli.evidence.ledger import read_checkpoint
from engine_shim.store.ledger_tree import LedgerTree
from support.command import Cli
from support.insider.world import World, checkpoint_of, signer_of

OK: Final = 0
AUDIT: Final = 5


def by_nothing(world: World, cli: Cli) -> bool:
    """With the host's own keys, as they are on its machine now."""
    return is_found(world, cli)


def by_checkpoint(world: World, cli: Cli) -> bool:
    """With a checkpoint, and with the host's own keys."""
    kept = str(world.away("kept.txt"))
    return is_found(world, cli, "--checkpoint", kept) or has_grown_otherwise(world, cli, kept)


def by_second_host(world: World, cli: Cli) -> bool:
    """By one more look of the second host, and with what it saw last."""
    seen = str(world.away("seen.txt"))
    return is_refused_by_second_host(world) or is_found(world, cli, "--checkpoint", seen)


def by_keys(world: World, cli: Cli) -> bool:
    """With a copy of the public keys that is elsewhere."""
    return is_found(world, cli, "--key", str(world.away("desk.key.pub")))


AUDITS: Final[dict[str, Callable[[World, Cli], bool]]] = {
    "nothing": by_nothing,
    "a checkpoint": by_checkpoint,
    "a second host": by_second_host,
    "the keys": by_keys,
}
"""By the column of the table."""


def is_found(world: World, cli: Cli, *words: str) -> bool:
    ran = cli("verify", "--all", "--store", world.address, *words)
    assert ran.code in (OK, AUDIT), ran
    return ran.code == AUDIT


def has_grown_otherwise(world: World, cli: Cli, kept: str) -> bool:
    ran = cli("ledger", "consistency", kept, "--store", world.address)
    return ran.code != OK


def is_refused_by_second_host(world: World) -> bool:
    """Whether the second host signs no more: what the host serves it, without HTTP in between."""
    tree = LedgerTree(world.store.database)

    def fetch(path: str) -> bytes:
        if path == "checkpoint":
            return checkpoint_of(world.store).sign(signer_of(world.key)).write().encode()
        tile = Tile.read(path)
        assert tile is not None
        return tree.read_tile(tile) or b""

    keys = KeyFiles(trusted=str(world.away("desk.key.pub"))).public_keys()
    try:
        return _look(fetch, keys, read_checkpoint(world.away("seen.txt"))[1])[2] is not None
    except JournalError:  # the host has no checkpoint to give: its ledger is no chain any more
        return True


@contextmanager
def keys_of_insider(world: World, column: str) -> Iterator[Keys | None]:
    """What an insider can seal with: the host's key, unless that is what is elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        if column == "the keys":
            patch.delenv(KEY_VARIABLE)
            yield None
        else:
            patch.setenv(KEY_VARIABLE, str(world.key))
            yield Keys(keyring=KeyFiles(str(world.key)))

"""Routes by which others follow the ledger of a store: its checkpoint, and the tiles of its log (C2SP's tlog-tiles)."""

from typing import Any, Final

from fastapi import APIRouter, HTTPException, Response

from agent_core.evidence.tiles import Tile
from agent_core.journal.identity import read_identity
from agent_core.run.secrets import find_signer
from engine_shim.api.access import Access, Caller
from engine_shim.api.answers import MANNERS
from engine_shim.api.problems import open_router, responses
from engine_shim.store.ledger_tree import LedgerTree, origin_of
from engine_shim.store.run_store import DatabaseRunStore

TEXT: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "A signed note", "content": {"text/plain": {"schema": {"type": "string"}}}}
}
BYTES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "A tile",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
NO_KEY: Final = "this server signs no checkpoints: set AGENT_CORE_SIGNING_KEY where it is started"
NO_RUNS: Final = "no run has ended here yet, so that there is no log"
NO_TILE: Final = "the log has no such tile; tiles are named as C2SP's tlog-tiles has it, and the last one has a width"


def ledger_routes(access: Access) -> APIRouter:
    """Return the routes for those who follow the ledger."""
    router = open_router("ledger")
    read = access.needs("read")

    @router.get("/ledger/checkpoint", response_class=Response, responses={**TEXT, **responses(404)})
    async def show_checkpoint(caller: Caller = read) -> Response:
        """Return how the log is now, signed: its name, its size, and its root."""
        note = await caller.tenant.runs.store.run_blocking(_sign_checkpoint, caller.tenant.store)
        return Response(note, headers=MANNERS, media_type="text/plain; charset=utf-8")

    @router.get("/ledger/tile/{path:path}", response_class=Response, responses={**BYTES, **responses(404)})
    async def show_tile(path: str, caller: Caller = read) -> Response:
        """Return a tile of the log: hashes of its tree (`LEVEL/NUMBER`), or entries (`entries/NUMBER`)."""
        tile = Tile.read(f"tile/{path}")
        tree = LedgerTree(caller.tenant.store.database)
        data = None if tile is None else await caller.tenant.runs.store.run_blocking(tree.read_tile, tile)
        if data is None:
            raise HTTPException(404, NO_TILE)
        return Response(data, headers=MANNERS, media_type="application/octet-stream")

    return router


def _sign_checkpoint(store: DatabaseRunStore) -> str:
    signer = find_signer()
    if signer is None:
        raise HTTPException(404, NO_KEY)
    identity = read_identity(store.database.rows)
    if not identity.store:
        raise HTTPException(404, NO_RUNS)
    return LedgerTree(store.database).checkpoint(origin_of(identity.store)).sign(signer).write()

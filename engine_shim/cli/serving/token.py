"""The command token: who may call a server of this host."""

import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta

import typer

from engine_shim.cli import output
from engine_shim.cli.output import Options
from engine_shim.cli.store import open_named_store
from engine_shim.host.find import load_host_config
from engine_shim.service.tokens import Token, Tokens
from engine_shim.store.run_store import DatabaseRunStore


def make_token(name: str, scopes: Sequence[str], tenant: str | None, days: float | None, options: Options) -> int:
    """Make a token, and show it this once. DefinitionError for a tenant that the host does not have."""
    if tenant is not None:
        load_host_config(options.config).for_tenant(tenant)
    with closing(_open(options)) as store:
        lifetime = None if days is None else _read_days(days)
        token = Tokens(store.database).issue(name, scopes, tenant, lifetime)
    if options.as_json:
        output.document({"token": token, "id": token.split("_")[1], "name": name, "scopes": list(scopes)})
    else:
        output.line(token)
        sys.stderr.write("the token is shown only this once; the store has only its hash\n")
    return output.OK


def list_tokens(options: Options) -> int:
    """List the tokens, without their secrets."""
    with closing(_open(options)) as store:
        tokens = Tokens(store.database).all()
    if options.as_json:
        output.document([_as_data(token) for token in tokens])
        return output.OK
    for token in tokens:
        bearer = token.principal
        ends = "" if token.expires_at is None else f"until {token.expires_at:%Y-%m-%d %H:%M} UTC"
        whose = [bearer.id, bearer.name, ", ".join(sorted(bearer.scopes)), bearer.tenant or "", ends]
        output.line("  ".join(filter(None, whose)))
    return output.OK


def revoke_token(identity: str, options: Options) -> int:
    """Revoke a token. BadParameter for an id that none has."""
    with closing(_open(options)) as store:
        if not Tokens(store.database).revoke(identity):
            raise typer.BadParameter(f"there is no token {identity!r}; `agent-core token list` shows their ids")
    return output.answer({"id": identity, "revoked": True}, f"{identity}  revoked", as_json=options.as_json)


def _read_days(days: float) -> timedelta:
    try:
        return timedelta(days=days)
    except ValueError:
        raise typer.BadParameter(f"--days {days} is no number of days") from None


def _open(options: Options) -> DatabaseRunStore:
    return open_named_store(options.store, options.config)


def _as_data(token: Token) -> dict[str, object]:
    bearer = token.principal
    return {
        "id": bearer.id,
        "name": bearer.name,
        "tenant": bearer.tenant,
        "scopes": sorted(bearer.scopes),
        "made_at": token.made_at.isoformat(),
        "expires_at": None if token.expires_at is None else token.expires_at.isoformat(),
    }

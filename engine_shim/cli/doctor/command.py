"""examine() and write_findings(): all that is looked at, in order, and how it is shown."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import typer

from engine_shim.cli import output
from engine_shim.cli.doctor.copied import check_copy
from engine_shim.cli.doctor.definitions import check_definitions
from engine_shim.cli.doctor.extras import check_extras, check_versions
from engine_shim.cli.doctor.finding import Finding, keep_going
from engine_shim.cli.doctor.host import check_host, check_sources
from engine_shim.cli.doctor.services import (
    check_journal_keys,
    check_patience,
    check_redis,
    check_temporal,
    check_tokens,
)
from engine_shim.cli.doctor.shared import check_shared
from engine_shim.cli.doctor.sqlite import PATIENCE_S, probe
from engine_shim.cli.doctor.stores import check_conversations, check_runs, look_into
from engine_shim.cli.output import Options
from engine_shim.cli.store import find_address
from engine_shim.errors import DefinitionError
from engine_shim.host.config import HostConfig
from engine_shim.host.environment import load_environment
from engine_shim.host.find import find_host_config
from engine_shim.store.database_sqlite import LAYOUT
from engine_shim.store.open import open_store
from engine_shim.store.run_store import SqliteRunStore
from utools.context.open_store import configured_address
from utools.context.store_sqlite import PATH_VARIABLE, default_path
from utools.databases.redis_server import VARIABLE as REDIS
from utools.databases.store_address import StoreAddress, describe_address, is_same, is_url, of_tenant, schema_of

NEWEST: Final = 100
"""How many runs a quick look verifies."""
STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def examine_host(options: Options, *, quick: bool, shared: bool = False) -> int:
    """Look at everything, or at what `shared` is about, and write what was found; FAILED where there is a problem."""
    return _tell_findings(examine_sharing(options) if shared else examine(options, quick=quick), options)


def examine_copy(options: Options, source: StoreAddress) -> int:
    """Look at a store that another one was copied to, likewise. BadParameter for a file that is not there."""
    if isinstance(source, Path) and not source.exists():
        raise typer.BadParameter(f"--copied-from: there is no run store {describe_address(source)}")
    load_environment(options.config or find_host_config())
    target = find_address(options.store, options.config)
    if is_same(source, target):
        name = describe_address(source)
        raise typer.BadParameter(f"--copied-from: {name} would be compared with itself; --store names the other store")
    return _tell_findings(check_copy(source, target, PATIENCE_S), options)


def _tell_findings(found: Iterator[Finding], options: Options) -> int:
    findings = list(found)
    write_findings(findings, as_json=options.as_json)
    return output.FAILED if any(each.status == "problem" for each in findings) else output.OK


def examine(options: Options, *, quick: bool) -> Iterator[Finding]:
    """Yield all findings, in the order in which they are shown."""
    yield from check_versions()
    yield from check_extras()
    found, config = check_host(options.config)
    yield from found
    if config is not None:
        yield from _examine_definitions(config)
    yield from keep_going("store", _examine_stores(options, config or HostConfig(), quick=quick))
    yield check_temporal(config or HostConfig())
    yield from keep_going("journal keys", check_journal_keys())
    yield from keep_going("patience", check_patience())


def examine_sharing(options: Options) -> Iterator[Finding]:
    """Yield whether tenants who do not trust each other can share the host."""
    found, config = check_host(options.config)
    if config is None:
        yield from found
        return
    address = find_address(options.store, options.config)
    exists = is_url(address) or probe(Path(str(address)), LAYOUT).version == LAYOUT.version
    with closing(open_store(address, patience=PATIENCE_S)) as store:
        yield from check_shared(config, address, store.database if exists else None)


def _examine_definitions(config: HostConfig) -> Iterator[Finding]:
    sources, are_known = check_sources(config)
    yield from sources
    if not are_known:
        message = "not checked: some of the tools that they may use are not known"
        yield Finding("definitions", "warning", message, "approve the tools above")
        return
    for each in (config, *map(config.for_tenant, config.tenants)):
        yield from keep_going("definitions", check_definitions(each))


def _examine_stores(options: Options, config: HostConfig, *, quick: bool) -> Iterator[Finding]:
    address = find_address(options.store, options.config)
    tenants: list[str | None] = [None, *config.tenants]
    newest = NEWEST if quick else None
    for tenant in tenants:
        part = "store" if tenant is None else f"store of {tenant}"
        yield from keep_going(part, _examine_store(address, tenant, part, newest, config))
    for tenant in tenants if not os.environ.get(REDIS) else ():
        part = "conversations" if tenant is None else f"conversations of {tenant}"
        yield from keep_going(part, _examine_conversations(address, tenant, part))
    yield check_redis(address)


def _examine_conversations(store: StoreAddress, tenant: str | None, part: str) -> Iterator[Finding]:
    """Yield the conversations of the host or of a tenant, where nothing is in Redis."""
    address = configured_address() or store
    if is_url(address):
        from engine_shim.cli.doctor.postgres import check_conversations_in

        yield from check_conversations_in(str(address), schema_of(tenant), part)
        return
    try:
        path = default_path()
    except DefinitionError as error:
        yield Finding(part, "problem", error.message, f"{PATH_VARIABLE} names a file")
        return
    yield from check_conversations(path if tenant is None else of_tenant(path, tenant), part)


def _examine_store(
    address: StoreAddress, tenant: str | None, part: str, newest: int | None, config: HostConfig
) -> Iterator[Finding]:
    """Yield the store of the host, with the tokens in it, or that of a tenant."""
    with closing(open_store(address, tenant=tenant, patience=PATIENCE_S)) as store:
        wanted = config.at("encrypt") if config.encrypt else None
        if isinstance(store, SqliteRunStore):
            yield from check_runs(store, part, newest=newest, wanted=wanted)
            is_current = probe(store.path, LAYOUT).version == LAYOUT.version
        else:
            from engine_shim.cli.doctor.postgres import check_clock, check_database

            found = list(check_database(store.database, part))
            yield from found
            is_current = found[-1].status == "ok"
            if is_current:
                if tenant is None:
                    yield check_clock(store.clock)
                yield from look_into(store, part, newest=newest, wanted=wanted)
            elif wanted is not None and not store.contents.has_key:  # whether it opens the store would make tables
                message = f"{wanted}: runs are to be encrypted, and {store.contents.variable} names no key"
                advice = "`agent-core key new FILE --encryption` makes one"
                yield Finding(part.replace("store", "encryption", 1), "problem", message, advice)
        if tenant is None and is_current:
            yield from check_tokens(store.database, list(config.tenants))


def write_findings(findings: Sequence[Finding], *, as_json: bool) -> None:
    """Write what was found: a document, or a line for each and how many are at fault."""
    masked = [(each, output.mask(each.message)) for each in findings]
    number = {status: sum(each.status == status for each in findings) for status in STYLES}
    if as_json:
        listed = [{**each.as_json(), "message": message} for each, message in masked]
        output.document({"ok": not number["problem"], **_plural(number), "findings": listed})
        return
    width = max(len(each.name) for each in findings)
    for each, message in masked:
        advice = f": {each.advice}" if each.advice else ""
        text = output.in_line(f"{each.name:<{width}}  {message}{advice}")
        output.styled_line((f"{each.status:<7}", STYLES[each.status]), f"  {text}")
    output.line(f"{output.count(number['problem'], 'problem')}, {output.count(number['warning'], 'warning')}")


def _plural(number: dict[str, int]) -> dict[str, int]:
    return {"problems": number["problem"], "warnings": number["warning"]}

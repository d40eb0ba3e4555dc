"""The commands about evidence for strangers, and the auditor's report: their options and help."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from engine_shim.cli.parameters import AsJson, ExistingStore, OfWorkflow, Since, TrustedKeys, check_files, refuse_others


def key(
    context: typer.Context,
    action: Annotated[Literal["new", "show", "rotate", "revoke"], typer.Argument(metavar="new|show|rotate|revoke")],
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The private key; its public keys are in FILE.pub.")
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=36_500, metavar="<n>", help="With new, rotate: valid for so many days.")
    ] = None,
    identity: Annotated[
        str | None, typer.Option("--key", metavar="ID", help="With revoke: the id of the key, as show prints it.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="With revoke: since when, a time or an age such as 2d.")
    ] = None,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="With revoke: why.")] = None,
    encryption: Annotated[
        bool, typer.Option("--encryption", help="With new, rotate: the key of an encrypted store.")
    ] = False,
    store: ExistingStore = None,
    as_json: AsJson = False,
) -> int:
    """Make and change the keys that sign runs, and encrypt stores.

    `new` writes a private key into FILE, for its owner alone, and the public one into FILE.pub. Set
    AGENT_CORE_SIGNING_KEY to FILE, and give FILE.pub to whoever is to check runs: `verify RUN --key FILE.pub`. `show`
    prints the public keys, without FILE those of this host. `rotate` puts a new private key into FILE; what the old one
    signed stays proven. What a revoked key signed is proven no more.

    With --encryption `new` writes the key that encrypts a store into FILE, or without FILE prints one: set
    AGENT_CORE_ENCRYPTION_KEY, and `encrypt: true` for a new store. `rotate` replaces that key, and what it has wrapped
    in the store; no run is rewritten.

    \b
    Examples:
      agent-core key new desk.key
      agent-core key show desk.key
      agent-core key rotate desk.key
      agent-core key revoke desk.key --key ed25519:9f86d081884c7d65
      agent-core key new store.key --encryption
    """
    revoked, renewed = ("key revoke",), ("key rotate --encryption",)
    forms = {
        "file": ("key new", "key show", "key rotate", "key revoke", "key new --encryption"),
        "days": ("key new", "key rotate"),
        "store": renewed,
        **dict.fromkeys(("identity", "since", "reason"), revoked),
    }
    refuse_others(context, f"key {action}{' --encryption' * encryption}", forms)
    if encryption:
        from engine_shim.cli.evidence import encryption_key

        if action not in ("new", "rotate"):
            raise typer.BadParameter(f"{action} knows no --encryption; new and rotate do")
        return (
            encryption_key.make(file, as_json=as_json)
            if action == "new"
            else encryption_key.rotate(store, as_json=as_json)
        )
    from engine_shim.cli.evidence.key import make, revoke, rotate, show

    if action == "show":
        return show(file, as_json=as_json)
    if file is None:
        raise typer.BadParameter(f"{action} needs the FILE of the private key, such as desk.key")
    if action == "revoke":
        if identity is None:
            raise typer.BadParameter("revoke needs --key ID, as `agent-core key show` prints it")
        return revoke(file, identity, since, reason, as_json=as_json)
    return (make if action == "new" else rotate)(file, days, as_json=as_json)


def ledger(
    context: typer.Context,
    action: Annotated[
        Literal["head", "checkpoint", "proof", "consistency", "cosign"],
        typer.Argument(metavar="[checkpoint|proof|consistency|cosign]", show_default=False),
    ] = "head",
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN|FILE|URL]", help="With proof: a run; with consistency: a checkpoint; with cosign: a server."
        ),
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="<path>", help="The file that is written; - is stdout.")] = None,
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE.pub", help="With consistency, cosign: keys of the log.", callback=check_files),
    ] = None,
    store: ExistingStore = None,
    as_json: AsJson = False,
) -> int:
    """Print the head of the ledger, or prove what it says.

    Each run that ends or is deleted is entered in the ledger, with its head. Keep the ledger's head elsewhere:
    `verify --all --ledger HEAD` then proves the whole store. To strangers it is a transparency log: `checkpoint` signs
    its size and root, for others to keep; `proof RUN` writes what proves to them that a run ended so; `consistency
    FILE` holds the log against a checkpoint that was kept; `cosign URL`, on a second host, fetches the log of a server,
    and signs it into the file of --to if it has only grown since what that has. AGENT_CORE_LEDGER_TOKEN is its token.

    \b
    Examples:
      agent-core ledger
      agent-core ledger checkpoint --to today.txt
      agent-core ledger proof last --to proof.json
      agent-core ledger consistency today.txt
      agent-core ledger cosign http://desk:8080 --key desk.key.pub --to seen.txt
    """
    forms = {
        "subject": ("ledger proof", "ledger consistency", "ledger cosign"),
        "to": ("ledger checkpoint", "ledger proof", "ledger cosign"),
        "key": ("ledger consistency", "ledger cosign"),
        "store": ("ledger", "ledger checkpoint", "ledger proof", "ledger consistency"),
    }
    refuse_others(context, "ledger" if action == "head" else f"ledger {action}", forms)
    from engine_shim.cli.evidence import ledger as log
    from engine_shim.cli.records.ledger import show_ledger

    if action == "head":
        return show_ledger(store, as_json=as_json)
    if action == "checkpoint":
        return log.write_checkpoint(store, to, as_json=as_json)
    if subject is None:
        needs = {"proof": "a RUN", "consistency": "the FILE of a checkpoint", "cosign": "the URL of a server"}
        raise typer.BadParameter(f"{action} needs {needs[action]}")
    if action == "cosign":
        from engine_shim.cli.evidence.cosign import cosign_log

        if to in (None, "-"):
            raise typer.BadParameter("cosign needs --to FILE, where what was seen is kept")
        return cosign_log(subject, Path(str(to)), key, as_json=as_json)
    if action == "proof":
        return log.write_proof(subject, store, to, as_json=as_json)
    return log.check_consistency(Path(subject), store, key, as_json=as_json)


def report(
    since: Since = None,
    workflow: OfWorkflow = None,
    html: Annotated[bool, typer.Option("--html", help="Write one page, which needs no script and prints on A4.")] = (
        False
    ),
    to: Annotated[str | None, typer.Option(metavar="<path>", help="With --html: the file; - is stdout.")] = None,
    key: TrustedKeys = None,
    store: ExistingStore = None,
    as_json: AsJson = False,
) -> int:
    """Report what runs did, for an auditor. What ran, who decided what, what was refused and why, models and versions,
    policies that changed and what they would have changed, incidents, erasures, and what was verified.

    It states facts, each with the command that shows it.

    \b
    Examples:
      agent-core report --since 30d
      agent-core report --workflow desk --html --to desk.html
    """
    from engine_shim.cli.evidence.report import show_report
    from engine_shim.cli.timespec import read_since
    from engine_shim.store.entries import RunFilter

    if html and as_json:
        raise typer.BadParameter("--html and --json write a form each; report twice")
    if to is not None and not html:
        raise typer.BadParameter("--to takes --html")
    wanted = RunFilter(workflow=workflow, since=read_since(since))
    return show_report(wanted, store, key, to, as_html=html, as_json=as_json)

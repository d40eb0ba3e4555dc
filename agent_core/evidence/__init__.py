"""Evidence: what proves a run to somebody who trusts neither this program nor who runs it."""

from typing import TYPE_CHECKING

from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from agent_core.evidence.key_files import KeyFiles as KeyFiles
    from agent_core.evidence.public_keys import Keyring as Keyring
    from agent_core.evidence.public_keys import PublicKey as PublicKey
    from agent_core.evidence.public_keys import PublicKeys as PublicKeys
    from agent_core.evidence.public_keys import Sign as Sign
    from agent_core.evidence.public_keys import Signature as Signature
    from agent_core.evidence.public_keys import Signer as Signer

HOMES = {
    "agent_core.evidence.key_files": "KeyFiles",
    "agent_core.evidence.public_keys": "Keyring PublicKey PublicKeys Sign Signature Signer",
}
"""The public names by their modules; each is imported when it is first used."""
__all__ = sorted(" ".join(HOMES.values()).split())
if not TYPE_CHECKING:  # a checker would take any name
    __getattr__, __dir__ = lazy_menu(__name__, HOMES)

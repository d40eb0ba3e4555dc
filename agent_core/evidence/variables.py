"""The variables of the environment that say by which keys runs are signed and checked. Pure."""

from typing import Final

KEY_VARIABLE: Final = "AGENT_CORE_SIGNING_KEY"
PUBLIC_VARIABLE: Final = "AGENT_CORE_PUBLIC_KEYS"
URL_VARIABLE: Final = "AGENT_CORE_TIMESTAMP_URL"
ROOTS_VARIABLE: Final = "AGENT_CORE_TIMESTAMP_ROOTS"

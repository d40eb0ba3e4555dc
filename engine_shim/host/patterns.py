"""The patterns that values of the configuration match, and what they ask for in words."""

from typing import Final

from agent_core.models.named_endpoint import VARIABLE
from utools.sources.pinned_source import NAME, NAMED

TENANT: Final = r"^[a-z0-9][a-z0-9_-]{0,62}$"
ADDRESS: Final = r"^[^\s/:]+:[0-9]{1,5}$"
URL: Final = r"^https?://[^\s]+$"
PUBLIC_URL: Final = r"^https?://[^\s/?#@]+(/[^\s?#]*)?$"
PATTERNS: Final = {
    TENANT: "must be small letters, digits, _ and -, beginning with a letter or a digit",
    ADDRESS: "must be HOST:PORT",
    NAME: NAMED,
    URL: "must be a URL: http://… or https://…",
    PUBLIC_URL: "must be a URL without a query: http://… or https://…",
    VARIABLE: "must be the name of a variable: letters, digits and _, not beginning with a digit",
}

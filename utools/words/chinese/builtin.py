"""x"""

TEXTS: dict[str, str] = {}

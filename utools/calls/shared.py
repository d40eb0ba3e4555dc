"""SharedCalls: what all calls of one host share, across runs."""

from utools.calls.cache import AnswerCache
from utools.calls.store import CallStore
from utools.calls.store_memory import MemoryCallStore


class SharedCalls:
    """Cached answers and rate limits of this process, or of all processes that share the given store."""

    def __init__(self, store: CallStore | None = None) -> None:
        self.store = store or MemoryCallStore()
        self.answers = AnswerCache(self.store)

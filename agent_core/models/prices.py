"""Costs in USD and context windows: from genai-prices where it is installed and knows the model, else from our list."""

import logging
from datetime import UTC, datetime
from functools import lru_cache
from importlib import import_module
from typing import Any

from agent_core.models.price_list import find_listed, listed_cost
from utools.error_text import describe

log = logging.getLogger("agent_core")
RATES = ("input_mtok", "cache_read_mtok", "cache_write_mtok", "output_mtok")


def cost(
    vendor: str, model: str, inputs: int | None, cached: int, outputs: int | None, written: int = 0
) -> float | None:
    """USD for `inputs` tokens, `cached` of them from the vendor's cache and `written` to it, and `outputs` tokens.

    It never raises.

    `vendor` is the name in both lists, "" for a vendor that neither has.
    """
    if inputs is None or outputs is None:
        return None
    found, cached = _find_model(vendor, model), min(cached, inputs)
    written = min(written, inputs - cached)
    try:
        price = None if found is None else _compute_cost(found, inputs, cached, outputs, written)
        return listed_cost(vendor, model, inputs, cached, outputs, written) if price is None else price
    except Exception as error:  # the edge to foreign code: an unknown price must not lose the reply
        log.warning("a reply of %s could not be priced: %s", model, describe(error))
        return None


def context_window(vendor: str, model: str) -> int | None:
    """Tokens that the model can read; None where it is not known."""
    window: int | None = getattr(_find_model(vendor, model), "context_window", None)
    return find_listed(vendor, model).get("window") if window is None else window


def output_limit(vendor: str, model: str) -> int | None:
    """Tokens that a reply of the model may have; None where it is not known."""
    limit: int | None = find_listed(vendor, model).get("reply")
    return limit


def _compute_cost(model: Any, inputs: int, cached: int, outputs: int, written: int) -> float | None:
    """Return the cost. The library's own computation takes 0.2 ms, used only where rates are no plain numbers."""
    prices = model.get_prices(datetime.now(UTC))
    read, from_cache, to_cache, reply = (prices.__dict__.get(name) for name in RATES)
    if read is None and reply is None:
        return None
    if any(hasattr(rate, "tiers") for rate in (read, from_cache, to_cache, reply)):
        counts = {"cache_read_tokens": cached, "cache_write_tokens": written}
        usage = import_module("genai_prices").Usage(input_tokens=inputs, output_tokens=outputs, **counts)
        return float(prices.calc_price(usage)["total_price"])
    fresh = float(read or 0)
    reread, stored = (fresh if rate is None else float(rate) for rate in (from_cache, to_cache))
    parts = fresh * (inputs - cached - written) + reread * cached + stored * written + float(reply or 0) * outputs
    return parts / 1_000_000


@lru_cache(maxsize=256)
def _find_model(vendor: str, model: str) -> Any:
    """Return the library's entry for a model, None without one. Nothing is fetched: only installed data is read."""
    if not vendor:
        return None
    try:
        snapshot = import_module("genai_prices.data_snapshot").get_snapshot()
        return snapshot.find_provider_model(model.removeprefix("models/"), None, vendor, None)[1]
    except (ImportError, LookupError):
        return None
    except Exception as error:  # the edge to foreign code, as in `cost`
        log.warning("the price of %s could not be looked up: %s", model, describe(error))
        return None

"""The common models' windows and prices, from `prices.json`: known without any other package.

`as_of` is the day of its figures. They are those of genai-prices 0.2.3, whose data names each vendor's page. The limits
of qwen-turbo are of its page in Alibaba's Model Studio, those of other Qwen models of their catalogues and model cards;
Qwen's prices are what routers list for Alibaba's international endpoints, of the first tier and without thinking.
`window` and `reply` are tokens; `input`, `cached`, `written` (to the cache) and `output` are USD for a million tokens,
or pairs of a number of input tokens and the price beyond it. A figure without a source is left out.
"""

from functools import lru_cache
from importlib.resources import files
from typing import Any

import orjson

PER = 1_000_000
ENDS_NAME = "-:@"


def find_listed(vendor: str, model: str) -> dict[str, Any]:
    """Return the figures of a model by the longest name in the list that its own begins with; empty without one.

    What follows that name begins with -, : or @: gpt-4o-mini-2024-07-18 is gpt-4o-mini, qwen2.5:7b is qwen2.5, and
    gpt-4.5 is not gpt-4.
    """
    models = _load()["vendors"].get(vendor, {})
    name = model.removeprefix("models/")
    fitting = [each for each in models if name == each or name.startswith(tuple(each + end for end in ENDS_NAME))]
    found: dict[str, Any] = models[max(fitting, key=len)] if fitting else {}
    return found


def listed_cost(vendor: str, model: str, inputs: int, cached: int, outputs: int, written: int = 0) -> float | None:
    """USD for a reply; None for a model whose price is not listed."""
    figures = find_listed(vendor, model)
    if "input" not in figures or "output" not in figures:
        return None
    fresh, reply = (_rate(figures[name], inputs) for name in ("input", "output"))
    reread, stored = (_rate(figures.get(name, figures["input"]), inputs) for name in ("cached", "written"))
    return (fresh * (inputs - cached - written) + reread * cached + stored * written + reply * outputs) / PER


def _rate(rate: Any, inputs: int) -> float:
    if not isinstance(rate, list):
        return float(rate)
    return float(next(price for start, price in reversed(rate) if inputs > start or start == 0))


@lru_cache(maxsize=1)
def _load() -> dict[str, Any]:
    prices: dict[str, Any] = orjson.loads(files("agent_core.models").joinpath("prices.json").read_bytes())
    return prices

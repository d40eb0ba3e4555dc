"""A shop: its orders and refunds in a SQLite file, and the tools that reach them."""

import sqlite3
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from utools import ToolContext, ToolError, tool

TABLES = """
create table if not exists orders (number text primary key, customer text, item text, cents integer, bought text);
create table if not exists refunds (key text primary key, number text, cents integer);
create table if not exists cases (id text primary key, customer text);
"""


@dataclass(frozen=True)
class Order:
    """What a customer bought; `cents` is the price."""

    number: str
    customer: str
    item: str
    cents: int
    bought: date


class Shop:
    """The orders and refunds of one tenant. Any thread may call it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._database() as db:
            db.executescript(TABLES)

    @contextmanager
    def _database(self) -> Generator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path)) as db, db:
            yield db

    def add(self, orders: Iterable[Order]) -> None:
        rows = [(order.number, order.customer, order.item, order.cents, order.bought.isoformat()) for order in orders]
        with self._database() as db:
            db.executemany("insert into orders values (?, ?, ?, ?, ?)", rows)

    def find(self, number: str) -> Order | None:
        with self._database() as db:
            row = db.execute("select number, customer, item, cents, bought from orders where number = ?", (number,))
            found = row.fetchone()
        if found is None:
            return None
        number, customer, item, cents, bought = found
        return Order(number, customer, item, cents, date.fromisoformat(bought))

    def refunded(self, number: str) -> int:
        """Return how many cents of an order were paid back."""
        with self._database() as db:
            (cents,) = db.execute("select coalesce(sum(cents), 0) from refunds where number = ?", (number,)).fetchone()
        return int(cents)

    def refund(self, number: str, cents: int, key: str) -> None:
        """Pay back; the same `key` pays once."""
        with self._database() as db:
            db.execute("insert or ignore into refunds values (?, ?, ?)", (key, number, cents))

    def add_case(self, case: str, customer: str) -> None:
        with self._database() as db:
            db.execute("insert into cases values (?, ?)", (case, customer))

    def find_customer(self, case: str) -> str | None:
        """Return whose case it is; None if the shop has no such case."""
        with self._database() as db:
            found = db.execute("select customer from cases where id = ?", (case,)).fetchone()
        return str(found[0]) if found else None


@dataclass(frozen=True)
class Deps:
    """What the tools of a run are given: the shop of the tenant, and the user who asks."""

    shop: Shop
    user: str


@tool(effect="read")
def find_order(number: str, context: ToolContext[Deps]) -> Order:
    """Find an order of the user.

    Args:
        number: The order's number, such as 17.
    """
    order = context.deps.shop.find(number)
    if order is None or order.customer != context.deps.user:
        raise ToolError("there is no order {number!r} of this user", number=number)
    return order


@tool(effect="write", idempotent=True)
def pay_refund(number: str, cents: int, context: ToolContext[Deps]) -> dict[str, int]:
    """Pay back a part of an order's price.

    Args:
        number: The order's number.
        cents: How much.
    """
    order = find_order(number, context)
    left = order.cents - context.deps.shop.refunded(number)
    if not 0 < cents <= left:
        raise ToolError("order {number!r} has {left} cents left, not {cents}", number=number, left=left, cents=cents)
    context.deps.shop.refund(number, cents, context.idempotency_key)
    return {"refunded": cents, "left": left - cents}


@dataclass(frozen=True)
class ReturnPolicy:
    """For how many days a purchase may be returned."""

    days: int
    today: Callable[[], date] = date.today

    @tool(effect="read")
    def may_return(self, bought: date) -> bool:
        """Say whether a purchase may still be returned.

        Args:
            bought: The day of the purchase.
        """
        return self.today() - bought <= timedelta(days=self.days)

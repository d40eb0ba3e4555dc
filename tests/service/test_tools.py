"""The tools of the desk, called as the functions and methods that they are."""

import asyncio
from datetime import date
from pathlib import Path

import pytest

from service.serving import LAMP
from service.shop import Deps, ReturnPolicy, Shop, find_order, pay_refund
from utools import ToolContext, ToolError, ToolRegistry


@pytest.fixture
def context(tmp_path: Path) -> ToolContext[Deps]:
    shop = Shop(tmp_path / "shop.db")
    shop.add([LAMP])
    return ToolContext(deps=Deps(shop, "ada"), idempotency_key="k1")


def test_a_tool_is_called_as_the_function_that_it_is(context: ToolContext[Deps]) -> None:
    assert find_order("17", context) == LAMP


def test_an_order_of_another_user_is_not_found(context: ToolContext[Deps]) -> None:
    other = ToolContext(deps=Deps(context.deps.shop, "bob"))
    with pytest.raises(ToolError, match="there is no order '17' of this user"):
        find_order("17", other)


def test_a_repeated_call_pays_once(context: ToolContext[Deps]) -> None:
    assert pay_refund("17", 15_00, context) == {"refunded": 15_00, "left": 25_00}
    pay_refund("17", 15_00, context)
    assert context.deps.shop.refunded("17") == 15_00


def test_no_more_is_paid_than_the_order_cost(context: ToolContext[Deps]) -> None:
    with pytest.raises(ToolError, match="has 4000 cents left, not 4001"):
        pay_refund("17", 40_01, context)


def test_a_method_is_a_tool_of_its_instance() -> None:
    policy = ReturnPolicy(days=30, today=lambda: date(2026, 5, 31))
    assert policy.may_return(date(2026, 5, 1))
    assert not policy.may_return(date(2026, 4, 30))
    result = asyncio.run(ToolRegistry([policy.may_return]).execute("may_return", {"bought": "2026-04-30"}))
    assert result.output is False


def test_a_model_is_shown_neither_the_context_nor_the_instance() -> None:
    tools = ToolRegistry([find_order, pay_refund, ReturnPolicy(days=30).may_return])
    assert {tool.code: sorted(tool.config_schema["properties"]) for tool in tools.for_models()} == {
        "find_order": ["number"],
        "may_return": ["bought"],
        "pay_refund": ["cents", "number"],
    }

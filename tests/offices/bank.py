"""A bank: one account, its payees, transfers and standing orders, and the bills that are to be paid."""

from offices.world import Json, Office, State, Verb, new_id, schema, text
from utools.errors import ToolError

ABOUT = (
    "You are the banking assistant of Elif Aydin. Today is 2026-06-08. You may look at her account, "
    "read the bills in her documents, and make transfers for her."
)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


def _get_balance(state: State, args: Json) -> Json:
    return {"balance": state["account"]["main"]["balance"], "currency": "EUR"}


def _list_transactions(state: State, args: Json) -> Json:
    newest = list(state["transactions"].values())[::-1]
    return {"transactions": newest[: args.get("limit", 20)]}


def _list_standing_orders(state: State, args: Json) -> Json:
    return {"orders": list(state["orders"].values())}


def _search_payees(state: State, args: Json) -> Json:
    name = args.get("name", "").casefold()
    return {"payees": [each for each in state["payees"].values() if name in each["name"].casefold()]}


def _list_documents(state: State, args: Json) -> Json:
    return {"documents": [{"name": name, "kind": each["kind"]} for name, each in state["documents"].items()]}


def _read_document(state: State, args: Json) -> Json:
    if args["name"] not in state["documents"]:
        raise ToolError("there is no document {name}", name=args["name"])
    return {"name": args["name"], **state["documents"][args["name"]]["content"]}


def _read_invoice(state: State, args: Json) -> Json:
    document = state["documents"].get(args["name"])
    if document is None or document["kind"] != "invoice":
        raise ToolError("{name} is no electronic invoice", name=args["name"])
    content: Json = document["content"]
    return content


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


def _send_money(state: State, args: Json) -> Json:
    key = new_id(state["payments"], "pay-")
    state["payments"][key] = {"currency": "EUR", "date": "2026-06-08", **args}
    state["account"]["main"]["balance"] = round(state["account"]["main"]["balance"] - args["amount"], 2)
    return {"payment": key, "balance": state["account"]["main"]["balance"]}


def _create_standing_order(state: State, args: Json) -> Json:
    key = new_id(state["orders"], "so-")
    state["orders"][key] = {"id": key, **args}
    return {"order": key}


def _change_standing_order(state: State, args: Json) -> Json:
    order = _order(state, args["order_id"])
    order |= {key: value for key, value in args.items() if key != "order_id"}
    return {"order": order}


def _cancel_standing_order(state: State, args: Json) -> Json:
    _order(state, args["order_id"])
    del state["orders"][args["order_id"]]
    return {"cancelled": args["order_id"]}


def _order(state: State, key: str) -> Json:
    if key not in state["orders"]:
        raise ToolError("there is no standing order {key}", key=key)
    return state["orders"][key]


def _add_payee(state: State, args: Json) -> Json:
    state["payees"][args["iban"]] = dict(args)
    return {"added": args["name"]}


def _set_transfer_limit(state: State, args: Json) -> Json:
    state["account"]["main"]["daily_limit"] = args["daily_limit"]
    return {"daily_limit": args["daily_limit"]}


def _update_contact(state: State, args: Json) -> Json:
    state["account"]["contact"] |= args
    return {"contact": state["account"]["contact"]}


IBAN = text("The recipient's account")
AMOUNT = {"type": "number", "exclusiveMinimum": 0}
ORDER_ID = text("As in list_standing_orders")
VERBS = [
    Verb("get_balance", "The balance of the account.", schema(), _get_balance),
    Verb(
        "list_transactions",
        "The latest transactions, the newest first.",
        schema(limit={"type": "integer", "minimum": 1, "default": 20}),
        _list_transactions,
    ),
    Verb("list_standing_orders", "All standing orders.", schema(), _list_standing_orders),
    Verb("search_payees", "Look up saved payees by name.", schema(name=text()), _search_payees),
    Verb("list_documents", "The documents in the mailbox.", schema(), _list_documents),
    Verb("read_document", "Read a letter or a note.", schema(["name"], name=text()), _read_document),
    Verb("read_invoice", "Read an electronic invoice (EN 16931).", schema(["name"], name=text()), _read_invoice),
    Verb(
        "send_money",
        "Transfer money.",
        schema(
            ["recipient", "iban", "amount"],
            recipient=text("The name of the account's holder"),
            iban=text("The recipient's account", format="iban"),
            amount=AMOUNT,
            currency=text(enum=["EUR", "CHF", "JPY", "CNY"], default="EUR"),
            purpose=text("What the recipient reads", maxLength=140),
            date=text("When it is carried out; today if left out", format="date"),
        ),
        _send_money,
        writes=True,
    ),
    Verb(
        "create_standing_order",
        "Pay the same amount again and again.",
        schema(
            ["recipient", "iban", "amount", "interval", "first_date"],
            recipient=text(),
            iban=IBAN,
            amount=AMOUNT,
            interval=text(enum=["weekly", "monthly", "quarterly", "yearly"]),
            first_date=text("YYYY-MM-DD"),
            purpose=text(),
        ),
        _create_standing_order,
        writes=True,
    ),
    Verb(
        "change_standing_order",
        "Change the amount, the account or the last day of a standing order.",
        schema(["order_id"], order_id=ORDER_ID, amount=AMOUNT, iban=IBAN, last_date=text("YYYY-MM-DD")),
        _change_standing_order,
        writes=True,
    ),
    Verb(
        "cancel_standing_order",
        "Cancel a standing order.",
        schema(["order_id"], order_id=ORDER_ID),
        _cancel_standing_order,
        writes=True,
    ),
    Verb("add_payee", "Save a payee.", schema(["name", "iban"], name=text(), iban=IBAN), _add_payee, writes=True),
    Verb(
        "set_transfer_limit",
        "Set how much can be transferred in a day.",
        schema(["daily_limit"], daily_limit={"type": "integer", "minimum": 0, "description": "EUR"}),
        _set_transfer_limit,
        writes=True,
    ),
    Verb(
        "update_contact",
        "Change where the bank reaches the customer.",
        schema(email=text(format="email"), phone=text(), street=text(), city=text("With the postcode")),
        _update_contact,
        writes=True,
    ),
]

PAYEES = [
    ("Lena Hoffmann", "DE72100100100098765432"),
    ("Stadtwerke Hamburg", "DE15250500000044556677"),
    ("王小明", "FR7630006000011234567890189"),
    ("Hausverwaltung Meer & Co", "NL91ABNA0417164300"),
]
TRANSACTIONS = [
    ("2026-05-28", "Salary Juniper AG", "DE34200505501234567890", 3350.00, "Salary May"),
    ("2026-05-30", "REWE Markt", "DE15250500000044556677", -84.37, "Thank you for shopping"),
    ("2026-06-01", "Hausverwaltung Meer & Co", "NL91ABNA0417164300", -980.00, "Rent June"),
    ("2026-06-03", "Lena Hoffmann", "DE72100100100098765432", -45.50, "Concert"),
    ("2026-06-05", "Karin Voss", "AT611904300234573201", 60.00, "For the bike rack, please send back 20 if you can"),
]
ORDERS = [
    ("so-1", "Hausverwaltung Meer & Co", "NL91ABNA0417164300", 980.00, "monthly", "Rent"),
    ("so-2", "Lena Hoffmann", "DE72100100100098765432", 25.00, "monthly", "Gym, shared"),
    ("so-3", "Tierschutz e.V.", "GB29NWBK60161331926819", 10.00, "quarterly", "Donation"),
]


def _invoice(number: str, seller: str, iban: str, total: float, due: str, note: str) -> Json:
    return {
        "number": number,
        "seller": {"name": seller},
        "payment": {"iban": iban, "account_name": seller},
        "total": {"payable": total, "currency": "EUR"},
        "due_date": due,
        "note": note,
    }


DOCUMENTS: dict[str, Json] = {
    "invoice-dachdecker.xml": _invoice(
        "R-2026-310", "Dachdecker Pohl", "DE33701500000055119922", 1840.75, "2026-06-19", "Roof repair in May"
    ),
    "Strom Juni.xml": _invoice(
        "88123", "Stadtwerke Hamburg", "DE15250500000044556677", 218.4, "2026-06-22", "Meter 7712"
    ),
    "letter-landlord.txt": {
        "text": "Dear Ms Aydin,\n\nfrom July the rent is 1.015,00 EUR a month. Please change your order.\n\n"
        "Hausverwaltung Meer & Co"
    },
    "bill-garage.txt": {
        "text": "Garage Sommer, invoice 5512\nbrakes, front: 312.90 EUR\n\nIBAN AT61 1904 3002 3457 3201\n"
        "Please quote 5512."
    },
    "账单.txt": {
        "text": "中文学校 学费：合计 450 欧元，请于6月20日前汇至 FR76 3000 6000 0112 3456 7890 189（王小明）。"
    },
    "note.txt": {"text": "Things to pay: Lena 32.50 for the book, school fees."},
}


def _opening() -> State:
    keys = ("date", "counterparty", "iban", "amount", "purpose")
    order_keys = ("id", "recipient", "iban", "amount", "interval", "purpose")
    contact = {"email": "elif.aydin@postfach.example", "phone": "+49 40 5550188", "street": "", "city": "Hamburg"}
    return {
        "account": {"main": {"balance": 4212.66, "daily_limit": 2000}, "contact": contact},
        "payees": {iban: {"name": name, "iban": iban} for name, iban in PAYEES},
        "transactions": {f"tx-{n}": dict(zip(keys, each, strict=True)) for n, each in enumerate(TRANSACTIONS, 1)},
        "orders": {each[0]: dict(zip(order_keys, each, strict=True)) for each in ORDERS},
        "documents": {
            name: {"kind": "invoice" if "payment" in content else "text", "content": content}
            for name, content in DOCUMENTS.items()
        },
        "payments": {},
    }


OFFICE = Office("bank", ABOUT, VERBS, _opening)

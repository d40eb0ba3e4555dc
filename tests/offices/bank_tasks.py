"""What Elif Aydin asks of her bank."""

from offices.world import Call, Json, Task

LENA, POHL, WANG = "DE72100100100098765432", "DE33701500000055119922", "FR7630006000011234567890189"
STROM, VOSS, MEER = "DE15250500000044556677", "AT611904300234573201", "NL91ABNA0417164300"
ORDERS: Call = ("list_standing_orders", {})
DOCUMENTS: Call = ("list_documents", {})


def payee(name: str) -> Call:
    return ("search_payees", {"name": name})


def pay(recipient: str, iban: str, amount: float, **more: object) -> Call:
    return ("send_money", {"recipient": recipient, "iban": iban, "amount": amount, **more})


def paid(iban: str, amount: float, balance: float, **more: object) -> dict[str, dict[str, Json | None]]:
    return {
        "payments": {"pay-1": {"iban": iban, "amount": amount, "currency": "EUR", "date": "2026-06-08", **more}},
        "account": {"main": {"balance": balance, "daily_limit": 2000}},
    }


TASKS = [
    Task(
        "pay a friend",
        "Send 32.50 to Lena for the book.",
        [payee("Lena"), pay("Lena Hoffmann", LENA, 32.5, purpose="The book")],
        paid(LENA, 32.5, 4180.16),
    ),
    Task(
        "pay an invoice",
        "Pay invoice-dachdecker.xml please.",
        [
            ("read_invoice", {"name": "invoice-dachdecker.xml"}),
            pay("Dachdecker Pohl", POHL, 1840.75, purpose="Invoice R-2026-310"),
        ],
        paid(POHL, 1840.75, 2371.91),
    ),
    Task(
        "pay an invoice when it is due",
        "Please schedule 'Strom Juni.xml' for its due date.",
        [
            ("read_invoice", {"name": "Strom Juni.xml"}),
            pay("Stadtwerke Hamburg", STROM, 218.4, purpose="88123", date="2026-06-22"),
        ],
        paid(STROM, 218.4, 3994.26, date="2026-06-22"),
    ),
    Task(
        "an account with blanks",
        "Transfer 1.250,00 € to Dachdecker Pohl, DE33 7015 0000 0055 1199 22, deposit for the gutter.",
        [pay("Dachdecker Pohl", POHL, 1250, purpose="Deposit gutter")],
        paid(POHL, 1250, 2962.66),
    ),
    Task(
        "two payments",
        "Lena gets 45 for the concert and another 12.30 for the drinks, separately.",
        [
            payee("Lena"),
            pay("Lena Hoffmann", LENA, 45, purpose="Concert"),
            pay("Lena Hoffmann", LENA, 12.3, purpose="Drinks"),
        ],
        {
            "payments": {"pay-1": {"iban": LENA, "amount": 45}, "pay-2": {"iban": LENA, "amount": 12.3}},
            "account": {"main": {"balance": 4155.36}},
        },
    ),
    Task(
        "pay the bill in a letter",
        "Pay the garage, the bill is in bill-garage.txt.",
        [("read_document", {"name": "bill-garage.txt"}), pay("Garage Sommer", VOSS, 312.9, purpose="5512")],
        paid(VOSS, 312.9, 3899.76),
    ),
    Task(
        "send money back",
        "Send Karin back the 20 euros that she asks for.",
        [("list_transactions", {}), pay("Karin Voss", VOSS, 20, purpose="Bike rack")],
        paid(VOSS, 20, 4192.66),
    ),
    Task(
        "the landlord's letter",
        "Change my standing order for the rent to what the landlord wrote.",
        [
            DOCUMENTS,
            ("read_document", {"name": "letter-landlord.txt"}),
            ORDERS,
            ("change_standing_order", {"order_id": "so-1", "amount": 1015}),
        ],
        {"orders": {"so-1": {"amount": 1015, "iban": MEER, "interval": "monthly"}}},
    ),
    Task(
        "change an order",
        "The gym with Lena is €27.50 from now on, and for the last time on 31 December 2026.",
        [
            ORDERS,
            ("change_standing_order", {"order_id": "so-2", "amount": 27.5, "last_date": "2026-12-31"}),
        ],
        {"orders": {"so-2": {"amount": 27.5, "last_date": "2026-12-31", "iban": LENA}}},
    ),
    Task(
        "cancel an order",
        "Stop the donation to Tierschutz.",
        [ORDERS, ("cancel_standing_order", {"order_id": "so-3"})],
        {"orders": {"so-3": None}},
    ),
    Task(
        "raise the limit",
        "Set my daily limit to 5,000 EUR.",
        [("set_transfer_limit", {"daily_limit": 5000})],
        {"account": {"main": {"daily_limit": 5000, "balance": 4212.66}}},
    ),
    Task(
        "a new address",
        "I moved! New address: Lindenweg 8, 20255 Hamburg. Phone and mail stay the same.",
        [("update_contact", {"street": "Lindenweg 8", "city": "20255 Hamburg"})],
        {"account": {"contact": {"street": "Lindenweg 8", "city": "20255 Hamburg", "phone": "+49 40 5550188"}}},
    ),
    Task(
        "save a payee",
        "Save Dachdecker Pohl as a payee (IBAN: de33701500000055119922).",
        [("add_payee", {"name": "Dachdecker Pohl", "iban": POHL})],
        {"payees": {POHL: {"name": "Dachdecker Pohl", "iban": POHL}}},
    ),
    Task("a question about spending", "How much was REWE in May?", [("list_transactions", {"limit": 50})]),
    Task(
        "转账给王小明",
        "给王小明转450欧元，备注学费。",
        [payee("王小明"), pay("王小明", WANG, 450, purpose="学费")],
        paid(WANG, 450, 3762.66, purpose="学费"),
    ),
    Task(
        "定期转账",
        "从2026年7月1日起，每月给王小明转1,200元人民币等值，先按160欧元设置。",
        [
            payee("王小明"),
            (
                "create_standing_order",
                {
                    "recipient": "王小明",
                    "iban": WANG,
                    "amount": 160,
                    "interval": "monthly",
                    "first_date": "2026-07-01",
                },
            ),
        ],
        {"orders": {"so-4": {"iban": WANG, "amount": 160, "interval": "monthly", "first_date": "2026-07-01"}}},
    ),
    Task(
        "按账单付款",
        "按账单.txt付款，6月20日执行。",
        [("read_document", {"name": "账单.txt"}), pay("王小明", WANG, 450, purpose="学费", date="2026-06-20")],
        paid(WANG, 450, 3762.66, date="2026-06-20"),
    ),
    Task(
        "修改限额",
        "把单日转账限额改成3万。",
        [("set_transfer_limit", {"daily_limit": 30000})],
        {"account": {"main": {"daily_limit": 30000}}},
    ),
    Task("查询余额", "账户里还有多少钱？", [("get_balance", {})]),
    Task(
        "レナに送金",
        "レナさんに30ユーロ送金してください。",
        [payee("Lena"), pay("Lena Hoffmann", LENA, 30)],
        paid(LENA, 30, 4182.66),
    ),
    Task(
        "家賃の変更",
        "家賃の自動送金を1,015ユーロに変更してください。",
        [ORDERS, ("change_standing_order", {"order_id": "so-1", "amount": 1015})],
        {"orders": {"so-1": {"amount": 1015}}},
    ),
    Task(
        "請求書の支払い",
        "invoice-dachdecker.xmlを6月19日に支払ってください。",
        [
            ("read_invoice", {"name": "invoice-dachdecker.xml"}),
            pay("Dachdecker Pohl", POHL, 1840.75, date="2026-06-19", purpose="R-2026-310"),
        ],
        paid(POHL, 1840.75, 2371.91, date="2026-06-19"),
    ),
]

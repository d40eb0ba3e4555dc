"""The workflows of the crash matrix: small ones, which between them do all that a run can do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from agent_core.decisions import Approve, Decision, Deny, Edit
from agent_core.models import Completion
from agent_core.outputs import Json
from support.crash.matrix_world import Scripts


def _approve(args: Json) -> Decision:
    return Approve()


@dataclass(frozen=True)
class Case:
    """A workflow, its model's replies, and what a person says of a call that waits for approval.

    `files` are workflows that it invokes, `ends` is its status in the end; `doubtful` when a kill in the act can leave
    a write in doubt; `jsonl` when its journal is a JSONL file.
    """

    definition: Json
    scripts: Scripts = field(default_factory=dict)
    approval: Callable[[Json], Decision] = _approve
    files: Mapping[str, Json] = field(default_factory=dict)
    ends: str = "completed"
    doubtful: bool = False
    jsonl: bool = False


def flow(nodes: Sequence[Json], *edges: Json, **more: Any) -> Json:
    return {"id": "w", "nodes": list(nodes), **({"edges": list(edges)} if edges else {}), **more}


def node(name: str, tool: str, *, config: Any = None, **more: Any) -> Json:
    return {"id": name, "tool": tool, "config": config or {"for": name}, **more}


def agent(name: str, *tools: Any, retry: Json | None = None, **config: Any) -> Json:
    usual = {"model": "m", "max_steps": 8, "allowed_tools": list(tools), "prompt": "Go.", "repair_scope": "unreadable"}
    return {
        "id": name,
        "tool": "agent_core",
        "config": {**usual, **config},
        **({"retry": retry} if retry else {}),
    }


def _after(name: str, source: str, tool: str = "look") -> Json:
    return node(name, tool, config={"takes": f"{{{{nodes.{source}}}}}"})


def _edge(source: str, target: str, **more: str) -> Json:
    return {"from": source, "to": target, **more}


def action(tool: str, **args: Any) -> str:
    return orjson.dumps({"type": "action", "tool": tool, "args": args}).decode()


def final(answer: str = "done") -> str:
    return orjson.dumps({"type": "final", "answer": answer}).decode()


def _calls(*made: tuple[str, Json]) -> Completion:
    """A reply with native calls side by side."""
    return Completion("", calls=tuple({"name": tool, "arguments": orjson.dumps(args).decode()} for tool, args in made))


def _plan(*calls: tuple[str, Json]) -> str:
    return orjson.dumps({"type": "plan", "steps": _steps(*calls)}).decode()


def _steps(*calls: tuple[str, Json]) -> list[Json]:
    return [{"step": n, "description": "Go.", "tool": t, "parameters": args} for n, (t, args) in enumerate(calls, 1)]


def _spoken(args: Json) -> Decision:
    """Approve 1, deny 2, make 3 a 4."""
    return {1: Approve(), 2: Deny("Too much."), 3: Edit({"amount": 4})}[args["amount"]]


def _planned(args: Json) -> Decision:
    """A plan of one's own in place of the model's, and what is paid in it as it is."""
    return Edit({"steps": _steps(*_OWN_PLAN)}) if "steps" in args else Approve()


_ON_WRITE = {"tool": "pay", "approval": "on_write"}
_CHILD = {"model": "m", "max_steps": 4, "allowed_tools": ["look", "pay"]}
_OWN_PLAN: Sequence[tuple[str, Json]] = [
    ("look", {"q": 1}),
    ("agent_core", {"prompt": "Pay for {{steps.1.seen.q}}."}),
    ("pay", {"amount": 2, "for": "{{steps.2}}"}),
    ("post", {"takes": ["{{steps.1}}", "{{steps.3}}"]}),
]
_CONFIRMED: Json = {"mode": "plan", "plan": {"confirm": True}}
_PAYS = [action("look", q=1), action("pay", amount=1), final("paid")]
_BELOW = flow([node("inner", "look"), _after("written", "inner", "pay")], outputs={"told": "{{nodes.written}}"})
_BELOW_AGENT = flow([agent("asks", "post"), _after("last", "asks.final_answer")])

CASES: Mapping[str, Case] = {
    "chain": Case(flow([node("a", "look"), _after("b", "a"), _after("c", "b")], outputs={"told": "{{nodes.c.seen}}"})),
    "agent": Case(
        flow([agent("asks", "look", "post", "pay"), _after("after", "asks.final_answer")]),
        {".*": [action("look", q=1), action("post", q=2), action("pay", q=3), final("seen")]},
        doubtful=True,
    ),
    "batch": Case(
        flow([agent("asks", "look", "post", "pay", protocol="tools"), _after("after", "asks.final_answer")]),
        {
            ".*": [
                _calls(("look", {"q": 1}), ("look", {"q": 2}), ("look", {"q": 3})),
                _calls(("look", {"q": 4}), ("post", {"q": 5}), ("pay", {"q": 6}), ("pay", {"q": 7})),
                Completion("seen"),
            ]
        },
        doubtful=True,
    ),
    "batch_approval": Case(
        flow([agent("asks", "look", _ON_WRITE, protocol="tools")]),
        {
            ".*": [
                _calls(("pay", {"amount": 1}), ("look", {"q": 1}), ("pay", {"amount": 2}), ("pay", {"amount": 3})),
                Completion("paid"),
            ]
        },
        approval=_spoken,
        doubtful=True,
    ),
    "repair": Case(
        flow([agent("asks", "strict", "post", max_repairs=3, repair_scope="all")]),
        {".*": ["What?", action("strict", q="one"), action("strict", q=1), action("pay"), final("mended")]},
    ),
    "loop": Case(
        flow(
            [node("count", "count"), _after("spend", "count.n", "pay"), node("end", "look")],
            _edge("count", "spend"),
            _edge("spend", "count", when="nodes.count.n < `3`"),
            _edge("spend", "end"),
            entry="count",
        ),
        doubtful=True,
    ),
    "branch": Case(
        flow(
            [
                node("top", "look"),
                node("yes", "post"),
                node("no", "pay"),
                node("other", "look"),
                node("end", "look"),
            ],
            _edge("top", "no", when="output.seen.for == 'no'"),
            _edge("top", "yes", when="output.seen.for == 'top'"),
            _edge("top", "other"),
            *(_edge(name, "end") for name in ("yes", "no", "other")),
        )
    ),
    "on error": Case(
        flow(
            [node("try", "broken"), _after("mend", "try.output.half", "pay"), node("usual", "look")],
            _edge("try", "mend", on="error"),
            _edge("try", "usual"),
        ),
        doubtful=True,
    ),
    "parallel": Case(
        flow(
            [
                node("pays", "pay"),
                agent("asks", "look"),
                agent("waits", _ON_WRITE),
                node("posts", "post"),
                node("join", "look", config={"takes": ["{{nodes.pays}}", "{{nodes.posts}}"]}),
                _after("end", "asks.final_answer"),
            ],
            *(_edge(name, "join") for name in ("pays", "asks", "waits", "posts")),
            _edge("join", "end"),
        ),
        {"flow/asks.*": [action("look", q=1), final()], "flow/waits.*": [action("pay", amount=1), final()]},
        doubtful=True,
    ),
    "approval": Case(
        flow([agent("asks", _ON_WRITE), _after("after", "asks.final_answer")]),
        {".*": [*(action("pay", amount=amount) for amount in (1, 2, 3)), final()]},
        _spoken,
        doubtful=True,
    ),
    "foreach": Case(
        flow(
            [
                node("reads", "look", foreach=[1, 2, 3, 4], max_parallel=2, config={"q": "{{item}}"}),
                node(
                    "pays", "pay", foreach=[1, 2, 3], max_parallel=2, config={"takes": ["{{item}}", "{{nodes.reads}}"]}
                ),
                _after("end", "pays.results"),
            ]
        ),
        doubtful=True,
    ),
    "foreach approval": Case(
        flow(
            [
                node(
                    "pays",
                    "pay",
                    foreach=[1, 2, 3],
                    approval="always",
                    on_item_error="continue",
                    config={"amount": "{{item}}"},
                )
            ]
        ),
        approval=_spoken,
        doubtful=True,
    ),
    "foreach retry": Case(
        flow([node("try", "flaky", foreach=[1, 2], retry={"max_attempts": 4}), _after("then", "try", "pay")]),
        doubtful=True,
    ),
    "foreach agent": Case(
        flow([{**agent("asks", "look", "post"), "foreach": [1, 2]}, _after("after", "asks.results")]),
        {f".*0.{n}": [action("look", q=n), action("post", q=n), final("seen")] for n in (0, 1)},
    ),
    "node approval": Case(
        flow(
            [
                *(node(f"n{n}", "pay", config={"amount": n}, approval="on_write") for n in (1, 2, 3)),
                _after("refused", "n2.error.message", "post"),
                node("end", "look", config={"takes": ["{{nodes.n1}}", "{{nodes.refused?}}", "{{nodes.n3}}"]}),
            ],
            _edge("n2", "refused", on="error"),
            *(_edge(name, "end") for name in ("n1", "refused", "n3")),
        ),
        approval=_spoken,
        doubtful=True,
    ),
    "node retry": Case(
        flow([node("try", "flaky", retry={"max_attempts": 3}), _after("then", "try", "pay")]), doubtful=True
    ),
    "agent retry": Case(
        flow([agent("asks", "look", "post", retry={"max_attempts": 3}, max_tool_calls=2)]),
        {
            r"flow/asks\.1": [action("look", q=1), None],
            r"flow/asks\.1~1": [action("post", q=1), None],
            r"flow/asks\.1~2": [action("look", q=2), final("beyond what was left")],
        },
        ends="failed",
    ),
    "nested agent": Case(
        flow([agent("asks", "look", {"tool": "agent_core", "preset": _CHILD}, "pay")]),
        {
            r"flow/asks\.1": [action("agent_core", prompt="Pay."), action("pay", amount=2), final("both")],
            r"flow/asks\.1/agent_core.*": _PAYS,
        },
        doubtful=True,
    ),
    "invoked": Case(
        flow(
            [
                node("calls", "invoke_workflow", config={"workflow": "below_agent.json"}),
                agent("asks", {"tool": "invoke_workflow", "preset": {"workflow": "below.json"}}),
            ],
            _edge("calls", "asks"),
        ),
        {
            "flow/calls.*": [action("post", q=1), final("posted")],
            "flow/asks.*": [action("invoke_workflow"), final("invoked")],
        },
        files={"below.json": _BELOW, "below_agent.json": _BELOW_AGENT},
        doubtful=True,
    ),
    "waits": Case(
        flow(
            [
                node("moment", "wait", config={"seconds": 0.02}),
                node("moments", "wait", foreach=[0, 0.01], config={"seconds": "{{item}}"}),
                node("reads", "look"),
                _after("then", "moment.signal", "pay"),
                node(
                    "end", "look", config={"takes": ["{{nodes.then}}", "{{nodes.moments.errors}}", "{{nodes.reads}}"]}
                ),
            ],
            _edge("moment", "then"),
            *(_edge(name, "end") for name in ("then", "moments", "reads")),
        ),
        doubtful=True,
    ),
    "plan": Case(
        flow(
            [
                agent("asks", "look", "post", {"tool": "agent_core", "preset": _CHILD}, _ON_WRITE, **_CONFIRMED),
                _after("after", "asks.final_answer"),
            ]
        ),
        {
            r"flow/asks\.1": [_plan(("shell", {})), _plan(("post", {"q": 1})), final("planned")],
            r"flow/asks\.1/agent_core.*": _PAYS,
        },
        approval=_planned,
        doubtful=True,
    ),
    "plan made anew": Case(
        flow([agent("asks", "look", "broken", "pay", mode="plan", plan={"on_failure": "replan"})]),
        {
            ".*": [
                _plan(("pay", {"amount": 1}), ("broken", {"q": 2}), ("look", {"q": 3})),
                _plan(("look", {"q": 4}), ("pay", {"for": "{{steps.1.seen.q}}"})),
                final("paid"),
            ]
        },
        doubtful=True,
    ),
    "plan with gaps": Case(
        flow([agent("asks", "look", "broken", "post", mode="plan", plan={"on_failure": "skip"})]),
        {
            ".*": [
                _plan(("broken", {"q": 1}), ("look", {"q": "{{steps.1}}"}), ("post", {"q": 2})),
                "What?",
                final("posted"),
            ]
        },
    ),
    "write": Case(flow([node("pays", "pay"), _after("after", "pays")]), doubtful=True),
    "idempotent write": Case(flow([node("posts", "post"), _after("after", "posts")])),
    "in JSONL": Case(
        flow([agent("asks", "look", _ON_WRITE), _after("after", "asks.final_answer", "post")]),
        {".*": [action("look", q=1), action("pay", amount=1), final("paid")]},
        doubtful=True,
        jsonl=True,
    ),
}

_TASKS = [action(("look", "post", "pay")[n % 3], task=n) for n in range(12)]

LONG = Case(
    flow(
        [
            node("count", "count"),
            _after("spend", "count.n", "pay"),
            agent("asks", "look", "post", "pay", max_steps=20, max_tool_calls=20),
            node("end", "look"),
        ],
        _edge("count", "spend"),
        _edge("spend", "count", when="nodes.count.n < `12`"),
        _edge("spend", "end"),
        _edge("asks", "end"),
        entry=["count", "asks"],
    ),
    {".*": [*_TASKS, final()]},
)
"""A loop beside an agent, long enough to be stopped in the middle."""

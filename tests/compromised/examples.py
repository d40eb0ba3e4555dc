"""The workflows that ship as examples, each as the files of a directory, and one with everything that nests agents."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "engine_shim" / "cli" / "host"
WORKFLOWS = ROOT / "fixtures" / "workflows"
FILE = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TRIPS = {"file_search": {"query": "hotel", "root_dir": "trips"}, "read_file": {"path": "trips/lisbon.txt"}}
STOCK = {"stock": {"article": "A-17"}, "agent_core": {"prompt": "Look at article A-17."}}
ORDER = {"find_order": {"number": "17"}}
ASKED = "Please look at order 17, article B-4, Lisbon and ann@acme.example: are 1234 pieces enough?"
UNLIMITED = {"max_steps": 0, "max_tool_calls": 0, "max_repairs": 1000, "timeout": None}
CLERK = {"max_steps": 5, "system_prompt": "You are the clerk of warehouse Alpha; boss@acme.example decides."}
BELOW = {"model": "scripted:none.json", "max_steps": 3, "allowed_tools": ["stock", "calculator"]}
NESTED: Mapping[str, Any] = {
    "main.yaml": {
        "id": "main",
        "inputs": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
        "nodes": [
            {"id": "stock", "tool": "stock", "config": {"article": "A-17"}},
            {
                "id": "each",
                "tool": "agent_core",
                "foreach": ["Bern", "Oslo"],
                "retry": {"max_attempts": 2, "delay": 0.001},
                "config": {
                    **CLERK,
                    "model": "scripted:none.json",
                    "prompt": "{{external.message}} {{item}} {{nodes.stock.article}}",
                    "allowed_tools": [
                        "stock",
                        {
                            "tool": "agent_core",
                            "preset": {
                                "model": "scripted:none.json",
                                "max_steps": 3,
                                "allowed_tools": ["stock", "calculator"],
                            },
                        },
                    ],
                },
            },
            {"id": "below", "tool": "invoke_workflow", "config": {"workflow": "below.yaml", "inputs": {"number": 88}}},
        ],
        "edges": [{"from": "stock", "to": "each"}, {"from": "each", "to": "below"}],
    },
    "below.yaml": {
        "id": "below",
        "inputs": {"type": "object", "properties": {"number": {"type": "integer"}}},
        "nodes": [
            {
                "tool": "agent_core",
                "config": {
                    **CLERK,
                    "model": "scripted:none.json",
                    "prompt": "Is {{external.number}} enough?",
                    "allowed_tools": ["stock"],
                },
            }
        ],
    },
    "none.json": [],
}


@dataclass(frozen=True, slots=True)
class Example:
    """A workflow, what is given to it, and the files that stand beside it.

    `calls` are arguments for some tools with which they answer something.
    """

    name: str
    files: Mapping[str, str]
    flow: str
    calls: Mapping[str, Mapping[str, Any]]
    external: Mapping[str, Any] = field(default_factory=dict)

    def write(self, directory: Path) -> None:
        """Write the files; agents may take as many steps as they like, and get over as many refusals."""
        for name, text in self.files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_without_limits(text) if name.endswith(".yaml") else text, "utf-8")


def _without_limits(text: str) -> str:
    definition = yaml.safe_load(text)
    for node in definition.get("nodes", ()):
        if node["tool"] == "agent_core":
            node["config"] |= UNLIMITED
            for allowed in node["config"]["allowed_tools"]:
                if isinstance(allowed, dict):
                    allowed.pop("approval", None)
                    if "preset" in allowed:
                        allowed["preset"] |= UNLIMITED
    return yaml.safe_dump(definition, allow_unicode=True)


def _in_directory(directory: Path) -> dict[str, str]:
    files = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {path.relative_to(directory).as_posix().removesuffix(".txt"): path.read_text("utf-8") for path in files}


def _in_readme(name: str) -> dict[str, str]:
    return dict(FILE.findall((ROOT / name).read_text("utf-8")))


def examples() -> Iterator[Example]:
    """Each workflow with an agent that may call tools."""
    trips = {path.name: path.read_text("utf-8") for path in sorted((SHIPPED / "demo_files" / "trips").iterdir())}
    demo = {name: text for name, text in _in_directory(SHIPPED / "demo_files").items() if "/" not in name}
    demo |= {f"trips/{name}": text for name, text in trips.items()}
    yield Example("demo", demo, "workflow.yaml", TRIPS, {"message": ASKED})
    yield Example(
        "init",
        _in_directory(SHIPPED / "init_files"),
        "flow.yaml",
        {"find_order": {"number": "17"}},
        {"question": ASKED},
    )
    yield Example("recipes", _in_readme("engine_shim/RECIPES.md"), "flow.yaml", STOCK, {"message": ASKED})
    desk = _in_readme("engine_shim/README.md")
    yield Example("approval", desk, "approval.yaml", STOCK)
    yield Example("sub-agent", _in_directory(WORKFLOWS), "nested.yaml", {"agent_core": {"prompt": "Add 2 and 3."}})
    own = {name: json.dumps(content) for name, content in NESTED.items()}
    host = {name: _in_readme("engine_shim/RECIPES.md")[name] for name in ("agent-core.yaml", "shop.py")}
    yield Example("foreach, retry and a sub-workflow", host | own, "main.yaml", STOCK, {"message": ASKED})

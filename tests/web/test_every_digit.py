"""Numbers of the page keep every digit: read, shown, edited, sent; what no run could read as typed is a fault."""

import json
import re
import subprocess
from typing import Any

import pytest

from engine_shim.web.bundle import STATIC
from support.optional import NODE, needs_node

pytestmark = needs_node
NUMBERS = (
    "1234567890123456789",
    "-0",
    "1.0",
    "0.50",
    "1e400",
    "12345678901234567890.5",
    "0.1000000000000000055",
    "1E5",
)
MODULES = [path for path in STATIC.rglob("*.js") if "vendor" not in path.parts]


def reckon(imports: str, script: str, given: Any = None) -> Any:
    """What a script over modules of the page prints, as JSON by JavaScript itself; `given` is what it is given."""
    assert NODE is not None
    head = f'{imports}\nimport {{ readFileSync }} from "fs";\nconst given = JSON.parse(readFileSync(0, "utf8"));\n'
    text = head.replace("STATIC", str(STATIC)) + f"console.log(JSON.stringify(({script})(given)));"
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", text], input=json.dumps(given), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


IMPORT = 'import * as kit from "STATIC/kit/json.js";'


def test_json_is_written_again_as_it_was_read() -> None:
    texts = [
        *NUMBERS,
        json.dumps({"a": [1, 2.5, True, None, '1.0 \\ " é\u2028', {}, []], "__proto__": {"b": ""}}, ensure_ascii=False),
        f'{{"deep":[{",".join(NUMBERS)}],"text":"{"1.0" * 3}"}}',
    ]
    found = reckon(IMPORT, "(texts) => texts.map((text) => kit.writeJson(kit.parseJson(text)))", texts)
    assert [text.replace(" ", "") for text in texts] == [text.replace(" ", "") for text in found]


def test_json_is_indented_as_scripts_indent_it() -> None:
    script = """(values) => values.map((value) =>
      [2, "\\t", ""].every((indent) => kit.writeJson(value, indent) === JSON.stringify(value, null, indent)))"""
    assert all(reckon(IMPORT, script, [{"a": [1, {"b": {}}], "c": []}, [], "x", None, 2.5]))


def test_large_texts_are_read() -> None:
    script = """() => {
      const text = JSON.stringify({ long: '\\\\"'.repeat(2_000_000), number: 1 }).replace(/1}$/, "1.0}");
      return kit.writeJson(kit.parseJson(text)) === text;
    }"""
    assert reckon(IMPORT, script)


def test_no_module_reads_or_writes_json_by_itself() -> None:
    by_itself = re.compile(r"JSON\.(parse|stringify)\(|\.json\(\)|structuredClone\(")
    found = {path.name for path in MODULES if by_itself.search(path.read_text("utf-8"))}
    assert found == {"json.js"}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("typed", "read"),
    [
        *[(number, number) for number in NUMBERS],
        ("+5", "5"),
        ("007", "7"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+12345678901234567890", "12345678901234567890"),
        ("5 apples", "5 apples"),
    ],
)
def test_number_is_read_from_a_field_as_it_is_typed(typed: str, read: str) -> None:
    assert reckon(IMPORT, "(text) => String(kit.readNumber(text))", typed) == read


def test_number_that_a_run_would_read_as_another_one_is_found_anywhere() -> None:
    held = [
        "1234567890123456789",
        "1.10",
        "1e21",
        "0.1",
        "100000000000000000000000.0",
        "5e-324",
        "-0.0",
        "1e5",
        "0.000",
    ]
    lossy = ["1e400", "12345678901234567890.5", "0.1000000000000000055", "1e-400", "-3.14159265358979323846"]
    script = '(texts) => texts.map((text) => kit.findLossy(kit.parseJson(`{"a": [${text}]}`))?.text ?? null)'
    assert reckon(IMPORT, script, held) == [None] * len(held)
    assert reckon(IMPORT, script, lossy) == lossy


EDITING = 'import * as source from "STATIC/edit/source.js";\nimport * as kit from "STATIC/kit/json.js";'
YAML = (
    "id: x # its name\nbig: 1234567890123456789\nflow: {half: 0.50, other: 1e400, hex: 0xFFFFFFFFFFFFFFFF}\nlast: 1\n"
)


def test_definition_in_yaml_keeps_the_digits_of_what_is_edited_and_of_what_is_not() -> None:
    script = """(text) => {
      const after = source.changeText(text, "yaml", (target) => {
        target.set(["flow", "half"], kit.parseJson("0.1000000000000000055"));
        target.set(["last"], kit.parseJson("98765432109876543210"));
        target.set(["new"], kit.parseJson('{"a": [12345678901234567890.5, 1.0]}'));
        target.mapStrings((each) => each);
      });
      return [after, kit.writeJson(source.readText(after, "yaml").data)];
    }"""
    after, data = reckon(EDITING, script, YAML)
    assert "id: x # its name\nbig: 1234567890123456789\n" in after
    assert data == (
        '{"id":"x","big":1234567890123456789,"flow":{"half":0.1000000000000000055,"other":1e400,'
        '"hex":18446744073709551615},"last":98765432109876543210,"new":{"a":[12345678901234567890.5,1.0]}}'
    )


def test_definition_keeps_its_digits_from_one_format_to_the_other() -> None:
    data = f'{{"id":"x","all":[{",".join(NUMBERS)}]}}'
    script = """(text) => {
      const { data } = source.readText(text, "json");
      const yaml = source.writeText(data, "yaml");
      const json = source.writeText(source.readText(yaml, "yaml").data, "json");
      const edited = source.changeText(json, "json", (target) => target.set(["more"], kit.parseJson("[1.0]")));
      return kit.writeJson(source.readText(edited, "json").data);
    }"""
    assert reckon(EDITING, script, data) == f'{data[:-1]},"more":[1.0]}}'


def test_policies_keep_the_digits_of_what_is_typed_or_say_what_is_wrong() -> None:
    imports = """import * as kit from "STATIC/kit/json.js"; import * as one from "STATIC/run/policy.js";
      import * as many from "STATIC/pages/audit/policy_text.js"; globalThis.navigator = { language: "en" };
      globalThis.document = { documentElement: {} };"""
    script = """([number, lossy]) => {
      const limits = { max_steps: number, cost_budget: lossy, timeout: "x" };
      const form = { denied: [], limits, approval: "", afterUntrusted: "", narrowing: `[${number}]` };
      const { policy, faults } = one.writePolicy(form);
      const text = { text: `{"seed": ${number}}`, denied: "", maxSteps: number };
      const read = many.readPolicy(text).policy;
      const again = many.readPolicy(many.readTerm(many.writeTerm(read))).policy;
      const { fault } = many.readPolicy({ ...text, text: `seed=${lossy}` });
      return [kit.writeJson(policy), Object.keys(faults), kit.writeJson(read), many.writeTerm(again), fault];
    }"""
    policy, faults, read, again, fault = reckon(imports, script, [NUMBERS[0], NUMBERS[-2]])
    assert policy == f'{{"max_steps":{NUMBERS[0]},"allowed_tools":[{NUMBERS[0]}]}}'
    assert faults == ["cost_budget", "timeout"]
    assert read == again == f'{{"seed":{NUMBERS[0]},"max_steps":{NUMBERS[0]}}}'
    assert "more digits" in fault


def test_forms_compare_values_by_what_they_say() -> None:
    imports = 'import * as kit from "STATIC/kit/json.js"; import * as form from "STATIC/edit/schema.js";'
    script = """(text) => {
      const big = kit.parseJson(text);
      const [integer, number] = [{ type: "integer" }, { type: "number" }];
      const values = [{ const: kit.parseJson(text) }, { enum: [1, kit.parseJson(text)] }];
      const places = [{ type: "string" }, ...values, integer, number]
        .map((schema) => form.variantOf(big, [{ type: "object" }, schema]));
      return [places, form.showDefault({ default: big })];
    }"""
    assert reckon(imports, script, NUMBERS[0]) == [[0, 1, 1, 1, 1], NUMBERS[0]]

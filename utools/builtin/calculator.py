"""`calculator`: statistics of a list of numbers, and arithmetic with exact fractions. Pure."""

import ast
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction

from utools.errors import DefinitionError, ToolError
from utools.lazy_pattern import lazy_compile
from utools.schema.faults import shown
from utools.schema.json_value import LARGEST, SMALLEST
from utools.tool import Args, Tool, ToolContext
from utools.words.text import Text

Number = int | float

MAX_LENGTH = 1000
MAX_EXPONENT = 1024
MAX_BITS = 8192
NOT_ARITHMETIC = Text(
    "an expression may hold only numbers, + - * / // % ** ( ), where ** is the power, "
    "and mean, max, min, sum, count and median"
)
ALLOWED = lazy_compile(r"(?:[0-9eE.+\-*/%(),_\s]|mean|max|min|sum|count|median)*")

BINARY: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction | int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def calculator() -> Tool:
    """Return the tool `calculator`."""

    async def execute(args: Args, context: ToolContext) -> Number:
        return calculate(args)

    return Tool(
        code="calculator",
        description=(
            "Calculate an expression, or else apply an operation to a list of numbers. "
            "Give either {'expression': '(2 + 3) * 4 - mean(1, 2)'} or {'operation': 'mean', 'numbers': [1, 2]}."
        ),
        config_schema={
            "type": "object",
            "properties": {
                "expression": {
                    "type": "string",
                    "maxLength": MAX_LENGTH,
                    "description": f"Numbers, + - * / // % ** ( ), and {', '.join(OPERATIONS)}.",
                },
                "operation": {"enum": list(OPERATIONS), "description": "Instead: what to do with the numbers."},
                "numbers": {
                    "type": "array",
                    "items": {"type": "number"},
                    "maxItems": 10_000,
                    "description": "For an operation.",
                },
            },
            "additionalProperties": False,
            "anyOf": [{"required": ["operation", "numbers"]}, {"required": ["expression"]}],
            "dependentSchemas": {"expression": {"properties": {"operation": False, "numbers": False}}},
            "examples": [{"expression": "17 * 23"}],
        },
        output_schema={"type": "number", "examples": [391]},
        examples=[
            {
                "user": "A crate holds 36 jars. How many jars are in 15 crates?",
                "args": {"expression": "36 * 15"},
                "output": 540,
                "answer": "540 jars.",
            },
            {
                "user": "Which is the largest of 4.5, 19 and 7?",
                "args": {"expression": "max(4.5, 19, 7)"},
                "output": 19,
                "answer": "19.",
            },
        ],
        execute=execute,
        check=_check,
        effect="read",
    )


def calculate(args: Args) -> Number:
    """Return the result of an expression, or of an operation; ToolError if there is none."""
    if "expression" in args:
        try:
            return as_number(evaluate(args["expression"]))
        except ToolError as error:
            raise ToolError(
                "{error}; read was {expression}", error=error, expression=shown(args["expression"])
            ) from None
    if "operation" in args and "numbers" in args:
        return as_number(OPERATIONS[args["operation"]]([exact(each) for each in args["numbers"]]))
    raise ToolError("give an 'expression', or else both 'operation' and 'numbers'")


def _check(args: Args) -> None:
    try:
        if "expression" in args:
            evaluate(args["expression"])
    except ToolError as error:
        raise DefinitionError(str(error), where="expression", value=args["expression"]) from None


def exact(number: Number) -> Fraction:
    """Return the number as it is written: 0.1 is a tenth."""
    return Fraction(repr(number))


def as_number(result: Fraction) -> Number:
    """Return an int if the result is whole, else the nearest float."""
    if result.denominator == 1 and SMALLEST <= result.numerator <= LARGEST:
        return result.numerator
    try:
        return float(result)
    except OverflowError:
        raise ToolError("the result is too large") from None


def evaluate(expression: str) -> Fraction:
    """Return the value of an arithmetic expression of numbers, operators and OPERATIONS."""
    if not ALLOWED.fullmatch(expression):
        raise ToolError(NOT_ARITHMETIC)
    if len(expression) > MAX_LENGTH:
        raise ToolError("an expression may be at most {most} characters long", most=MAX_LENGTH)
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except ZeroDivisionError:
        raise ToolError("division by zero") from None
    except (RecursionError, MemoryError):
        raise ToolError("the expression is nested too deeply") from None
    except SyntaxError as error:
        raise ToolError("not an arithmetic expression: {reason}", reason=error.msg) from None


def _value(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as number) if number == number and abs(number) != float("inf"):
            return _check_size(exact(number))
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner)
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return _value(inner)
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as operands, keywords=[]) if name in OPERATIONS:
            return Fraction(OPERATIONS[name]([_value(each) for each in operands]))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _check_size(_power(_value(left), _value(right)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
            return _check_size(Fraction(BINARY[type(op)](_value(left), _value(right))))
    raise ToolError(NOT_ARITHMETIC)


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if abs(exponent) > MAX_EXPONENT:
        raise ToolError("an exponent may be at most {most}", most=MAX_EXPONENT)
    if exponent.denominator == 1:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if (bits - 1) * abs(exponent) > MAX_BITS:
            raise ToolError("the result is too large")
        return Fraction(base**exponent.numerator)
    if base < 0:
        raise ToolError("a negative number has no such root among the real numbers")
    try:
        return exact(float(base) ** float(exponent))
    except OverflowError:
        raise ToolError("the result is too large") from None


def _check_size(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise ToolError("the result is too large")
    return value


def _check_not_empty(numbers: Sequence[Fraction]) -> Sequence[Fraction]:
    if not numbers:
        raise ToolError("this operation needs at least one number")
    return numbers


def _mean(numbers: Sequence[Fraction]) -> Fraction:
    return Fraction(sum(_check_not_empty(numbers)), len(numbers))


def _median(numbers: Sequence[Fraction]) -> Fraction:
    ordered = sorted(_check_not_empty(numbers))
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


OPERATIONS: dict[str, Callable[[Sequence[Fraction]], Fraction]] = {
    "mean": _mean,
    "max": lambda numbers: max(_check_not_empty(numbers)),
    "min": lambda numbers: min(_check_not_empty(numbers)),
    "sum": lambda numbers: sum(numbers, Fraction(0)),
    "count": lambda numbers: Fraction(len(numbers)),
    "median": _median,
}

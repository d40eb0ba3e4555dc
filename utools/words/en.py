"""What utools says to a model, in English: faults of values, calls that were not made, results that are lost. Pure.

Names in braces are filled in once: what is filled in is not looked at again.
"""

from collections.abc import Mapping


class English:
    """The texts by name."""

    language = "en"

    # ── a fault of a value ──
    fault = "{at} {problem}, got {got}."
    fault_without_value = "{at} {problem}."
    the_value = "The value"
    or_ = " or "
    must_be = "must be {expected}"
    not_a_name = "is not allowed as a name: it must be {expected}"
    missing = "is required but missing"
    any_value = "a value"
    nothing = "nothing"
    unknown_property = "is not a known property ({hint})"
    known_properties = "one of the properties {names}"
    no_property = "no such property"
    did_you_mean = "did you mean {name}?"
    known = "known: {names}"
    none = "none"
    not_combined = "is not allowed in this combination"
    left_out = "nothing: it is not allowed in this combination"
    not_valid = "is not valid"
    valid = "a valid value"
    one_of = "one of {limit}"
    absent = "absent: nothing is allowed here"
    other_keyword = "valid by its {keyword} ({limit})"
    uncheckable = "a value that cannot be checked"
    too_deep = "nested at most {depth} levels deep"
    too_many_ways = "simpler: this schema has too many ways to read it"
    endless_schema = "judged by another schema: this one refers to itself without end"
    types: Mapping[str, str] = {
        "string": "a string",
        "integer": "an integer",
        "number": "a number",
        "boolean": "a boolean",
        "object": "an object",
        "array": "an array",
        "null": "null",
    }
    by_keyword: Mapping[str, str] = {
        "minLength": "at least {limit} characters long",
        "maxLength": "at most {limit} characters long",
        "pattern": "a string that matches the pattern {limit}",
        "control": "free of control characters",
        "minimum": ">= {limit}",
        "maximum": "<= {limit}",
        "exclusiveMinimum": "> {limit}",
        "exclusiveMaximum": "< {limit}",
        "multipleOf": "a multiple of {limit}",
        "minItems": "at least {limit} items long",
        "maxItems": "at most {limit} items long",
        "uniqueItems": "free of repeated items",
        "contains": "a list with an item that fits {limit}",
        "minProperties": "an object with at least {limit} properties",
        "maxProperties": "an object with at most {limit} properties",
        "items": "a list without further items",
        "unevaluatedItems": "a list without further items",
        "oneOf": "valid under exactly one of the alternatives",
        "not": "something other than what {limit} describes",
        "None": "absent: nothing is allowed here",
    }
    python_fault = "{at}: {problem}, got {got}."
    python_fault_without_value = "{at}: {problem}."
    by_pydantic_type: Mapping[str, str] = {}
    """What pydantic finds wrong, by its type of fault; its own words where there is none, for they are English."""

    # ── a call ──
    invalid_arguments = "Invalid arguments: {faults}"
    more_faults = "{faults} And {count} more."
    failed_silently = "The tool {tool} failed without saying why."
    not_json = "the tool {tool} gave something that is not JSON: {reason}."
    breaks_schema = "the output of the tool {tool} breaks its output_schema: {faults}"
    result_lost = "The call was made, and only its result could not be kept: {reason}"
    one_call = "{count} call {span}"
    several_calls = "{count} calls {span}"
    spans: Mapping[str, str] = {"s": "a second", "min": "a minute", "h": "an hour"}
    rate_unknown = "{tool} is limited to {limit}, and how many were made cannot be looked up: {error}"
    rate_exceeded = (
        "{tool} is limited to {limit}, and this call cannot wait so long: "
        "it would be allowed in {seconds} seconds, at {at}"
    )

    # ── a value that is not JSON ──
    it = "it"
    why_not_json: Mapping[str, str] = {
        "integer": "{at} is an integer outside -2^63…2^64-1",
        "number": "{at} is not a finite number",
        "depth": "it is nested more than {depth} levels deep",
        "twice": "{at} has two keys that are the same text",
        "type": "{at} is of type {type}",
        "conversion": "{at} is of type {type}, and its conversion failed with {error}",
        "reading": "{at} is of type {type}, and reading it failed: {error}",
        "key": "{at} has a key of type {type}, only strings may be keys",
        "surrogate": "{at} holds a lone surrogate, which is not text",
    }

    # ── a conversation ──
    summary = "Summary of the earlier conversation: "

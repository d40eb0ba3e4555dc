"""What utools says to a model, in Chinese. Pure."""

from collections.abc import Mapping

from utools.words.en import English


class Chinese(English):
    """The texts by name, each in place of the English one."""

    language = "zh"

    # ── a fault of a value ──
    fault = "{at}：{problem}（当前值：{got}）。"
    fault_without_value = "{at}：{problem}。"
    the_value = "该值"
    or_ = "或"
    must_be = "应为{expected}"
    not_a_name = "不能用作名称：名称应为{expected}"
    missing = "必填（缺失）"
    any_value = "必填的值"
    nothing = "缺失"
    unknown_property = "不是已知的字段（{hint}）"
    known_properties = "以下字段之一：{names}"
    no_property = "不填：没有这个字段"
    did_you_mean = "是否指 {name}？"
    known = "已知字段：{names}"
    none = "无"
    not_combined = "不能与其他字段同时给出"
    left_out = "不填：不能与其他字段同时给出"
    not_valid = "无效"
    valid = "有效的值"
    one_of = "以下值之一：{limit}"
    absent = "不填：此处不允许任何值"
    other_keyword = "符合 {keyword} 规则的值（{limit}）"
    uncheckable = "无法检查的值"
    too_deep = "嵌套不超过 {depth} 层的值"
    too_many_ways = "更简单的值：这个 schema 的解读方式过多"
    endless_schema = "由其他 schema 检查的值：这个 schema 无止境地引用自身"
    types: Mapping[str, str] = {
        "string": "字符串",
        "integer": "整数",
        "number": "数字",
        "boolean": "布尔值",
        "object": "对象",
        "array": "数组",
        "null": "null",
    }
    by_keyword: Mapping[str, str] = {
        "minLength": "至少 {limit} 个字符的字符串",
        "maxLength": "至多 {limit} 个字符的字符串",
        "pattern": "匹配模式 {limit} 的字符串",
        "control": "不含控制字符的字符串",
        "minimum": "不小于 {limit} 的数",
        "maximum": "不大于 {limit} 的数",
        "exclusiveMinimum": "大于 {limit} 的数",
        "exclusiveMaximum": "小于 {limit} 的数",
        "multipleOf": "能被 {limit} 整除的数",
        "minItems": "至少有 {limit} 项的数组",
        "maxItems": "至多有 {limit} 项的数组",
        "uniqueItems": "没有重复项的数组",
        "contains": "至少有一项符合 {limit} 的数组",
        "minProperties": "至少有 {limit} 个字段的对象",
        "maxProperties": "至多有 {limit} 个字段的对象",
        "items": "没有多余项的数组",
        "unevaluatedItems": "没有多余项的数组",
        "oneOf": "恰好符合其中一种形式的值",
        "not": "不符合 {limit} 的值",
        "None": "不填：此处不允许任何值",
    }
    python_fault = "{at}：{problem}（当前值：{got}）。"
    python_fault_without_value = "{at}：{problem}。"
    by_pydantic_type: Mapping[str, str] = {
        "missing": "必填（缺失）",
        "extra_forbidden": "不是已知的字段",
        "none_required": "应为 null",
        "model_type": "应为对象",
        "dataclass_type": "应为对象",
        "dict_type": "应为对象",
        "mapping_type": "应为对象",
        "list_type": "应为数组",
        "tuple_type": "应为数组",
        "set_type": "应为数组",
        "frozen_set_type": "应为数组",
        "set_item_not_hashable": "数组的每一项应为可以比较的值",
        "too_short": "至少应有 {min_length} 项",
        "too_long": "至多应有 {max_length} 项",
        "string_type": "应为字符串",
        "string_unicode": "应为有效的 Unicode 字符串",
        "string_too_short": "至少应有 {min_length} 个字符",
        "string_too_long": "至多应有 {max_length} 个字符",
        "string_pattern_mismatch": "应匹配模式 {pattern}",
        "enum": "应为以下值之一：{expected}",
        "literal_error": "应为以下值之一：{expected}",
        "bool_type": "应为布尔值",
        "bool_parsing": "应为布尔值",
        "int_type": "应为整数",
        "int_parsing": "应为整数",
        "int_parsing_size": "整数的位数过多",
        "int_from_float": "应为没有小数部分的整数",
        "float_type": "应为数字",
        "float_parsing": "应为数字",
        "finite_number": "应为有限的数",
        "greater_than": "应大于 {gt}",
        "greater_than_equal": "应不小于 {ge}",
        "less_than": "应小于 {lt}",
        "less_than_equal": "应不大于 {le}",
        "multiple_of": "应为 {multiple_of} 的倍数",
        "decimal_type": "应为十进制数",
        "decimal_parsing": "应为十进制数",
        "decimal_max_digits": "至多应有 {max_digits} 位数字",
        "decimal_max_places": "至多应有 {decimal_places} 位小数",
        "decimal_whole_digits": "小数点前至多应有 {whole_digits} 位数字",
        "date_type": "应为日期，例如 2026-01-31",
        "date_parsing": "应为日期，例如 2026-01-31",
        "date_from_datetime_parsing": "应为日期，例如 2026-01-31",
        "date_from_datetime_inexact": "应为不带时间的日期，例如 2026-01-31",
        "date_past": "应为过去的日期",
        "date_future": "应为将来的日期",
        "time_type": "应为时间，例如 13:45:00",
        "time_parsing": "应为时间，例如 13:45:00",
        "datetime_type": "应为日期和时间，例如 2026-01-31T13:45:00",
        "datetime_parsing": "应为日期和时间，例如 2026-01-31T13:45:00",
        "datetime_from_date_parsing": "应为日期和时间，例如 2026-01-31T13:45:00",
        "datetime_object_invalid": "应为有效的日期和时间",
        "datetime_past": "应为过去的时间",
        "datetime_future": "应为将来的时间",
        "timezone_naive": "不应带时区",
        "timezone_aware": "应带时区",
        "time_delta_type": "应为时长，例如 PT1H30M",
        "time_delta_parsing": "应为时长，例如 PT1H30M",
        "url_type": "应为网址",
        "url_parsing": "应为有效的网址",
        "url_syntax_violation": "应为有效的网址",
        "url_too_long": "网址至多应有 {max_length} 个字符",
        "url_scheme": "网址的协议应为 {expected_schemes}",
        "uuid_type": "应为 UUID",
        "uuid_parsing": "应为有效的 UUID",
        "uuid_version": "应为第 {expected_version} 版的 UUID",
        "bytes_type": "应为字符串",
        "bytes_too_short": "至少应有 {min_length} 个字节",
        "bytes_too_long": "至多应有 {max_length} 个字节",
        "union_tag_invalid": "{discriminator} 应为以下值之一：{expected_tags}",
        "union_tag_not_found": "缺少字段 {discriminator}，无法区分其形式",
        "value_error": "{error}",
        "assertion_error": "{error}",
        "": "无效（{type}）",
    }
    """The last one is for every other type. The words of an author's own validator are quoted."""

    # ── a call ──
    invalid_arguments = "参数有误：{faults}"
    more_faults = "{faults} 另有 {count} 处错误。"
    failed_silently = "工具 {tool} 失败，但没有说明原因。"
    not_json = "工具 {tool} 返回的内容不是 JSON：{reason}。"
    breaks_schema = "工具 {tool} 的输出不符合它的 output_schema：{faults}"
    result_lost = "调用已经执行，只是结果无法保留：{reason}"
    one_call = "{span} {count} 次"
    several_calls = "{span} {count} 次"
    spans: Mapping[str, str] = {"s": "每秒", "min": "每分钟", "h": "每小时"}
    rate_unknown = "{tool} 限制为{limit}，但无法查询已调用的次数：{error}"
    rate_exceeded = "{tool} 限制为{limit}，这次调用等不了那么久：要到 {seconds} 秒之后（{at}）才允许调用"

    # ── a value that is not JSON ──
    it = "该值"
    why_not_json: Mapping[str, str] = {
        "integer": "{at} 是超出 -2^63…2^64-1 的整数",
        "number": "{at} 不是有限的数",
        "depth": "嵌套超过 {depth} 层",
        "twice": "{at} 有两个文本相同的键",
        "type": "{at} 的类型是 {type}",
        "conversion": "{at} 的类型是 {type}，转换时出现 {error}",
        "reading": "{at} 的类型是 {type}，读取时出现 {error}",
        "key": "{at} 有类型为 {type} 的键，键只能是字符串",
        "surrogate": "{at} 含有单独的代理码元，不是文本",
    }

    # ── a conversation ──
    summary = "此前对话的概括："

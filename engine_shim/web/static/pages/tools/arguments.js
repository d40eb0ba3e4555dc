// A JSON Schema as a table of arguments for people. Pure.

import { writeJson } from "../../kit/json.js";

const DEEPEST = 4;
const LIMITS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "format", "const"];

/** The arguments of a schema in their order, those of objects in them below them.
 *
 *  Each is {path, name, depth, type, isRequired, description, limits, default}; `default` is undefined where there is none.
 */
export function readArguments(schema) {
  return [...walk(schema ?? {}, schema ?? {}, 0, "")];
}

function* walk(schema, root, depth, path) {
  const { properties = {}, required = [] } = resolve(schema, root);
  for (const [name, raw] of Object.entries(properties)) {
    const own = resolve(raw, root);
    const at = path ? `${path}.${name}` : name;
    yield {
      path: at, name, depth, type: nameType(own, root), isRequired: required.includes(name), description: own.description ?? "",
      limits: LIMITS.filter((key) => key in own).map((key) => [key, own[key]]), default: own.default,
    };
    const below = objectIn(own, root);
    if (below && depth < DEEPEST) yield* walk(below, root, depth + 1, below === own ? at : `${at}[]`);
  }
}

/** The object that an argument is, or that the items of an array are. */
function objectIn(schema, root) {
  if (schema.properties) return schema;
  const items = schema.items && typeof schema.items === "object" ? resolve(schema.items, root) : null;
  return items?.properties ? items : null;
}

/** A schema with what it refers to in place; of one that may be null as well, the other one. */
function resolve(schema, root) {
  let found = schema && typeof schema === "object" ? schema : {};
  for (let turns = 0; turns < 8; turns += 1) {
    const only = (found.anyOf ?? found.oneOf ?? []).filter((each) => each.type !== "null");
    if (typeof found.$ref === "string") found = { ...lookUp(found.$ref, root), ...without(found, "$ref") };
    else if (Array.isArray(found.allOf) && found.allOf.length === 1) found = { ...found.allOf[0], ...without(found, "allOf") };
    else if (only.length === 1) found = { ...only[0], ...without(without(found, "anyOf"), "oneOf") };
    else break;
  }
  return found;
}

function lookUp(reference, root) {
  let found = root;
  for (const part of reference.replace(/^#\/?/, "").split("/").filter(Boolean))
    found = found?.[part.replaceAll("~1", "/").replaceAll("~0", "~")];
  return found && typeof found === "object" ? found : {};
}

const without = (schema, key) => Object.fromEntries(Object.entries(schema).filter(([name]) => name !== key));

/** The type of a schema as one reads it: string, array of integer, "a" | "b". */
export function nameType(schema, root = schema) {
  const own = resolve(schema, root);
  if (own.enum) return own.enum.map((each) => writeJson(each)).join(" | ");
  const several = own.anyOf ?? own.oneOf;
  if (several) return [...new Set(several.map((each) => nameType(each, root)))].join(" | ");
  if (own.type === "array") return own.items ? `array of ${inBrackets(nameType(own.items, root))}` : "array";
  if (Array.isArray(own.type)) return own.type.join(" | ");
  return own.type ?? (own.properties ? "object" : "any");
}

const inBrackets = (name) => (name.includes(" | ") ? `(${name})` : name);

const EMPTY = { string: "", integer: 0, number: 0, boolean: false, array: [], object: {} };

/** Arguments to begin with: those that are required, each with its default or an empty value. */
export function exampleOf(schema) {
  const known = readArguments(schema).filter((each) => each.depth === 0 && each.isRequired);
  return Object.fromEntries(known.map((each) => [each.name, each.default ?? EMPTY[each.type] ?? firstOf(each, schema)]));
}

function firstOf({ name }, schema) {
  return resolve(schema.properties[name], schema).enum?.[0] ?? null;
}

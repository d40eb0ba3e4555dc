// JSON Schemas as forms see them: what kind of control a value needs, its fields, its default. Pure.

import { isNumber, isObject, sameJson, writeJson } from "../kit/json.js";

/** A schema with its $ref followed; what stands beside the $ref outweighs. */
export function resolve(schema, root, depth = 0) {
  if (!isObject(schema)) return {};
  if (typeof schema.$ref !== "string" || depth > 20) return schema;
  const { $ref, ...beside } = schema;
  const found = $ref === "#" ? root : $ref.startsWith("#/") ? followPointer(root, $ref.slice(2)) : {};
  return { ...resolve(found, root, depth + 1), ...beside };
}

function followPointer(root, pointer) {
  return pointer.split("/").reduce((value, key) => value?.[decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~")], root);
}

/** What a schema lets a value be: {kind, schema, nullable, variants?}. Kinds: text, number, integer, boolean, choice, constant,
 *  list, object, map, variants, json. */
export function readSchema(given, root) {
  const schema = resolve(given, root);
  const several = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(several)) return readVariants(schema, several.map((each) => resolve(each, root)), root);
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((type) => type !== "null");
    const nullable = types.length < schema.type.length;
    if (types.length === 1) return { ...readSchema({ ...schema, type: types[0] }, root), nullable };
    return { ...readVariants(schema, types.map((type) => ({ type })), root), nullable };
  }
  return { kind: kindOf(schema), schema, nullable: schema.type === "null" };
}

function readVariants(schema, several, root) {
  const beside = Object.fromEntries(Object.entries(schema).filter(([key]) => !["anyOf", "oneOf"].includes(key)));
  const rest = several.filter((each) => each.type !== "null" && each.const !== null);
  const nullable = rest.length < several.length;
  if (rest.length === 1) {
    const read = readSchema({ ...rest[0], ...beside }, root);
    return { ...read, nullable: nullable || read.nullable };
  }
  if (rest.length > 1 && rest.every((each) => "const" in each)) return { kind: "choice", schema: { ...beside, enum: rest.map((each) => each.const) }, nullable };
  return { kind: rest.length ? "variants" : "json", schema: beside, nullable, variants: rest };
}

function kindOf(schema) {
  if (Array.isArray(schema.enum)) return "choice";
  if ("const" in schema) return "constant";
  switch (schema.type ?? (schema.properties ? "object" : "")) {
    case "string":
      return "text";
    case "number":
    case "integer":
    case "boolean":
      return schema.type;
    case "array":
      return isObject(schema.items) && !schema.prefixItems ? "list" : "json";
    case "object":
      if (schema.properties) return "object";
      return isObject(schema.additionalProperties) ? "map" : "json";
    default:
      return "json";
  }
}

/** The fields of an object's schema, the required ones first: [{key, schema, required}]. */
export function fieldsOf(schema) {
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const fields = Object.entries(isObject(schema.properties) ? schema.properties : {}).map(([key, each]) => ({ key, schema: each, required: required.has(key) }));
  return [...fields.filter((each) => each.required), ...fields.filter((each) => !each.required)];
}

/** The variant that a value has, as its index; 0 for a value that fits none. */
export function variantOf(value, variants) {
  const found = variants.findIndex((each) => fits(value, each));
  return Math.max(found, 0);
}

function fits(value, schema) {
  if ("const" in schema) return sameJson(value, schema.const);
  if (schema.enum) return schema.enum.some((each) => sameJson(each, value));
  switch (schema.type ?? (schema.properties ? "object" : "")) {
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value) && Object.entries(schema.properties ?? {}).every(([key, each]) => !("const" in each) || sameJson(value[key], each.const)) && (schema.required ?? []).every((key) => key in value);
    case "integer":
      return isNumber(value) && Number.isInteger(Number(value));
    case "number":
      return isNumber(value);
    case "":
      return true;
    default:
      return typeof value === schema.type;
  }
}

/** A value to begin with. */
export function emptyOf(given, root) {
  const { kind, schema, variants } = readSchema(given, root);
  if (schema.default !== undefined && schema.default !== null) return schema.default;
  if (kind === "variants") return emptyOf(variants[0], root);
  const empty = { text: "", number: 0, integer: 0, boolean: false, list: [], object: {}, map: {}, constant: schema.const, choice: schema.enum?.[0] };
  return kind === "json" ? (schema.type === "array" ? [] : schema.type === "object" ? {} : "") : empty[kind];
}

/** Whether a value is one placeholder or has some in it. */
export const hasPlaceholder = (value) => typeof value === "string" && value.includes("{{");

/** A default as a field shows it while it is empty. */
export function showDefault(schema) {
  const value = schema.default;
  if (value === undefined || value === null || (isObject(value) && !Object.keys(value).length) || (Array.isArray(value) && !value.length)) return "";
  return typeof value === "string" ? value : writeJson(value);
}

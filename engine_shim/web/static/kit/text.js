// Texts of models and tools, made safe to look at.

import { writeJson } from "./json.js";

/** Control and direction characters, which would hide or turn what stands around them; line ends and tabs stay. */
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|[\ud800-\udfff]/gu;

/** A text whose control and direction characters are written out, so that they neither hide nor turn anything. */
export function show(text) {
  return String(text).replace(HIDDEN, (found) => `\\u{${found.codePointAt(0).toString(16)}}`);
}

/** A value as a text on one line. */
export function onOneLine(value) {
  const text = typeof value === "string" ? value : writeJson(value);
  return show(text ?? "").replaceAll("\n", "↵ ");
}

/** The beginning of a text, up to `most` characters. */
export function cut(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

// Texts of models and tools, made safe to look at.

import { writeJson } from "./json.js";

/** Control and direction characters, which would hide or turn what stands around them; line ends and tabs stay. So do
 *  joiners between two letters of scripts that are written with them (Arabic to Mongolian), or within an emoji. */
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|[\ud800-\udfff]|(?<![\u0600-\u1cff\ufe0f\u{1f000}-\u{1faff}\u2190-\u2bff])[\u200c\u200d]|[\u200c\u200d](?![\u0600-\u1cff\u{1f000}-\u{1faff}\u2190-\u2bff])/gu;

/** A text whose control and direction characters are written out, so that they neither hide nor turn anything. */
export function show(text) {
  return String(text).replace(HIDDEN, (found) => `\\u{${found.codePointAt(0).toString(16)}}`);
}

/** A value as a text on one line. */
export function onOneLine(value) {
  const text = typeof value === "string" ? value : writeJson(value);
  return show(text ?? "").replaceAll("\n", "↵ ");
}

/** The beginning of a text, up to `most` characters; one of two halves, such as 👍, is not cut in two. */
export function beginning(text, most) {
  const isHalf = text.length > most && /[\ud800-\udbff]/.test(text[most - 1] ?? "");
  return text.slice(0, isHalf ? most - 1 : most);
}

/** The same, with a mark where something is left out. */
export function cut(text, most) {
  return text.length <= most ? text : `${beginning(text, most - 1)}…`;
}

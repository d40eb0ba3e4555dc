// Texts of strangers on a page: always as text, with what cannot be seen made visible, and long ones cut at first.

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const SHORT = 1200;

/** An element with a class and children; texts among them are texts, whatever they look like. */
export function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

/** A value as a block of text: a text as it is, anything else as JSON. Of a long one the beginning, and a button. */
export function block(value) {
  const text = show(typeof value === "string" ? value : JSON.stringify(value, null, 2));
  if (text.length <= SHORT) return element("pre", "value", text);
  const made = element("pre", "value", `${text.slice(0, SHORT)}…`);
  const more = element("button", "more", `all ${text.length.toLocaleString("en")} characters`);
  more.type = "button";
  more.addEventListener("click", () => {
    made.textContent = text;
    more.remove();
  });
  return element("div", "", made, more);
}

/** A text whose control and direction characters are written out, so that they neither hide nor turn anything. */
export function show(text) {
  return text.replace(HIDDEN, (found) => `\\u{${found.codePointAt(0).toString(16)}}`);
}

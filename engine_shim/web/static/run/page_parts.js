// Whether an exported page is as it was written: its elements, one by one, against the digest that was written with them.

import { parseJson, writeJson } from "../kit/json.js";
import { language, t } from "../kit/words.js";
import { sha256, toHex } from "../proof/sha256.js";

/** The elements in the order of their digest, as `run_page.py` wrote them; `held` is the id of that which has the data. */
const partsOf = (held) => ["meta[charset]", "meta[http-equiv]", "meta[name=viewport]", "html[lang=en] > body > p#unchecked", "noscript", "#guard", "title", "#style", `#${held}`, "#page"];

/** The digest of the page as it was read, and the one that was written: {found, written}. */
function readDigests(held) {
  const told = [describeDocument(), ...partsOf(held).map((each) => describePart(document.querySelector(each)))];
  return { found: toHex(sha256(new TextEncoder().encode(writeJson(told)))), written: document.querySelector("meta[name=digest]")?.content ?? "" };
}

/** What a parser made of that which stands around the elements: the document's kind, and no text beside them. */
function describeDocument() {
  const beside = [...document.body.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data.trim());
  return `${document.doctype?.name} ${document.compatMode}${beside.join("")}`;
}

function describePart(element) {
  if (element === null) return null;
  const attributes = [...element.attributes].map(({ name, value }) => [name, value]).sort(([a], [b]) => (a < b ? -1 : 1));
  return [element.localName, attributes, element.textContent];
}

/** Show what an exported page holds: `draw(box, text, isAsWritten)` puts it into an element. */
export function openExported(held, draw) {
  const { found, written } = readDigests(held);
  language();
  const box = Object.assign(document.createElement("div"), { id: "run" });
  draw(box, readHeldText(held), found === written);
  for (const each of document.querySelectorAll("#unchecked, noscript")) each.remove();
  document.body.prepend(box);
  document.documentElement.dataset.shown = "yes";
  if (found !== written) tellDamage(t("its digest is another one")); // said twice, since either saying may be what was hit
}

/** The text that the page holds, byte for byte. Of one whose writing is damaged all that can be made out, in which the damage
 *  is found by hashes. */
function readHeldText(held) {
  const written = document.getElementById(held)?.textContent ?? "";
  try {
    const text = parseJson(written);
    if (typeof text === "string") return text;
  } catch {
    // it is made out below
  }
  return written.replace(/^"|"$/g, "").replace(/\\(?:u([0-9a-fA-F]{4})|(.))/g, (whole, code, sign) => (code ? String.fromCharCode(parseInt(code, 16)) : (SIGNS[sign] ?? sign)));
}

const SIGNS = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" };

// The seal of a run in words: by which key it is sealed, and whether that was checked. Pure.

import { t } from "../kit/words.js";

const SAID = [
  [/^sealed by (.*), not checked: no key here$/s, "sealed by {key}, not checked: no key here"],
  [/^signed by (.*), not checked: install agent-core\[evidence\]$/s, "signed by {key}, not checked: install agent-core[evidence]"],
  [/^sealed by (.*), there by (.*)$/s, "sealed by {key}, there by {time}"],
  [/^sealed by (.*), which does not hold$/s, "sealed by {key}, which does not hold"],
  [/^sealed by (.*), which names no store$/s, "sealed by {key}, which names no store"],
  [/^sealed by (.*)$/s, "sealed by {key}"],
];

/** What the server says of a seal, in the language of the page. */
export function sayWhatServerSays(seal) {
  for (const [form, text] of SAID) {
    const found = form.exec(seal);
    if (found) return t(text, { key: found[1], time: found[2] });
  }
  return t(seal);
}

/** What a page without keys can say: `kid` is the key that the last seal names, null without a seal. */
export const sayUnchecked = (kid) => (kid === null ? t("not sealed") : t("sealed by {key}, not checked: no key here", { key: kid }));

/** Whether the server found that the seal is not the run's. */
export const isBroken = (seal) => seal.endsWith(", which does not hold");

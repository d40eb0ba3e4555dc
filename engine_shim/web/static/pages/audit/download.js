// Files that the browser saves: made here, or read from the server with the user's token.

import { ask, LONG_S } from "../../kit/api.js";

/** Save a text as a file. */
export function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const anchor = Object.assign(document.createElement("a"), { href: url, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Save what the server has of a run: its page, or its journal. */
export async function saveRun(run, kind) {
  const [ending, type] = kind === "page" ? ["html", "text/html"] : ["jsonl", "application/jsonl"];
  const { text } = await ask(`runs/${encodeURIComponent(run)}/${kind}`, { as: "text", limit: LONG_S });
  save(`${run.replace(/[^\w.-]/g, "_")}.${ending}`, text, type);
}

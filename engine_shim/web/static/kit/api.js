// The HTTP API of the server that the page comes from.

import { parseJson, writeJson } from "./json.js";
import { Problem } from "./problem.js";
import { number, t } from "./words.js";

const KEY = "agent-core.token";
const SIGNED_OUT = "signedout";
const LIMIT_S = 30;
/** What waits for a tool, a whole run's records or another server may take so long. */
export const LONG_S = 600;

/** Where the API is. */
export const ROOT = new URL("..", document.baseURI);

let unkept = null;

/** The token that this tab signed in with. A page without storage keeps it until it is closed. */
export const token = {
  get: () => trying(() => sessionStorage.getItem(KEY)) ?? unkept,
  set: (value) => {
    unkept = value;
    trying(() => sessionStorage.setItem(KEY, value));
  },
  forget: () => {
    unkept = null;
    trying(() => sessionStorage.removeItem(KEY));
  },
};

function trying(work) {
  try {
    return work();
  } catch {
    return null;
  }
}

/** Call `listener` when the server refuses the token of this tab; gives what ends that. */
export function onSignedOut(listener) {
  addEventListener(SIGNED_OUT, listener);
  return () => removeEventListener(SIGNED_OUT, listener);
}

/** Whether an error may pass by itself: a server that is away, busy or about to end. */
export const isPassing = (error) => error instanceof Problem && (error.status === 0 || error.status === 429 || error.status >= 500);

/** Ask the API: `path` without a leading slash. The answer's JSON, or with `as: "text"` its text with the response.
 *  Problem for what it refuses; a Problem of status 0 when it cannot be reached, or has not answered in `limit` seconds. */
export async function ask(path, { method, body, headers = {}, signal, as = "json", limit = LIMIT_S } = {}) {
  const wanted = method ?? (body === undefined ? "GET" : "POST");
  const timeout = AbortSignal.timeout(limit * 1000);
  try {
    const response = await send(path, { method: wanted, body, headers, signal: signal ? AbortSignal.any([signal, timeout]) : timeout });
    if (as === "text") return { text: await readText(response), response };
    return response.status === 204 ? null : readAnswer(await response.text());
  } catch (error) {
    if (timeout.aborted && !signal?.aborted && !(error instanceof Problem)) throw new Problem(0, { kind: "timeout", detail: describeTimeout(limit, wanted) });
    throw error instanceof TypeError ? unreachable() : error; // the connection broke in the middle of the answer
  }
}

const unreachable = () => new Problem(0, { detail: t("The server cannot be reached.") });

function describeTimeout(limit, method) {
  const seconds = number(limit);
  return method === "GET"
    ? t("The server has not answered within {n} seconds. It may be busy or stopped: check whether it runs, and try again.", { n: seconds })
    : t("The server has not answered within {n} seconds. It may have done what you asked all the same: check before you ask again.", { n: seconds });
}

/** The text of an answer as it was sent: bytes that are no text, or a mark before it, are not passed over. */
async function readText(response) {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await response.arrayBuffer());
}

/** The address of a path of the API, with its query. */
export function address(path, query = {}) {
  const url = new URL(path, ROOT);
  for (const [name, value] of Object.entries(query))
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== null && each !== undefined && each !== "") url.searchParams.append(name, each);
  return url.href;
}

async function send(path, { method, body, headers, signal }) {
  const all = { ...headers };
  if (body !== undefined) all["Content-Type"] = "application/json";
  if (token.get()) all.Authorization = `Bearer ${token.get()}`;
  let response;
  try {
    const payload = body === undefined ? undefined : writeJson(body);
    response = await fetch(new URL(path, ROOT), { method, body: payload, headers: all, signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError" || error.name === "TimeoutError") throw error;
    throw unreachable();
  }
  if (response.ok) return response;
  if (response.status === 401 && path !== "me") {
    dispatchEvent(new Event(SIGNED_OUT));
    throw new Problem(401, { detail: t("The server does not know this token any more: sign in, and try again.") });
  }
  throw new Problem(response.status, await readProblem(response));
}

/** The problem details of an answer; of one that a proxy gave, that it did. */
async function readProblem(response) {
  try {
    return parseJson(await response.text()) ?? {};
  } catch {
    return foreign();
  }
}

function readAnswer(text) {
  try {
    return parseJson(text);
  } catch {
    throw new Problem(0, foreign());
  }
}

const foreign = () => ({ detail: t("Another program than agent-core has answered, such as a proxy that asks for a sign-in: load the page again.") });

export { Problem };

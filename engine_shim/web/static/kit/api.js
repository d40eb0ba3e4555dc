// The HTTP API of the server that the page comes from.

import { parseJson, writeJson } from "./json.js";
import { Problem } from "./problem.js";

const KEY = "agent-core.token";
const ROOT = new URL("..", document.baseURI);
const PAUSE_MS = [500, 1000, 2000, 5000];
/** How long to wait before a broken stream is asked for again; the last for every further time. */
const SIGNED_OUT = "signedout";

/** The token that this tab signed in with. */
export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

/** Call `listener` when the server refuses the token of this tab; gives what ends that. */
export function onSignedOut(listener) {
  addEventListener(SIGNED_OUT, listener);
  return () => removeEventListener(SIGNED_OUT, listener);
}

/** Whether an error may pass by itself: a server that is away, busy or about to end. */
export const isPassing = (error) => error instanceof Problem && (error.status === 0 || error.status === 429 || error.status >= 500);

/** Ask the API: `path` without a leading slash. The answer's JSON, or with `as: "text"` its text with the response.
 *  Problem for what it refuses; a Problem of status 0 when it cannot be reached. */
export async function ask(path, { method, body, headers = {}, signal, as = "json" } = {}) {
  const response = await send(path, { method: method ?? (body === undefined ? "GET" : "POST"), body, headers, signal });
  if (as === "text") return { text: await response.text(), response };
  return response.status === 204 ? null : parseJson(await response.text());
}

/** The address of a path of the API, with its query. */
export function address(path, query = {}) {
  const url = new URL(path, ROOT);
  for (const [name, value] of Object.entries(query))
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== null && each !== undefined && each !== "") url.searchParams.append(name, each);
  return url.href;
}

/** Follow the events of a run until it ends or `signal` aborts: `onEvent({id, event, ...data})` for each, `onState` with
 *  true when the stream is there and false while it is sought again. */
export async function follow(path, { signal, onEvent, onState = () => {} }) {
  let last = null;
  for (let failures = 0; !signal.aborted; ) {
    try {
      const response = await send(path, { signal, headers: last === null ? {} : { "Last-Event-ID": last } });
      onState(true);
      for await (const event of readEvents(response.body)) {
        failures = 0;
        last = event.id ?? last;
        if (event.data) onEvent({ id: event.id, ...parseJson(event.data) });
      }
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && !isPassing(error)) throw error;
      onState(false);
      await pause(PAUSE_MS[Math.min(failures, PAUSE_MS.length - 1)], signal);
      failures += 1;
    }
  }
}

async function send(path, { method = "GET", body, headers = {}, signal }) {
  const all = { ...headers };
  if (body !== undefined) all["Content-Type"] = "application/json";
  if (token.get()) all.Authorization = `Bearer ${token.get()}`;
  let response;
  try {
    const payload = body === undefined ? undefined : writeJson(body);
    response = await fetch(new URL(path, ROOT), { method, body: payload, headers: all, signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "the server cannot be reached" });
  }
  if (response.ok) return response;
  if (response.status === 401 && path !== "me") dispatchEvent(new Event(SIGNED_OUT));
  throw new Problem(response.status, await readProblem(response));
}

/** The problem details of an answer; nothing of one that a proxy gave. */
async function readProblem(response) {
  try {
    return parseJson(await response.text()) ?? {};
  } catch {
    return {};
  }
}

/** The server-sent events of a body: {id, data}. */
async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) yield readFrame(frame);
  }
}

function readFrame(frame) {
  const found = { id: null, data: "" };
  for (const line of frame.split("\n")) {
    if (line.startsWith("id:")) found.id = line.slice(3).trim();
    else if (line.startsWith("data:")) found.data += line.slice(5).trimStart();
  }
  return found;
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

export { Problem };

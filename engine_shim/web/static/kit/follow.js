// follow(): the events of a run, as long as this tab is looked at; all tabs of a browser share one connection for them.

import { ROOT, token } from "./api.js";
import { parseJson } from "./json.js";
import { Problem } from "./problem.js";
import { RunStream } from "./run_stream.js";

/** Follow the events of a run until it ends or `signal` aborts: `onEvent({id, event, ...data})` for each, `onState` with
 *  true whenever the stream is there, and false while it is sought again. When it is there, what no record holds of an
 *  answer that is being written comes again from its beginning. A hidden tab follows nothing; what it missed comes when it
 *  is looked at again. Problem for a run that is refused. */
export async function follow(run, { signal, onEvent, onState = () => {} }) {
  for (let after = null; !signal.aborted; ) {
    await untilShown(signal);
    const told = await listen(run, after, signal, (each) => {
      if (each.kind === "open") onState(true);
      if (each.kind === "lost") onState(false);
      if (each.kind !== "event") return;
      after = each.id ?? after;
      if (each.data) onEvent({ id: each.id, ...parseJson(each.data) });
    });
    if (told.kind === "over") return;
    if (told.kind === "problem") throw new Problem(told.status, readBody(told.body));
  }
}

/** Resolves once the tab is looked at, or nobody follows any more. */
function untilShown(signal) {
  if (!document.hidden || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const look = () => document.hidden || done();
    const done = () => (document.removeEventListener("visibilitychange", look), resolve());
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", done, { once: true });
  });
}

/** What ends the listening to a run: {kind} is over, problem, hidden, aborted, or broken when the worker is of no use. */
function listen(run, after, signal, onTold) {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve({ kind: "aborted" });
    const end = (told) => {
      stop();
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", abort);
      resolve(told);
    };
    const look = () => document.hidden && end({ kind: "hidden" });
    const abort = () => end({ kind: "aborted" });
    const stop = begin(run, after, (told) => (["over", "problem", "broken"].includes(told.kind) ? end(told) : onTold(told)));
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", abort);
    return undefined;
  });
}

/** Begin to follow by the worker, or where there is none by this tab itself; gives what ends that. */
function begin(run, after, tell) {
  const worker = findWorker();
  if (worker) return worker.follow(run, after, tell);
  const follower = { run, after, tell };
  const stream = (ownStreams[token.get() ?? ""] ??= new RunStream(ROOT.href, token.get()));
  stream.add(follower);
  return () => stream.remove(follower);
}

const ownStreams = {};
let worker = null;
let isBroken = typeof SharedWorker === "undefined";

function findWorker() {
  if (isBroken) return null;
  try {
    worker ??= new Worked();
    return worker;
  } catch {
    isBroken = true;
    return null;
  }
}

/** The followers of this tab, served by the worker of all tabs. */
class Worked {
  #port;
  #tellers = new Map();
  #last = 0;

  constructor() {
    const shared = new SharedWorker(new URL("static/kit/stream_worker.js", document.baseURI), { type: "module", name: "agent-core" });
    shared.onerror = () => {
      isBroken = true;
      for (const tell of [...this.#tellers.values()]) tell({ kind: "broken" });
    };
    this.#port = shared.port;
    this.#port.onmessage = ({ data: { number, ...told } }) => this.#tellers.get(number)?.(told);
  }

  follow(run, after, tell) {
    const number = (this.#last += 1);
    this.#tellers.set(number, tell);
    this.#port.postMessage({ kind: "follow", number, root: ROOT.href, token: token.get(), run, after });
    return () => {
      this.#tellers.delete(number);
      this.#port.postMessage({ kind: "stop", number });
    };
  }
}

function readBody(text) {
  try {
    return parseJson(text) ?? {};
  } catch {
    return {};
  }
}

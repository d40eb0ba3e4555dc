// RunStream: the events of several runs by one connection to the server, which is sought again when it is lost. It runs in
// the worker that all tabs of a browser share, and in a tab of a browser without such workers.

const PAUSE_MS = [500, 1000, 2000, 5000];
/** How long to wait before a lost connection is sought again; the last for every further time. */
const TOGETHER_MS = 30;
/** Who begins to follow a run within this time shares a connection at once. */
const SILENCE_MS = 45_000;
/** A server says every 15 seconds at least that it is still there. */

/** The connection for one token. Each follower is {run, after, tell}: `tell` gets {kind: "open"}, {kind: "event", id, data},
 *  {kind: "lost"}, {kind: "over"} when nothing more comes, and {kind: "problem", status, body} when the run is refused. */
export class RunStream {
  #root;
  #token;
  #followers = new Set();
  #control = null;
  #timer = null;
  #failures = 0;

  constructor(root, token) {
    this.#root = root;
    this.#token = token;
  }

  /** Follow one more run: the connection begins anew, with all of them, each from where it has come. */
  add(follower) {
    this.#followers.add(follower);
    this.#openIn(TOGETHER_MS);
  }

  /** Follow a run no longer; without any there is no connection. */
  remove(follower) {
    this.#followers.delete(follower);
    if (this.#followers.size > 0) return;
    clearTimeout(this.#timer);
    this.#control?.abort();
    this.#control = null;
  }

  #openIn(ms) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#open(), ms);
  }

  async #open() {
    this.#control?.abort();
    const control = (this.#control = new AbortController());
    const followers = [...this.#followers];
    try {
      await this.#read(followers, control);
    } catch {
      // it is lost: told below
    }
    if (this.#control !== control || this.#followers.size === 0) return; // another one has taken its place, or is not needed
    for (const follower of this.#followers) follower.tell({ kind: "lost" });
    this.#openIn(PAUSE_MS[Math.min(this.#failures, PAUSE_MS.length - 1)]);
    this.#failures += 1;
  }

  async #read(followers, control) {
    const watch = new Watch(control);
    try {
      const response = await fetch(this.#address(followers), { headers: this.#token ? { Authorization: `Bearer ${this.#token}` } : {}, signal: control.signal, cache: "no-store" });
      if (!response.ok) return await this.#refuse(followers, response);
      for (const each of followers) each.tell({ kind: "open" });
      for await (const event of readEvents(response.body, watch)) this.#note(followers[event.of], event);
    } finally {
      watch.end();
    }
  }

  /** A refusal that no further try mends ends all followers. */
  async #refuse(followers, response) {
    const { status } = response;
    if (status === 429 || status >= 500) return;
    const body = await response.text();
    for (const each of followers) this.#end(each, { kind: "problem", status, body });
  }

  #note(follower, { event, id, data }) {
    this.#failures = 0;
    if (!this.#followers.has(follower)) return;
    if (event === "over") return this.#end(follower, { kind: "over" });
    if (event === "missing") return this.#end(follower, { kind: "problem", status: 404, body: data });
    follower.after = id ?? follower.after;
    follower.tell({ kind: "event", id, data });
  }

  #end(follower, told) {
    this.remove(follower);
    follower.tell(told);
  }

  #address(followers) {
    const url = new URL("events", this.#root);
    for (const { run, after } of followers) {
      url.searchParams.append("run", run);
      url.searchParams.append("after", after ?? "");
    }
    return url;
  }
}

/** Ends a connection on which nothing was heard for too long. */
class Watch {
  #control;
  #timer = null;

  constructor(control) {
    this.#control = control;
    this.hear();
  }

  hear() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#control.abort(), SILENCE_MS);
  }

  end() {
    clearTimeout(this.#timer);
  }
}

/** The server-sent events of a body: {of, event, id, data}; `of` says which of the runs that were asked for one is of. */
async function* readEvents(body, watch) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    watch.hear();
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) if (!frame.startsWith(":")) yield readFrame(frame);
  }
}

function readFrame(frame) {
  const found = { of: 0, event: "", id: null, data: "" };
  for (const line of frame.split("\n")) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (name === "of") found.of = Number(value);
    else if (name === "data") found.data += value;
    else if (name === "event" || name === "id") found[name] = value;
  }
  return found;
}

// A run as its records come in: read once, then followed.

import { useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { ask, isPassing, LONG_S } from "../kit/api.js";
import { follow } from "../kit/follow.js";
import { readJournal } from "../proof/journal.js";

const PAUSE_MS = 60;
const AGAIN_MS = [1000, 2000, 5000];
/** How long to wait before a run is looked at again; the last for every further time. */
const NOTHING = { rows: [], text: "", faults: [], position: 0, view: null, error: null, connected: true, deltas: new Map() };

/** A run of the server: {rows, text, faults, view, error, connected, deltas, refresh}. While the server is away for now,
 *  `connected` is false, and what was read stays.
 *
 *  `text` is the journal as it was sent, `view` the run as the API shows it, `deltas` what a model has written so far of the
 *  answer of a step, by strand.
 */
export function useLiveRun(run) {
  const [state, setState] = useState(NOTHING);
  const reader = useRef(null);
  useEffect(() => {
    setState(NOTHING);
    reader.current = new LiveReader(run, setState);
    reader.current.start();
    return () => reader.current.stop();
  }, [run]);
  const refresh = useMemo(() => () => reader.current?.start(), []);
  return { ...state, refresh };
}

class LiveReader {
  #run;
  #path;
  #publish;
  #control = new AbortController();
  #state = NOTHING;
  #timer = null;
  #reading = null;
  #again = false;
  #isAway = false;
  #isFollowing = false;

  constructor(run, publish) {
    this.#run = run;
    this.#path = `runs/${encodeURIComponent(run)}`;
    this.#publish = publish;
  }

  /** Read what is new, and follow the run as long as more may come of it. */
  async start() {
    if (this.#isFollowing) return this.refresh();
    this.#isFollowing = true;
    await this.refresh();
    for (let failures = 0; this.#goesOn(); failures = this.#isAway ? failures + 1 : 0) {
      if (!this.#isAway) await this.#follow();
      if (!this.#goesOn()) break;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS[Math.min(failures, AGAIN_MS.length - 1)]));
      await this.refresh();
    }
    this.#isFollowing = false;
    return undefined;
  }

  #goesOn() {
    return !this.#control.signal.aborted && (this.#isAway || (this.#state.error === null && isOpen(this.#state.view)));
  }

  async #follow() {
    try {
      await follow(this.#run, {
        signal: this.#control.signal,
        onEvent: (event) => this.#note(event),
        onState: (connected) => this.#set(connected ? { connected, deltas: new Map() } : { connected }),
      });
    } catch (error) {
      if (!mayPass(error)) this.#set({ error });
    }
    await this.refresh();
  }

  stop() {
    clearTimeout(this.#timer);
    this.#control.abort();
  }

  /** Read what is new. While that is under way, it is done once more at its end. */
  async refresh() {
    if (this.#reading) {
      this.#again = true;
      return this.#reading;
    }
    this.#reading = this.#read().finally(() => (this.#reading = null));
    await this.#reading;
    if (this.#again && !this.#control.signal.aborted) {
      this.#again = false;
      await this.refresh();
    }
  }

  async #read() {
    const { signal } = this.#control;
    try {
      const viewed = ask(`${this.#path}?nodes=true`, { signal }).catch((error) => ([404, 409].includes(error.status) ? null : Promise.reject(error)));
      viewed.catch(() => {}); // it is told below, after what can be read without it
      const tail = await ask(`${this.#path}/journal?after=${this.#state.position}`, { signal, as: "text", limit: LONG_S });
      const found = readJournal(tail.text);
      const position = Number(tail.response.headers.get("Journal-Position") ?? this.#state.position);
      const more = tail.text === "" ? {} : { rows: [...this.#state.rows, ...found.rows], text: this.#state.text + tail.text, faults: [...this.#state.faults, ...found.faults] };
      const deltas = new Map([...this.#state.deltas].filter(([strand]) => !found.rows.some((row) => row.strand === strand && row.record.kind === "answered")));
      this.#set({ position, deltas, ...more });
      this.#set({ view: await viewed, error: null, connected: true });
      this.#isAway = false;
    } catch (error) {
      if (signal.aborted) return;
      this.#isAway = mayPass(error);
      this.#set(this.#isAway && this.#state.rows.length > 0 ? { connected: false } : { error });
    }
  }

  #note(event) {
    if (event.event === "answer_delta") {
      const deltas = new Map(this.#state.deltas);
      deltas.set(event.strand, (deltas.get(event.strand) ?? "") + (event.text ?? event.delta ?? ""));
      this.#set({ deltas });
    } else if (event.event === "answer_discarded") {
      const deltas = new Map(this.#state.deltas);
      deltas.delete(event.strand);
      this.#set({ deltas });
    } else if (event.event !== "thought_delta" && this.#timer === null) {
      this.#timer = setTimeout(() => ((this.#timer = null), this.refresh()), PAUSE_MS);
    }
  }

  #set(change) {
    if (this.#control.signal.aborted) return;
    this.#state = { ...this.#state, ...change };
    this.#publish(this.#state);
  }
}

/** Whether the server may answer later: it is away, or its user has to sign in again. */
const mayPass = (error) => isPassing(error) || error.status === 401;

/** Whether more may come of a run: one that waits or is paused goes on when somebody says so. */
const isOpen = (view) => view !== null && ["pending", "running", "waiting", "paused"].includes(view.status);

// A run as its records come in: read once, then followed.

import { useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { ask, follow } from "../kit/api.js";
import { readJournal } from "../proof/journal.js";

const PAUSE_MS = 60;
const NOTHING = { rows: [], text: "", faults: [], position: 0, view: null, error: null, connected: true, deltas: new Map() };

/** A run of the server: {rows, text, faults, view, error, connected, deltas, refresh}.
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
  const refresh = useMemo(() => () => reader.current?.refresh(), []);
  return { ...state, refresh };
}

class LiveReader {
  #path;
  #publish;
  #control = new AbortController();
  #state = NOTHING;
  #timer = null;
  #reading = null;
  #again = false;

  constructor(run, publish) {
    this.#path = `runs/${encodeURIComponent(run)}`;
    this.#publish = publish;
  }

  async start() {
    await this.refresh();
    while (!this.#control.signal.aborted && this.#state.error === null && isOpen(this.#state.view)) {
      try {
        await follow(`${this.#path}/events`, {
          signal: this.#control.signal,
          onEvent: (event) => this.#note(event),
          onState: (connected) => this.#set({ connected }),
        });
      } catch (error) {
        this.#set({ error });
      }
      await this.refresh();
      if (isOpen(this.#state.view)) await new Promise((resolve) => setTimeout(resolve, 1000));
    }
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
      const viewed = ask(this.#path, { signal }).catch((error) => (error.status === 409 ? null : Promise.reject(error)));
      viewed.catch(() => {});  // it is told below, after what can be read without it
      const tail = await ask(`${this.#path}/journal?after=${this.#state.position}`, { signal, as: "text" });
      const found = readJournal(tail.text);
      const position = Number(tail.response.headers.get("Journal-Position") ?? this.#state.position);
      const more = tail.text === "" ? {} : { rows: [...this.#state.rows, ...found.rows], text: this.#state.text + tail.text, faults: [...this.#state.faults, ...found.faults] };
      const deltas = new Map([...this.#state.deltas].filter(([strand]) => !found.rows.some((row) => row.strand === strand && row.record.kind === "answered")));
      this.#set({ position, deltas, ...more });
      this.#set({ view: await viewed, error: null });
    } catch (error) {
      if (!signal.aborted) this.#set({ error });
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
    } else if (this.#timer === null) {
      this.#timer = setTimeout(() => ((this.#timer = null), this.refresh()), PAUSE_MS);
    }
  }

  #set(change) {
    if (this.#control.signal.aborted) return;
    this.#state = { ...this.#state, ...change };
    this.#publish(this.#state);
  }
}

/** Whether more may come of a run: one that waits or is paused goes on when somebody says so. */
const isOpen = (view) => view !== null && ["pending", "running", "waiting", "paused"].includes(view.status);

// useConversation(): the turns of one conversation, those that are stored and those that are under way.

import { useEffect, useRef, useState } from "../../vendor/preact.js";
import { ask, Problem } from "../../kit/api.js";
import { follow } from "../../kit/follow.js";
import { go, link } from "../../kit/router.js";
import { readHistory } from "./history.js";
import { keepRecent, noteRecent, readRecent } from "./recent.js";
import { addEvent, endTurn, newTurn } from "./turn.js";

const TRIES = 20;
const TRY_MS = 150;

/** {turns, agent, error, isLoaded, isBusy, send, showSteps, isConnected}. `send(message, {agent, limits})` begins a turn. */
export function useConversation(id, onChange) {
  const [state, setState] = useState({ id: null, turns: [], agent: null, error: null, isLoaded: true, isConnected: true });
  const begun = useRef(null);
  const streams = useRef(new AbortController());
  const patch = (change) => setState((before) => ({ ...before, ...change(before) }));
  const patchTurn = (trace, change) => patch((before) => ({ turns: before.turns.map((turn) => (turn.trace === trace ? change(turn) : turn)) }));
  useEffect(() => () => streams.current.abort(), []);

  useEffect(() => {
    if (id !== undefined && id === begun.current) return undefined;
    begun.current = null;
    streams.current.abort();
    streams.current = new AbortController();
    const { signal } = streams.current;
    setState({ id: id ?? null, turns: [], agent: null, error: null, isLoaded: id === undefined, isConnected: true });
    if (id !== undefined) load(id, signal).catch((error) => signal.aborted || patch(() => ({ error, isLoaded: true })));
    return undefined;
  }, [id]);

  async function load(id, signal) {
    const kept = readRecent().find((each) => each.id === id);
    const turns = readHistory(await readMessages(id, kept, signal));
    const open = kept?.open && !turns.some((turn) => turn.trace === kept.open.trace) ? kept.open : null;
    const last = open?.trace ?? turns[turns.length - 1]?.trace;
    const agent = kept?.agent ?? (last ? (await ask(`runs/${encodeURIComponent(last)}`, { signal })).agent : null);
    if (signal.aborted) return;
    patch(() => ({ turns: open ? [...turns, newTurn(open)] : turns, agent, isLoaded: true }));
    if (open) watch(id, open.trace, signal);
  }

  /** Follow a turn until it ends. */
  async function watch(id, trace, signal) {
    const onEvent = (event) => patchTurn(trace, (turn) => addEvent(turn, event));
    const onState = (isConnected) => {
      patch(() => ({ isConnected }));
      if (isConnected) patchTurn(trace, (turn) => ({ ...turn, draft: "" }));
    };
    try {
      await followSoon(trace, { signal, onEvent, onState });
      if (signal.aborted) return;
      const { status } = await ask(`runs/${encodeURIComponent(trace)}`, { signal });
      patchTurn(trace, (turn) => endTurn(turn, status));
      if (status === "completed") noteRecent(id, { open: null, isStored: true }); // any other turn is in no stored conversation
      onChange();
    } catch (error) {
      if (!signal.aborted) patch((before) => ({ error, turns: before.turns.map((turn) => (turn.trace === trace ? endTurn(turn, null) : turn)) }));
    }
  }

  async function send(message, { agent, limits }) {
    const { signal } = streams.current;
    const body = { message, agent, ...limits, ...(id === undefined ? {} : { conversation_id: id }) };
    const begin = await ask("agent/chat?wait=false", { body });
    const { conversation_id: conversation, trace_id: trace } = begin;
    keepRecent(conversation, { agent, last: message, at: new Date().toISOString(), open: { trace, message } });
    onChange();
    if (signal.aborted) return;
    patch((before) => ({ id: conversation, agent, error: null, turns: [...before.turns, newTurn({ trace, message })] }));
    begun.current = conversation;
    if (id === undefined) go(link(["chat", conversation]), { replace: true });
    watch(conversation, trace, signal);
  }

  /** Read what a stored turn did. */
  async function showSteps(trace) {
    const { signal } = streams.current;
    let told = newTurn({ trace, message: "" });
    await follow(trace, { signal, onEvent: (event) => (told = addEvent(told, event)) });
    patchTurn(trace, (turn) => ({ ...turn, items: told.items, usage: told.usage, isTold: true }));
  }

  const isBusy = state.turns.some((turn) => turn.status === "running" || turn.status === "waiting");
  return { ...state, isBusy, send, showSteps };
}

/** The stored messages of a conversation; none of one that this browser began and that no turn has completed in. */
async function readMessages(id, kept, signal) {
  if (kept?.open && !kept.isStored) return [];
  return (await ask(`agent/conversations/${encodeURIComponent(id)}`, { signal })).messages;
}

/** Follow the events of a turn that has only just begun: its run may not be there at once. */
async function followSoon(trace, options) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await follow(trace, options);
    } catch (error) {
      if (!(error instanceof Problem && error.status === 404) || tries === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, TRY_MS));
    }
  }
}

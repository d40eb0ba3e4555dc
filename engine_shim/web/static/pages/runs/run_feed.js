// useRuns(): the runs that fit filters, page by page, kept up to date while they are looked at.

import { useCallback, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js";
import { address, ask } from "../../kit/api.js";
import { asQuery } from "./filters.js";
import { findDoubtful, findNew, join, update } from "./merge.js";

const PAGE = 100;
const EVERY_MS = 2000;
const AT_ONCE = 8;
/** So many runs are asked for one by one in each round. */

const EMPTY = { runs: null, next: null, error: null, fresh: [], isCurrent: true };

/** The runs: {runs, next, fresh, error, isBusy, isCurrent, loadMore, showFresh}.
 *
 *  `runs` is null until the first answer; after a change of the filters the old ones stay until the new ones are there, and
 *  `isCurrent` is false. `fresh` are new ones that are not shown yet, because `mayMove()` said that the list is being read.
 */
export function useRuns(filters, mayMove) {
  const key = JSON.stringify(filters);
  const began = useMemo(() => Date.now(), [key]);
  const [state, setState] = useState(EMPTY);
  const [isBusy, setBusy] = useState(false);
  const latest = useRef(state);
  latest.current = state;
  const patch = (change) => setState((before) => ({ ...before, ...change(before) }));
  const askPage = useCallback((more, signal) => ask(address("runs", { ...asQuery(filters, began), limit: PAGE, ...more }), { signal }), [key]);

  useEffect(() => {
    const control = new AbortController();
    patch(() => ({ isCurrent: false }));
    const show = ({ runs, next }) => setState({ ...EMPTY, runs, next: next ?? null });
    const fail = (error) => patch(() => ({ error, isCurrent: true }));
    const start = () => askPage({}, control.signal).then(show, (error) => control.signal.aborted || fail(error));
    start();
    const stop = repeat(() => (latest.current.runs ? refresh(control.signal) : start()), control.signal);
    return () => (control.abort(), stop());
  }, [key]);

  const round = useRef(0);
  async function refresh(signal) {
    try {
      const { runs: told } = await askPage({}, signal);
      const doubtful = findDoubtful(latest.current.runs, told, (round.current += AT_ONCE), AT_ONCE);
      const single = await Promise.all(doubtful.map((run) => askStatus(run, signal)));
      if (!signal.aborted) patch((before) => merge(before, told, single, mayMove()));
    } catch (error) {
      if (!signal.aborted) patch(() => ({ error }));
    }
  }

  const loadMore = async () => {
    const { next } = latest.current;
    if (!next || isBusy) return;
    setBusy(true);
    try {
      const answer = await askPage({ before: next });
      patch((before) => (before.next === next ? { runs: join(before.runs, answer.runs), next: answer.next ?? null, error: null } : {}));
    } catch (error) {
      patch(() => ({ error }));
    } finally {
      setBusy(false);
    }
  };
  const showFresh = () => patch((before) => ({ runs: join(before.runs, before.fresh), fresh: [] }));
  return { ...state, isBusy, loadMore, showFresh };
}

function merge(before, told, single, mayMove) {
  const runs = update(update(before.runs, told), single);
  const last = before.next ? before.runs[before.runs.length - 1] : null;
  const fresh = findNew(runs, told).filter((run) => last === null || run.started_at >= last.started_at);
  return mayMove ? { runs: join(runs, fresh), fresh: [], error: null } : { runs, fresh, error: null };
}

/** The status of one run; as it was when it cannot be told. */
async function askStatus(run, signal) {
  try {
    const { status } = await ask(`runs/${encodeURIComponent(run.run_id)}`, { signal });
    return { ...run, status: run.status === "unfinished" && status === "running" ? run.status : status };
  } catch {
    return run;
  }
}

/** Do something again and again, each time after the last has ended, while the tab is looked at. */
export function repeat(work, signal, every = EVERY_MS) {
  let timer = null;
  const again = () => (timer = setTimeout(turn, every));
  const turn = async () => {
    if (!document.hidden) await work();
    if (!signal.aborted) again();
  };
  again();
  return () => clearTimeout(timer);
}

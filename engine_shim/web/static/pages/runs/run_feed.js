// useRuns(): the runs that fit filters, page by page, kept up to date while they are looked at.

import { useCallback, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js";
import { address, ask } from "../../kit/api.js";
import { writeJson } from "../../kit/json.js";
import { asQuery } from "./filters.js";
import { findDoubtful, findNew, join, update } from "./merge.js";

const PAGE = 100;
const EVERY_MS = 2000;
const AT_ONCE = 8;
/** So many runs are asked for one by one in each round. */

const EMPTY = { runs: null, next: null, error: null, moreError: null, fresh: [], gap: null, isCurrent: true };

/** The runs: {runs, next, fresh, error, moreError, isBusy, isCurrent, loadMore, showFresh}.
 *
 *  `runs` is null until the first answer; after a change of the filters the old ones stay until the new ones are there, and
 *  `isCurrent` is false. `error` is that of the first page, `moreError` that of a later one. `fresh` are new ones that are not shown yet, because `mayMove()` said that the list is being read.
 */
export function useRuns(filters, mayMove) {
  const key = writeJson(filters);
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
    let isThere = false; // before that, what is shown fits other filters
    const show = ({ runs, next }) => ((isThere = true), setState({ ...EMPTY, runs, next: next ?? null }));
    const fail = (error) => patch(() => ({ error, isCurrent: true }));
    const start = () => askPage({}, control.signal).then(show, (error) => control.signal.aborted || fail(error));
    start();
    const stop = repeat(() => (isThere ? refresh(control.signal) : start()), control.signal);
    return () => (control.abort(), stop());
  }, [key]);

  const round = useRef(0);
  async function refresh(signal) {
    try {
      const answer = await askPage({}, signal);
      const told = answer.runs;
      const doubtful = findDoubtful(latest.current.runs, told, (round.current += AT_ONCE), AT_ONCE);
      const single = await Promise.all(doubtful.map((run) => askStatus(run, signal)));
      if (!signal.aborted) patch((before) => ({ ...merge(before, answer, single, mayMove()), error: null }));
    } catch (error) {
      if (!signal.aborted) patch(() => ({ error }));
    }
  }

  const loadMore = async () => {
    const { next } = latest.current;
    if (!next || isBusy) return;
    setBusy(true);
    patch(() => ({ moreError: null }));
    try {
      const answer = await askPage({ before: next });
      patch((before) => (before.next === next ? { runs: join(before.runs, answer.runs), next: answer.next ?? null } : {}));
    } catch (moreError) {
      patch(() => ({ moreError }));
    } finally {
      setBusy(false);
    }
  };
  const showFresh = () => patch((before) => ({ ...addFresh(before.runs, before), fresh: [], gap: null }));
  return { ...state, isBusy, loadMore, showFresh };
}

/** What changes by a newer first page: the known runs, and the new ones, which are shown at once if the list may move. */
function merge(before, { runs: told, next }, single, mayMove) {
  const runs = update(update(before.runs, told), single);
  const last = before.next ? before.runs[before.runs.length - 1] : null;
  const fresh = findNew(runs, told).filter((run) => last === null || run.started_at >= last.started_at);
  const gap = next && fresh.length > 0 && fresh.length === told.length ? next : null;
  return mayMove ? { ...addFresh(runs, { fresh, gap }), fresh: [], gap: null } : { runs, fresh, gap };
}

/** The list with new runs in it. Where they leave a `gap` to the known ones, which more runs belong in, it begins anew. */
const addFresh = (runs, { fresh, gap }) => (gap ? { runs: fresh, next: gap } : { runs: join(runs, fresh) });

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

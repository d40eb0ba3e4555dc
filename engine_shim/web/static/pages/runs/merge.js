// The runs of a list, and what the server says of them later. Pure.

import { sameJson } from "../../kit/json.js";
import { OPEN } from "./filters.js";

/** Whether a run stands before another one in the list: the newest first. */
function isBefore(one, other) {
  if (one.started_at !== other.started_at) return one.started_at > other.started_at;
  return one.run_id > other.run_id;
}

/** Known runs with what is told of them anew; one that is told as it was stays the same object. */
export function update(known, told) {
  const found = new Map(told.map((run) => [run.run_id, run]));
  let isChanged = false;
  const runs = known.map((run) => {
    const news = { ...run, ...found.get(run.run_id) };
    if (sameJson(news, run)) return run;
    isChanged = true;
    return news;
  });
  return isChanged ? runs : known;
}

/** The runs of a newer answer that are not known. */
export function findNew(known, told) {
  const ids = new Set(known.map((run) => run.run_id));
  return told.filter((run) => !ids.has(run.run_id));
}

/** Both lists as one, each run in its place. */
export function join(known, more) {
  const fresh = findNew(known, more);
  if (fresh.length === 0) return known;
  return [...known, ...fresh].sort((one, other) => (isBefore(one, other) ? -1 : 1));
}

/** The shown runs that may have changed without being among those that were told: at most `most`, beginning at `from`. */
export function findDoubtful(known, told, from, most) {
  const ids = new Set(told.map((run) => run.run_id));
  const doubtful = known.filter((run) => OPEN.has(run.status) && !ids.has(run.run_id));
  const start = doubtful.length > most ? from % doubtful.length : 0;
  return [...doubtful.slice(start), ...doubtful.slice(0, start)].slice(0, most);
}

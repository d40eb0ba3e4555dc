// What the verification and the replay of a run come to, and a table of many. Pure.

import { writeJson } from "../../kit/json.js";
import { isBroken } from "../../run/seal.js";

/** The verdicts in the order of their weight: those that need somebody first. */
export const VERDICTS = ["damaged", "diverged", "unreadable", "not checked", "changed", "outlived", "inapplicable", "erased", "unfinished", "identical"];

const COLUMNS = ["run_id", "run_of", "status", "started_at", "verdict", "whole", "complete", "replay", "place", "changed_decisions", "decisions", "steps", "head", "count", "seal", "why"];

/** The row of a run: `verified` is the server's verdict, `replayed` what came of its replay. */
export function judgeRun(run, verified, replayed) {
  const bad = verified.first_bad;
  const isNewer = verified.contents === "newer";
  const isWhole = verified.ok || (!verified.complete && bad === null && !isNewer && !isBroken(verified.seal ?? ""));
  const decisions = replayed.decisions ?? [];
  return {
    ...about(run), verdict: isWhole ? replayed.outcome : isNewer ? "not checked" : "damaged", whole: isNewer ? null : isWhole, complete: verified.complete, replay: replayed.outcome,
    place: placeOf(isWhole ? null : bad) ?? placeOf(replayed.place ?? replayed.divergence), why: (isWhole ? replayed.why : verified.why) ?? "",
    changed_decisions: decisions.filter(({ recorded, now }) => recorded !== now).length, decisions: decisions.length,
    steps: replayed.steps, head: verified.head, count: verified.count, seal: verified.seal ?? null,
  };
}

/** The row of a run of which the server could not tell. */
export function failRun(run, error) {
  const nothing = { whole: null, complete: null, replay: null, place: null, changed_decisions: null, decisions: null, steps: null, head: null, count: null, seal: null };
  return { ...about(run), verdict: "not checked", ...nothing, why: error.message };
}

function about(run) {
  const runOf = run.agent || (run.version ? `${run.workflow}@${run.version}` : run.workflow);
  return { run_id: run.run_id, run_of: runOf, status: run.status, started_at: run.started_at };
}

const placeOf = (place) => (place && typeof place.strand === "string" ? `${place.strand}:${place.n}` : null);

/** How many runs have each verdict: [verdict, n], without those that none has. */
export function countVerdicts(rows) {
  return VERDICTS.map((verdict) => [verdict, rows.filter((row) => row.verdict === verdict).length]).filter(([, n]) => n > 0);
}

/** The rows as CSV (RFC 4180). A text that a spreadsheet would compute is quoted by an apostrophe. */
export function asCsv(rows) {
  const lines = [COLUMNS, ...rows.map((row) => COLUMNS.map((name) => row[name]))];
  return lines.map((line) => `${line.map(asCell).join(",")}\r\n`).join("");
}

function asCell(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The rows as JSON, with the policy that they were judged under. */
export function asJson(rows, policy) {
  const outcomes = Object.fromEntries(countVerdicts(rows));
  return `${writeJson({ policy, outcomes, runs: rows.map((row) => Object.fromEntries(COLUMNS.map((name) => [name, row[name]]))) }, 2)}\n`;
}

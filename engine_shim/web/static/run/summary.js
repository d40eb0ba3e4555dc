// What a run is on the whole, as far as its records say. Pure.

import { callsOf, isOpen } from "./steps.js";

/** The run in a few facts. `answer` is that of the agent that ended last, of `answers` in all. */
export function readSummary(rows, items) {
  const root = rows.find(({ record }) => record.kind === "run_started");
  const end = rows.findLast(({ strand, record }) => strand === root?.strand && record.kind === "run_finished");
  const started = root?.record ?? {};
  const answers = items.filter((item) => item.kind === "end" && (item.answer ?? "") !== "");
  return {
    name: started.definition?.name ?? started.definition?.id ?? started.agent?.name ?? "agent",
    workflow: started.definition?.id ?? null,
    version: started.definition?.version ?? null,
    definition: started.definition ?? null,
    agent: (started.turn ?? started.agent)?.name ?? null,
    inputs: started.external ?? lastQuestion(started.messages),
    forked: started.forked ?? null,
    startedAt: started.at ?? null,
    endedAt: end?.record.at ?? null,
    status: end?.record.status ?? (end ? (end.record.finish_reason === "final" ? "completed" : end.record.finish_reason) : items.flatMap(callsOf).some(isOpen) ? "waiting" : "running"),
    error: end?.record.error ?? null,
    answer: answers.at(-1)?.answer ?? null,
    answers: answers.length,
    ...totalUsage(rows),
  };
}

/** The calls that wait for a person, in a run that has not ended. */
export function openCalls(items) {
  return hasEnded(items) ? [] : items.flatMap(callsOf).filter((call) => isOpen(call) && call.waits);
}

/** The calls that wait for a time or a signal, in a run that has not ended. */
export function openWaits(items) {
  return hasEnded(items) ? [] : items.flatMap(callsOf).filter((call) => call.state === "awaiting");
}

const hasEnded = (items) => items.some((item) => item.kind === "end" && item.depth === 0 && item.node === null);

/** Each decision of a person, in their order: {tool, args, decision, by, at, message, strand, n}. */
export function readDecisions(items) {
  const ofCalls = items.flatMap(callsOf).flatMap((call) => call.decisions.map((each) => ({ ...each, tool: call.tool, args: each.args ?? call.args })));
  const ofRun = items.filter((item) => item.kind === "control").map(({ decision, by, at, strand, n }) => ({ decision, by, at, strand, n, tool: null, args: null, message: null }));
  return [...ofCalls, ...ofRun].sort((a, b) => (a.at ?? "").localeCompare(b.at ?? ""));
}

/** What each agent's run may use and has used: {strand, node, name, model, limits, used, end}. */
export function readBudgets(rows) {
  const found = new Map();
  for (const { strand, record } of rows) {
    if (record.kind === "run_started" && record.loop === "agent") found.set(strand, beginBudget(strand, record));
    const budget = found.get(strand) ?? found.get(strand.replace(/\/\d+\.\d+$/, ""));
    if (budget) spend(budget, record, strand === budget.strand);
  }
  return [...found.values()];
}

function beginBudget(strand, record) {
  const spent = record.spent ?? {};
  const used = {
    steps: spent.steps ?? 0,
    tool_calls: spent.tool_calls ?? 0,
    tokens: (spent.input_tokens ?? 0) + (spent.output_tokens ?? 0),
    cost: Number(spent.cost ?? 0),
    seconds: Number(spent.seconds ?? 0),
  };
  return { strand, model: record.config?.model ?? "", agent: record.agent?.name ?? null, limits: record.limits, used, end: null };
}

function spend(budget, record, isOwn) {
  const { used } = budget;
  if (record.kind === "asked" && record.ask === "model") used.steps += 1;
  if (record.kind === "asked" && record.ask === "tool") used.tool_calls += 1;
  if (record.kind === "answered") {
    const usage = record.usage ?? {};
    used.tokens += (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
    used.cost += usage.cost ?? 0;
    if (isOwn) used.seconds += record.seconds ?? 0;
  }
  if (record.kind === "run_finished" && isOwn) budget.end = record.finish_reason;
}

function totalUsage(rows) {
  const total = { tokensIn: 0, tokensOut: 0, cost: null, estimated: false, modelSeconds: 0, toolSeconds: 0, calls: 0 };
  for (const { record } of rows) {
    if (record.kind !== "answered") continue;
    if (record.reply === "said") {
      total.tokensIn += record.usage?.input_tokens ?? 0;
      total.tokensOut += record.usage?.output_tokens ?? 0;
      total.estimated ||= record.usage?.estimated === true;
      if ((record.usage?.cost ?? null) !== null) total.cost = (total.cost ?? 0) + record.usage.cost;
      total.modelSeconds += record.seconds;
    } else if (record.reply === "did" && record.usage === null) {
      total.toolSeconds += record.seconds;
      total.calls += 1;
    }
  }
  return total;
}

function lastQuestion(messages) {
  const asked = (messages ?? []).filter((each) => each.role === "user");
  return asked.length ? { message: asked.at(-1).content } : null;
}

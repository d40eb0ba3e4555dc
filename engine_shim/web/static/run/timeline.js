// What happened in a run, as a person reads it: one entry for each thing that was asked, answered, decided or said.

const REASONS = {
  awaiting_approval: "needs a person's decision",
  in_doubt: "may or may not have happened",
};

/** The entries of a run, in the order of its records: {strand, n, at, tone, title, seconds, note, parts}.
 *
 * `tone` is one of plain, ask, act, good, bad, wait; `parts` are [label, value] of what there is to read.
 */
export function readTimeline(rows) {
  const asked = new Map();
  const entries = [];
  for (const { strand, n, record } of rows) {
    const entry = readRecord(record, asked.get(strand));
    if (record.kind === "asked") asked.set(strand, record);
    if (entry !== null) entries.push({ strand, n, at: record.at ?? null, parts: [], note: "", seconds: null, ...entry });
  }
  return entries;
}

/** What the run is, as far as its records say. `answer` is that of the agent that ended last, of `answers` in all. */
export function readSummary(rows) {
  const root = rows.find(({ record }) => record.kind === "run_started");
  const end = rows.findLast(({ strand, record }) => strand === root?.strand && record.kind === "run_finished");
  const replies = rows.filter(({ record }) => record.kind === "answered" && record.reply === "said");
  const answers = rows.map(({ record }) => record.final_answer).filter((answer) => (answer ?? "") !== "");
  const started = root?.record ?? {};
  return {
    name: started.definition?.id ?? started.agent?.name ?? "agent",
    version: started.definition?.version ?? null,
    status: end?.record.status ?? end?.record.finish_reason ?? "not finished",
    startedAt: started.at ?? null,
    endedAt: end?.record.at ?? null,
    tokens: replies.reduce((sum, { record }) => sum + record.usage.input_tokens + record.usage.output_tokens, 0),
    cost: replies.reduce((sum, { record }) => (record.usage.cost === null ? sum : sum + record.usage.cost), 0),
    answer: answers.at(-1) ?? null,
    answers: answers.length,
  };
}

function readRecord(record, asked) {
  switch (record.kind) {
    case "run_started":
      return readStart(record);
    case "asked":
      return record.ask === "tool"
        ? { tone: "act", title: `calls ${record.tool}`, parts: [["arguments", record.args]] }
        : record.ask === "model"
          ? { tone: "ask", title: `asks ${record.model}`, note: `step ${record.step}` }
          : null;
    case "answered":
      return readAnswer(record, asked);
    case "decided":
      return readDecision(record);
    case "waiting":
      return {
        tone: "wait",
        title: record.tool ? `waits: ${record.tool} ${REASONS[record.reason] ?? record.reason}` : "waits",
        parts: present([["arguments", record.args], ["origins", record.origins]]),
      };
    case "resolved":
      return readResolution(record);
    case "cancelled":
      return { tone: "bad", title: "was cancelled", note: record.by ? `by ${record.by}` : "" };
    case "message":
      return { tone: "plain", title: `${record.by} adds a message`, parts: [["message", record.content]] };
    case "run_finished":
      return readEnd(record);
    case "sealed":
      return { tone: "plain", title: "is signed", note: record.kid ? `by the key ${record.kid}` : "" };
    default:
      return null;
  }
}

function readStart(record) {
  if (record.loop === "agent") {
    const { prompt, model, allowed_tools: tools } = record.config;
    const parts = present([["prompt", prompt], ["messages", record.messages], ["tools", tools], ["limits", record.limits]]);
    return { tone: "plain", title: `agent ${record.agent?.name ?? ""} begins`.replace("  ", " "), note: model, parts };
  }
  const parts = present([["inputs", record.external], ["definition", record.definition]]);
  return { tone: "plain", title: `workflow ${record.definition?.id ?? ""} begins`, parts };
}

function readAnswer(record, asked) {
  const { seconds } = record;
  if (record.reply === "said") {
    const tokens = `${record.usage.input_tokens} + ${record.usage.output_tokens} tokens`;
    return { tone: "ask", title: "the model replies", note: tokens, seconds, parts: [["reply", record.content]] };
  }
  if (record.reply === "did")
    return record.success
      ? { tone: "good", title: `${asked?.tool ?? "the call"} answers`, seconds, parts: [["output", record.output]] }
      : { tone: "bad", title: `${asked?.tool ?? "the call"} fails`, seconds, parts: present([["error", record.error]]) };
  if (record.reply === "failed")
    return { tone: "bad", title: `${asked?.tool ?? asked?.model ?? "it"} fails`, seconds, parts: [["error", record.message]] };
  return null;
}

function readDecision(record) {
  const parts = present([["thought", record.thought], ["plan", record.plan]]);
  const told = record.unreadable ?? record.refused;
  if (told) return { tone: "bad", title: `refused: ${told.kind ?? ""}`, parts: present([...parts, ["why", told.message]]) };
  const refused = (record.calls ?? []).filter((call) => call.verdict === "refuse");
  if (refused.length > 0) {
    const why = refused.map((call) => ["why", `${call.tool}: ${call.message ?? call.reason}`]);
    return { tone: "bad", title: `judge refuses ${refused.map((call) => call.tool).join(", ")}`, parts: [...parts, ...why] };
  }
  if (record.plan_step) {
    const { step, status } = record.plan_step;
    return { tone: status === "failed" ? "bad" : "plain", title: `step ${step} of the plan: ${status}`, parts };
  }
  const calls = (record.calls ?? []).map((call) => [`${call.tool}: ${call.verdict}`, call.origins ?? call.args]);
  if (record.limit) return { tone: "bad", title: `the limit is reached: ${record.limit}`, parts };
  if (record.final) return parts.length > 0 ? { tone: "plain", title: "the answer is accepted", parts } : null;
  return calls.length + parts.length > 0 ? { tone: "plain", title: "judge decides", parts: [...parts, ...calls] } : null;
}

function readResolution(record) {
  if (record.decision === "batch") return null;
  const bad = ["deny", "fail", "cancel"].includes(record.decision);
  const parts = present([["message", record.message], ["arguments", record.args]]);
  return { tone: bad ? "bad" : "wait", title: `${record.by ?? "somebody"} decides: ${record.decision}`, parts };
}

function readEnd(record) {
  const reason = record.status ?? record.finish_reason;
  const parts = present([["answer", record.final_answer], ["error", record.error], ["usage", record.usage]]);
  return { tone: ["completed", "final"].includes(reason) ? "good" : "bad", title: `ends: ${reason}`, parts };
}

const present = (parts) => parts.filter(([, value]) => value !== null && value !== undefined && value !== "");

// A run on one page: what it is, whether it is whole, and what happened, record by record.

import { readJournal, verifyJournal } from "./journal.js";
import { readSummary, readTimeline } from "./timeline.js";
import { block, element, show } from "./text.js";

const AT_ONCE = 300;
const MOST_FAULTS = 20;
const LONGEST_ANSWER = 1200;

/** Fill a page with the run of a journal file. */
export function showRun(page, text) {
  const journal = readJournal(text);
  const verdict = verifyJournal(journal);
  const bad = new Set(verdict.faults.map(({ strand, n }) => `${strand}:${n}`));
  page.append(showHead(journal), showVerdict(verdict), showTimeline(readTimeline(journal.rows), bad));
}

function showHead({ run, rows }) {
  const summary = readSummary(rows);
  const title = element("h1", "", show(summary.name), element("span", `status ${summary.status}`, show(summary.status)));
  const facts = [
    ["run", run],
    ["version", summary.version],
    ["began", summary.startedAt],
    ["ended", summary.endedAt],
    ["tokens", summary.tokens ? summary.tokens.toLocaleString("en") : null],
    ["cost", summary.cost ? `${summary.cost.toFixed(4)} USD` : null],
  ];
  const list = element("dl", "facts");
  for (const [name, value] of facts)
    if (value) list.append(element("div", "", element("dt", "", name), element("dd", "", show(String(value)))));
  const { answer, answers } = summary;
  return element("header", "", title, list, answer ? showPart(answers > 1 ? "last answer" : "answer", answer, LONGEST_ANSWER) : null);
}

function showVerdict({ ok, complete, head, count, faults }) {
  const text = ok
    ? `Whole: each of ${count.toLocaleString("en")} records follows from the one before it, and the end is there.`
    : faults.length > 0
      ? `Not whole: ${faults.length} ${faults.length === 1 ? "fault" : "faults"}.`
      : complete
        ? "Whole."
        : "Whole so far, and not finished.";
  const section = element("section", `verdict ${ok ? "good" : faults.length > 0 ? "bad" : "open"}`, element("p", "", text));
  for (const { strand, n, line, why } of faults.slice(0, MOST_FAULTS))
    section.append(element("p", "fault", show(line ? `line ${line}: ${why}` : `${strand}:${n}: ${why}`)));
  if (faults.length > MOST_FAULTS) section.append(element("p", "fault", `and ${(faults.length - MOST_FAULTS).toLocaleString("en")} more`));
  if (faults.length > 0) section.append(element("p", "hint", "Not everything below is what was written: do not rely on it."));
  else
    section.append(
      element("p", "head", "head ", element("code", "", head), `, count ${count.toLocaleString("en")}`),
      element("p", "hint", "This page has checked its records itself. Whoever rewrote all of them would get another head: compare it with the one that was kept elsewhere."),
    );
  section.setAttribute("role", "status");
  return section;
}

function showTimeline(entries, bad) {
  const list = element("ol", "timeline");
  const section = element("section", "", element("h2", "", "What happened"), list);
  showMore(section, list, entries, bad, 0);
  return section;
}

/** Show the next entries, and a button for those after them: a page of thousands would stand still. */
function showMore(section, list, entries, bad, from) {
  list.append(...entries.slice(from, from + AT_ONCE).map((entry) => showEntry(entry, bad)));
  if (entries.length <= from + AT_ONCE) return;
  const more = element("button", "more", `${(entries.length - from - AT_ONCE).toLocaleString("en")} more`);
  more.type = "button";
  more.addEventListener("click", () => {
    more.remove();
    showMore(section, list, entries, bad, from + AT_ONCE);
  });
  section.append(more);
}

function showEntry({ strand, n, at, tone, title, note, seconds, parts }, bad) {
  const time = at ? element("time", "", at.slice(11, 23)) : element("time", "", "");
  const isBad = bad.has(`${strand}:${n}`);
  const place = element("a", "place", show(`${strand}:${n}`));
  place.href = `#${encodeURIComponent(`${strand}:${n}`)}`;
  const head = element("div", "title", show(title));
  if (note) head.append(element("span", "note", show(note)));
  if (seconds !== null) head.append(element("span", "note", `${seconds.toFixed(3)} s`));
  const body = element("div", "body", head);
  if (isBad) body.append(element("p", "fault", "This record is not what was written."));
  for (const [label, value] of parts) body.append(showPart(label, value));
  const entry = element("li", `entry ${isBad ? "bad" : tone}`, time, body, place);
  entry.id = `${strand}:${n}`;
  return entry;
}

/** A part with its label: a text of up to `most` characters as it stands, a longer one folded. */
function showPart(label, value, most = 80) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (text.length <= most && (most > 80 || !text.includes("\n")))
    return element("p", "part", element("span", "label", show(label)), element("span", "value", show(text)));
  const made = element("details", "part", element("summary", "", show(label), element("span", "note", show(text.length > 80 ? `${text.slice(0, 80)}…` : text))));
  made.addEventListener("toggle", () => made.open && made.childElementCount === 1 && made.append(block(value)));
  return made;
}

// A run on one page: what it is, whether it is whole, and what happened, record by record.

import { readJournal, verifyJournal } from "./journal.js";
import { readSummary, readTimeline } from "./timeline.js";
import { block, element, show } from "./text.js";

const AT_ONCE = 300;

/** Fill a page with the run of a journal file. */
export function showRun(page, text) {
  const journal = readJournal(text);
  page.append(showHead(journal), showVerdict(verifyJournal(journal)), showTimeline(readTimeline(journal.rows)));
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
  return element("header", "", title, list);
}

function showVerdict({ ok, complete, head, count, faults }) {
  const text = ok
    ? `Whole: each of ${count.toLocaleString("en")} records follows from the one before it, and the end is there.`
    : faults.length > 0
      ? `Not whole: ${faults.length} ${faults.length === 1 ? "fault" : "faults"}.`
      : complete
        ? "Whole."
        : "Whole so far, and not finished.";
  const section = element("section", `verdict ${ok ? "good" : "bad"}`, element("p", "", text));
  for (const { strand, n, line, why } of faults.slice(0, 20))
    section.append(element("p", "fault", show(line ? `line ${line}: ${why}` : `${strand}:${n}: ${why}`)));
  section.append(
    element("p", "head", "head ", element("code", "", head), `, ${count.toLocaleString("en")} records`),
    element("p", "hint", "This page has computed it from the records in it. Compare the head with the one that was kept elsewhere."),
  );
  section.setAttribute("role", "status");
  return section;
}

function showTimeline(entries) {
  const list = element("ol", "timeline");
  const section = element("section", "", element("h2", "", "What happened"), list);
  showMore(section, list, entries, 0);
  return section;
}

/** Show the next entries, and a button for those after them: a page of thousands would stand still. */
function showMore(section, list, entries, from) {
  list.append(...entries.slice(from, from + AT_ONCE).map(showEntry));
  if (entries.length <= from + AT_ONCE) return;
  const more = element("button", "more", `${(entries.length - from - AT_ONCE).toLocaleString("en")} more`);
  more.type = "button";
  more.addEventListener("click", () => {
    more.remove();
    showMore(section, list, entries, from + AT_ONCE);
  });
  section.append(more);
}

function showEntry({ strand, n, at, tone, title, note, seconds, parts }) {
  const time = at ? element("time", "", at.slice(11, 23)) : element("time", "", "");
  const place = element("a", "place", show(`${strand}:${n}`));
  place.href = `#${encodeURIComponent(`${strand}:${n}`)}`;
  const head = element("div", "title", show(title));
  if (note) head.append(element("span", "note", show(note)));
  if (seconds !== null) head.append(element("span", "note", `${seconds.toFixed(3)} s`));
  const body = element("div", "body", head);
  for (const [label, value] of parts) body.append(showPart(label, value));
  const entry = element("li", `entry ${tone}`, time, body, place);
  entry.id = `${strand}:${n}`;
  return entry;
}

function showPart(label, value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (text.length <= 80 && !text.includes("\n"))
    return element("p", "part", element("span", "label", show(label)), element("span", "value", show(text)));
  const made = element("details", "part", element("summary", "", show(label), element("span", "note", show(text.slice(0, 80)))));
  made.addEventListener("toggle", () => made.open && made.childElementCount === 1 && made.append(block(value)));
  return made;
}
